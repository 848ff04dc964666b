package main

import (
	"context"
	"fmt"
)

const (
	proposalSize = "bytes on disk for each proposal, with its event and its words in the text index"
	taskSize     = "bytes on disk for each task, with its log and its events"

	sizeRows = 50_000 // so many that pages that are half full do not matter
)

// measureSize measures how much each proposal and task adds to the store.
func measureSize(ctx context.Context, _ settings, engine, program string) ([]line, error) {
	data, cleanup, err := newData(ctx, engine)
	if err != nil {
		return nil, err
	}
	defer cleanup()
	w, err := newTaskWorld(ctx, engine, program, data)
	if err != nil {
		return nil, err
	}
	defer w.close()
	var out []line
	for _, c := range []struct {
		name string
		job  job
	}{
		{proposalSize, job{Addr: w.addr, Callers: writers, Requests: w.submits()}},
		{taskSize, taskJob(w.addr, done, w.taskCalls().sends)},
	} {
		before, err := w.bytes(ctx)
		if err != nil {
			return nil, err
		}
		c.job.Count = sizeRows
		if _, err := load(ctx, c.job); err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		if err := w.settle(ctx); err != nil {
			return nil, err
		}
		after, err := w.bytes(ctx)
		if err != nil {
			return nil, err
		}
		l := line{Engine: engine, Rows: sizeRows, Name: c.name, Callers: writers, Rate: (after - before) / sizeRows}
		progress("%s, %s: %.0f", engine, l.Name, l.Rate)
		out = append(out, l)
	}
	return out, nil
}

// bytes returns the size of the store. On SQLite it counts the pages that are only in the write-ahead
// log, too, but not the log itself, which does not grow with the store.
func (w *world) bytes(ctx context.Context) (n float64, err error) {
	db, err := openSQL(w.engine, w.data)
	if err != nil {
		return 0, err
	}
	defer func() { _ = db.Close() }()
	query := `SELECT pg_database_size(current_database())`
	if w.engine == "sqlite" {
		query = `SELECT (page_count - freelist_count) * page_size
			FROM pragma_page_count, pragma_freelist_count, pragma_page_size`
	}
	err = db.QueryRowContext(ctx, query).Scan(&n)
	return n, err
}
