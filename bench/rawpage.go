package main

import (
	"context"
	"database/sql"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

// pageQueryName compares a list that no cached page serves with its query alone.
const pageQueryName = "list 20, uncached (limit: bare page query)"

// pageQuery reads the rows of the default list from its index.
const pageQuery = `SELECT id, title, category, status, priority, submitted_by, submitted_at, votes_for, votes_against
	FROM proposals WHERE org_id = $1 AND status = 'open' ORDER BY priority DESC, id DESC LIMIT 20`

// comparePage measures the bare query on the store of the server, and returns the line of an
// uncached list against it.
func (w *world) comparePage(ctx context.Context, set settings, list line) (line, error) {
	driver, source := "pgx", w.data[1]
	if w.engine == "sqlite" {
		driver, source = "sqlite", "file:"+filepath.Join(w.data[1], "parley.db")+"?mode=ro"
	}
	db, err := sql.Open(driver, source)
	if err != nil {
		return line{}, err
	}
	defer func() { _ = db.Close() }()
	db.SetMaxOpenConns(callers)
	db.SetMaxIdleConns(callers)
	stmt, err := db.PrepareContext(ctx, pageQuery)
	if err != nil {
		return line{}, err
	}
	defer func() { _ = stmt.Close() }()
	var rates []float64
	for range set.rounds {
		rate, err := pageRate(ctx, set, stmt)
		if err != nil {
			return line{}, err
		}
		rates = append(rates, rate)
	}
	list.Name, list.LimitRate = pageQueryName, median(rates)
	list.Ratio = list.Rate / list.LimitRate
	return list, nil
}

// pageRate runs the query with the same number of callers as the lists.
func pageRate(ctx context.Context, set settings, stmt *sql.Stmt) (float64, error) {
	var wg sync.WaitGroup
	var n atomic.Int64
	errs := make(chan error, callers)
	start := time.Now()
	for range callers {
		wg.Go(func() {
			for time.Since(start) < set.duration && ctx.Err() == nil {
				if err := readPage(ctx, stmt); err != nil {
					errs <- err
					return
				}
				n.Add(1)
			}
		})
	}
	wg.Wait()
	select {
	case err := <-errs:
		return 0, err
	default:
	}
	return float64(n.Load()) / time.Since(start).Seconds(), nil
}

func readPage(ctx context.Context, stmt *sql.Stmt) error {
	rows, err := stmt.QueryContext(ctx, org)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	var id, title, category, status, by string
	var priority, at, votesFor, against int64
	for rows.Next() {
		if err := rows.Scan(&id, &title, &category, &status, &priority, &by, &at, &votesFor, &against); err != nil {
			return err
		}
	}
	return rows.Err()
}
