package app

import (
	"context"
	"time"
)

const (
	// keyPoll bounds how long a key still works after another process revoked it.
	keyPoll  = time.Second
	keyFlush = time.Minute
	// quiet is the minimum time between two log lines about the same fault of the store.
	quiet      = 30 * time.Second
	sweepEvery = 10 * time.Minute
)

// watchKeys follows revocations by other processes and records when keys were last used.
func (s *Server) watchKeys(ctx context.Context) {
	var logged time.Time
	s.auth.Watch(ctx, keyPoll, keyFlush, func(err error) {
		if now := Now(); now.Sub(logged) > quiet {
			logged = now
			s.log.Error("cannot check for revoked keys; keys are not cached until the store responds", "error", err)
		}
	})
}

// sweep deletes expired rows. Each call to the store deletes a bounded number of rows, so that
// requests are not blocked.
func (s *Server) sweep(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		for {
			n, err := s.store.Sweep(ctx, Now())
			if err == nil {
				var m int
				m, err = s.tasks.Sweep(ctx, s.cfg.TaskRetention)
				n += m
			}
			if err != nil && ctx.Err() == nil {
				s.log.Warn("could not delete expired rows", "error", err)
			}
			if n == 0 || err != nil {
				break
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
