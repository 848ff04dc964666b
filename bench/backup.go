package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

const (
	backupName      = "back-up under full load (limit: back-up at rest); per second"
	backupWriteName = "submit during back-ups (limit: without)"

	maxSlowdown     = 4  // times that a back-up may take under load, compared with one at rest
	maxBackupP99    = 25 // milliseconds that 99 of 100 writes may always take
	maxBackupP99For = 3  // or this many times as long as without a back-up
)

// measureBackup measures back-ups of a store under full load, and what they do to its writes.
func measureBackup(ctx context.Context, set settings, engine, program string) ([]line, error) {
	rows := set.rows[min(1, len(set.rows)-1)]
	w, cleanup, err := seeded(ctx, engine, program, rows)
	if err != nil {
		return nil, err
	}
	defer cleanup()
	dir, err := os.MkdirTemp("", "parley-bench-backup-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	var rest, busy, quietP99, p50, p99, rates, quietRates []float64
	for range set.rounds {
		alone, err := w.backUp(ctx, dir)
		if err != nil {
			return nil, err
		}
		writes := job{
			Addr: w.addr, Callers: writers, Requests: w.submits(), Warmup: warmup,
			Duration: max(set.duration, time.Duration(maxSlowdown*alone*float64(time.Second))),
		}
		quiet, err := load(ctx, writes)
		if err != nil {
			return nil, err
		}
		type loaded struct {
			result
			err error
		}
		done := make(chan loaded, 1)
		go func() {
			r, err := load(ctx, writes)
			done <- loaded{r, err}
		}()
		time.Sleep(warmup)
		var under loaded
		for over := false; !over; {
			took, err := w.backUp(ctx, dir)
			if err != nil {
				return nil, err
			}
			select {
			case under = <-done: // this back-up may have ended at rest
				over = true
			default:
				busy = append(busy, took)
			}
		}
		if under.err != nil {
			return nil, under.err
		}
		// The store has grown meanwhile, so the back-ups at rest are taken before and after.
		after, err := w.backUp(ctx, dir)
		if err != nil {
			return nil, err
		}
		rest = append(rest, (alone+after)/2)
		quietP99, quietRates = append(quietP99, quiet.P99), append(quietRates, quiet.rate())
		p50, p99, rates = append(p50, under.P50), append(p99, under.P99), append(rates, under.rate())
	}
	if len(busy) == 0 {
		return nil, fmt.Errorf("no back-up of %d rows ended under load; give a longer -duration", rows)
	}
	backups := line{
		Engine: w.engine, Rows: rows, Name: backupName, Callers: writers,
		Rate: 1 / median(busy), LimitRate: 1 / median(rest), Ratio: median(rest) / median(busy),
		Target: fmt.Sprintf("≥ %.2f", 1.0/maxSlowdown),
	}
	backups.Verdict = verdict(backups.Ratio*maxSlowdown >= 1)
	most := max(maxBackupP99*1000, maxBackupP99For*median(quietP99))
	submits := line{
		Engine: w.engine, Rows: rows, Name: backupWriteName, Callers: writers,
		Rate: median(rates), LimitRate: median(quietRates), Ratio: median(rates) / median(quietRates),
		P50: median(p50), P99: median(p99), Target: fmt.Sprintf("p99 ≤ %.0f ms", most/1000),
	}
	submits.Verdict = verdict(submits.P99 <= most)
	for _, l := range []line{backups, submits} {
		progress("%s, %s: %.2f/s, limit %.2f/s, p99 %.0f µs (without: %.0f µs)", l.Engine, l.Name, l.Rate, l.LimitRate, l.P99,
			median(quietP99))
	}
	return []line{backups, submits}, nil
}

// backUp makes a back-up of the store and returns how many seconds it took.
func (w *world) backUp(ctx context.Context, dir string) (float64, error) {
	file := filepath.Join(dir, "parley.backup")
	if err := os.RemoveAll(file); err != nil {
		return 0, err
	}
	began := time.Now()
	_, err := w.cli(ctx, "backup", file)
	return time.Since(began).Seconds(), err
}
