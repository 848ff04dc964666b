package app

import (
	"context"
	"time"
)

const (
	// keyPoll bounds how long a revoked key still works.
	keyPoll  = time.Second
	keyFlush = time.Minute
	// quiet is how long a fault of the store is not logged again.
	quiet      = 30 * time.Second
	sweepEvery = 10 * time.Minute
)

// watchKeys notices revocations by other processes, and records when keys were used.
func (s *Server) watchKeys(ctx context.Context) {
	var logged time.Time
	s.auth.Watch(ctx, keyPoll, keyFlush, func(err error) {
		if now := Now(); now.Sub(logged) > quiet {
			logged = now
			s.log.Error("the store cannot be asked about keys; every request looks its key up until it can", "error", err)
		}
	})
}

// sweep deletes what has expired. Each call to the store deletes a bounded number
// of rows, so that requests get their turn between two.
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
