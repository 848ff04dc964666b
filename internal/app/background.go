package app

import (
	"context"
	"time"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/store"
)

const (
	// keyPoll bounds how long a key still works after another process revoked it.
	keyPoll  = time.Second
	keyFlush = time.Minute
	// quiet is the minimum time between two log lines about the same fault of the store.
	quiet      = 30 * time.Second
	sweepEvery = 10 * time.Minute
	// wordsEvery bounds how long the catalogue does not find an agent by a new name, if a server of
	// an earlier version changed it, or its member was renamed.
	wordsEvery = 2 * time.Second
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

// sweep deletes expired rows, at once and then regularly.
func (s *Server) sweep(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		s.sweepAll(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// sweepAll deletes all rows that have expired. Each call to the store deletes a bounded number of rows,
// so that requests are not blocked.
func (s *Server) sweepAll(ctx context.Context) {
	keep := store.Retention{
		Audit: s.cfg.AuditRetention, Friction: s.cfg.FrictionRetention, Sessions: s.cfg.SessionRetention,
	}
	if err := s.store.KeepPartitions(ctx, Now(), s.cfg.TaskRetention); err != nil && ctx.Err() == nil {
		s.log.Warn("could not make or drop the partitions of the log of tasks", "error", err)
	}
	total := store.Deleted{}
	for {
		deleted, err := s.store.Sweep(ctx, Now(), keep)
		for kind, n := range deleted {
			total[kind] += n
		}
		tasks := 0
		if err == nil {
			tasks, err = s.tasks.Sweep(ctx, s.cfg.TaskRetention)
		}
		if tasks > 0 {
			total["tasks and messages"] += tasks
		}
		if err != nil && ctx.Err() == nil {
			s.log.Warn("could not delete expired rows", "error", err)
		}
		if err != nil || tasks == 0 && len(deleted) == 0 {
			break
		}
	}
	if len(total) > 0 {
		s.log.Debug("deleted expired rows", "rows", total)
	}
}

// indexAgents makes the words by which the catalogue finds agents, where they are missing.
func (s *Server) indexAgents(ctx context.Context) {
	operator := agent.NewOperator(s.agents)
	tick := time.NewTicker(wordsEvery)
	defer tick.Stop()
	var logged time.Time
	for {
		if err := operator.IndexWords(ctx); err != nil && ctx.Err() == nil && Now().Sub(logged) > quiet {
			logged = Now()
			s.log.Warn("cannot index the words of agents; the catalogue may not find new names", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
