package main

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the same drivers as the store's
	_ "modernc.org/sqlite"

	"github.com/parley-dev/parley/internal/pgtest"
)

// measureRaw measures the store's limit: one table, one row per call, the same number of callers
// and the same durability, and nothing else. SQLite commits waiting rows in groups, as the store
// does; PostgreSQL commits each insert alone.
func measureRaw(ctx context.Context, set settings, engine string) (line, error) {
	progress("%s: bare inserts", engine)
	insert, cleanup, err := rawInserter(ctx, engine)
	if err != nil {
		return line{}, err
	}
	defer cleanup()
	body := strings.Repeat("x", 600) // about the size of a proposal's row
	var rates []float64
	var n atomic.Int64
	for range set.rounds {
		var wg sync.WaitGroup
		errs := make(chan error, writers)
		before, start := n.Load(), time.Now()
		for range writers {
			wg.Go(func() {
				for time.Since(start) < set.duration && ctx.Err() == nil {
					if err := insert(ctx, fmt.Sprintf("prop-%026d", n.Add(1)), body); err != nil {
						errs <- err
						return
					}
				}
			})
		}
		wg.Wait()
		select {
		case err := <-errs:
			return line{}, err
		default:
		}
		rates = append(rates, float64(n.Load()-before)/time.Since(start).Seconds())
	}
	return line{Engine: engine, Name: rawName, Callers: writers, LimitRate: median(rates)}, nil
}

type inserter func(ctx context.Context, id, body string) error

const (
	rawTable  = "CREATE TABLE raw (id TEXT PRIMARY KEY, body TEXT NOT NULL)"
	rawInsert = "INSERT INTO raw (id, body) VALUES ($1, $2)"
)

func rawInserter(ctx context.Context, engine string) (inserter, func(), error) {
	if engine == "sqlite" {
		return rawSQLite(ctx)
	}
	s, err := pgtest.Start(ctx, pgtest.Durable())
	if err != nil {
		return nil, nil, err
	}
	db, err := sql.Open("pgx", s.URL("postgres"))
	if err != nil {
		s.Close()
		return nil, nil, err
	}
	db.SetMaxOpenConns(writers / 2)
	db.SetMaxIdleConns(writers / 2)
	cleanup := func() { _ = db.Close(); s.Close() }
	if _, err := db.ExecContext(ctx, rawTable); err != nil {
		cleanup()
		return nil, nil, err
	}
	return func(ctx context.Context, id, body string) error {
		_, err := db.ExecContext(ctx, rawInsert, id, body)
		return err
	}, cleanup, nil
}

type rawRow struct {
	id, body string
	done     chan error
}

func rawSQLite(ctx context.Context) (inserter, func(), error) {
	dir, err := os.MkdirTemp("", "parley-bench")
	if err != nil {
		return nil, nil, err
	}
	q := url.Values{"_pragma": {"journal_mode(WAL)", "synchronous(FULL)"}}
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "raw.db")+"?"+q.Encode())
	if err != nil {
		return nil, nil, err
	}
	db.SetMaxOpenConns(1)
	queue := make(chan rawRow, writers)
	cleanup := func() { close(queue); _ = db.Close(); _ = os.RemoveAll(dir) }
	if _, err := db.ExecContext(ctx, rawTable); err != nil {
		cleanup()
		return nil, nil, err
	}
	stmt, err := db.PrepareContext(ctx, rawInsert)
	if err != nil {
		cleanup()
		return nil, nil, err
	}
	go func() {
		for first := range queue {
			commitGroup(ctx, db, stmt, first, queue)
		}
	}()
	return func(_ context.Context, id, body string) error {
		r := rawRow{id, body, make(chan error, 1)}
		queue <- r
		return <-r.done
	}, cleanup, nil
}

// commitGroup writes all waiting rows in one transaction, then notifies their callers.
func commitGroup(ctx context.Context, db *sql.DB, stmt *sql.Stmt, first rawRow, queue <-chan rawRow) {
	group := []rawRow{first}
	for waiting := true; waiting && len(group) < 256; {
		select {
		case r, ok := <-queue:
			if waiting = ok; ok {
				group = append(group, r)
			}
		default:
			waiting = false
		}
	}
	tx, err := db.BeginTx(ctx, nil)
	if err == nil {
		in := tx.StmtContext(ctx, stmt)
		for _, r := range group {
			if _, err = in.ExecContext(ctx, r.id, r.body); err != nil {
				break
			}
		}
		if err == nil {
			err = tx.Commit()
		} else {
			_ = tx.Rollback()
		}
	}
	for _, r := range group {
		r.done <- err
	}
}
