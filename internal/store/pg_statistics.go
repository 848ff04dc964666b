package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// statistics keeps the planner's statistics of young tables up to date. PostgreSQL does so once a
// minute. Until then a plan that was made for an empty table stays in use, and may look up a row by
// its org alone: each such look-up reads all rows of the org.
type statistics struct {
	eng  *pg
	log  *slog.Logger
	stop context.CancelFunc
	done sync.WaitGroup
}

const (
	statisticsEvery = 2 * time.Second
	// youngTable is the number of rows from which on PostgreSQL's own schedule suffices: what was
	// found out about fewer rows keeps plans from reading all of them.
	youngTable = 2000
)

func (s *statistics) start() {
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.done.Go(func() {
		tick := time.NewTicker(statisticsEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if err := s.update(ctx); err != nil && ctx.Err() == nil {
				s.log.Debug("could not update the statistics of tables", "error", err)
			}
		}
	})
}

func (s *statistics) close() {
	if s.stop != nil {
		s.stop()
		s.done.Wait()
	}
}

// update analyzes the young tables that have doubled since they were analyzed last. It counts rows,
// not changes: a small table whose rows change all the time is left to PostgreSQL.
func (s *statistics) update(ctx context.Context) error {
	tables, err := strs(ctx, s.eng, `SELECT quote_ident(s.schemaname) || '.' || quote_ident(s.relname)
		FROM pg_stat_user_tables s JOIN pg_class c ON c.oid = s.relid
		WHERE s.schemaname = current_schema() AND s.n_live_tup >= 2 * greatest(c.reltuples, 50)
			AND c.reltuples < $1`, youngTable)
	if err != nil {
		return err
	}
	var failed []error
	for _, table := range tables {
		if ctx.Err() != nil { // write does not look
			break
		}
		if err := s.eng.write(ctx, func(t *tx) error {
			t.exec(`SET LOCAL default_statistics_target = 10`) // a small sample
			// To wait for autovacuum would cancel it. A table that is skipped is found again.
			t.exec("ANALYZE (SKIP_LOCKED) " + table)
			return nil
		}); err != nil {
			failed = append(failed, fmt.Errorf("analyze %s: %w", table, err))
		}
	}
	return errors.Join(failed...)
}
