package main

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"zombiezen.com/go/sqlite"
)

// pageQueryName compares a list that no cached page serves with its query alone.
const pageQueryName = "list 20, uncached (limit: bare page query)"

// pageQuery reads 20 rows of the default list from its index, after an id.
const pageQuery = `SELECT id, title, category, status, priority, submitted_by, submitted_at, updated_at, votes_for,
		votes_against, version
	FROM proposals WHERE org_id = $1 AND status = 'open' AND priority = 1 AND id < $2
	ORDER BY org_id, status, priority DESC, id DESC LIMIT 20`

// comparePages compares lists that are not cached with the bare query of as many rows, by as many callers
// with the driver of the store.
func (w *world) comparePages(ctx context.Context, set settings, rows int, ids []string) (_ line, err error) {
	first, err := w.cursors(0)
	if err != nil {
		return line{}, err
	}
	votes := &job{Addr: w.addr, Callers: 1, Requests: w.votes(ids), Rate: trickle}
	lists := job{Addr: w.addr, Callers: callers, Requests: first}
	var l line
	if w.engine == "postgres" {
		l, err = besideLoop(ctx, set, pageQueryName, w.data[1], votes, lists, callers,
			func(ctx context.Context, conn *pgx.Conn, n int64) (int, error) {
				found, err := conn.Query(ctx, pageQuery, org, ids[int(n)%len(ids)])
				if err != nil {
					return 0, err
				}
				defer found.Close()
				for found.Next() {
					if _, err := found.Values(); err != nil {
						return 0, err
					}
				}
				return 1, found.Err()
			})
	} else {
		l, err = besideRate(ctx, set, w.engine, pageQueryName, votes, lists, func() (result, error) {
			return w.readLitePages(set, ids)
		})
	}
	l.Rows = rows
	return l, err
}

// readLitePages runs the query on SQLite with connections of its own.
func (w *world) readLitePages(set settings, ids []string) (result, error) {
	var wg sync.WaitGroup
	var sum atomic.Int64
	failed := make([]error, callers)
	start := time.Now()
	for i := range failed {
		wg.Go(func() {
			conn, err := sqlite.OpenConn(filepath.Join(w.data[1], "parley.db"), sqlite.OpenReadOnly)
			if err != nil {
				failed[i] = err
				return
			}
			defer func() { failed[i] = errors.Join(failed[i], conn.Close()) }()
			for time.Since(start) < set.duration && failed[i] == nil {
				failed[i] = readLitePage(conn, ids[int(sum.Add(1))%len(ids)])
			}
		})
	}
	wg.Wait()
	return result{Requests: int(sum.Load()), Seconds: time.Since(start).Seconds()}, errors.Join(failed...)
}

// readLitePage reads all columns of the page after an id.
func readLitePage(conn *sqlite.Conn, id string) error {
	stmt, err := conn.Prepare(pageQuery)
	if err != nil {
		return err
	}
	stmt.BindText(1, org)
	stmt.BindText(2, id)
	for {
		more, err := stmt.Step()
		if err != nil || !more {
			return err
		}
		for i := range stmt.ColumnCount() {
			if stmt.ColumnType(i) == sqlite.TypeInteger {
				_ = stmt.ColumnInt64(i)
			} else {
				_ = stmt.ColumnText(i)
			}
		}
	}
}
