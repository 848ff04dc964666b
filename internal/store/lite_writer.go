package store

import (
	"context"
	"errors"
	"fmt"
)

// maxBatch limits the writes that share one commit.
const maxBatch = 256

// writer is SQLite's only writer. It runs all waiting writes in one transaction, commits once
// and only then returns to their callers. Under load, all writes that arrive during one commit
// share the cost of the next.
type writer struct {
	*queue
	conn     *liteConn
	hooks    *hooks
	onCommit func(*tx)
	fence    *fence
	packer   packer
}

func newWriter(conn *liteConn, q *queue, hooks *hooks, onCommit func(*tx)) *writer {
	w := &writer{queue: q, conn: conn, hooks: hooks, onCommit: onCommit}
	w.serve(maxBatch, w.commit)
	return w
}

// commit runs a batch. A write that is refused has queued nothing and does not affect the
// others. If a statement fails, which is rare, the transaction is undone and each write of the
// batch runs in its own transaction, so that only the faulty one fails.
func (w *writer) commit(batch []*request) {
	err := w.attempt(batch)
	if err == nil {
		return
	}
	if len(batch) == 1 {
		batch[0].err = err
		return
	}
	for i := range batch {
		if err := w.attempt(batch[i : i+1]); err != nil {
			batch[i].err = err
		}
	}
}

// attempt runs the batch in one transaction. It never uses a request's context: a caller that
// cancels must not undo the writes of others.
func (w *writer) attempt(batch []*request) error {
	if err := w.conn.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	whole := newTx(w, &sqliteDialect, w.hooks)
	err := func() error {
		if err := w.checkFence(); err != nil {
			return err
		}
		for _, r := range batch {
			t := newTx(w, &sqliteDialect, w.hooks)
			if r.err = decide(t, r.fn); r.err != nil {
				continue
			}
			refused, err := w.runAll(t.statements)
			if err != nil {
				return err
			}
			if r.err = refused; refused == nil {
				merge(whole, t)
			}
		}
		whole.flushCounts()
		whole.flushAwaiting()
		if err := w.flushEvents(whole); err != nil {
			return err
		}
		_, err := w.runAll(whole.statements)
		return err
	}()
	if err == nil {
		err = w.conn.exec("COMMIT")
	}
	if err != nil {
		if undo := w.conn.exec("ROLLBACK"); undo != nil {
			err = errors.Join(err, fmt.Errorf("roll back: %w", undo))
		}
		return err
	}
	w.onCommit(whole)
	return nil
}

// checkFence returns an error if this program does not support the schema of the store.
func (w *writer) checkFence() error {
	n := 0
	moved, err := one(context.Background(), w, []any{&n}, w.fence.moves)
	if err == nil && moved {
		err = w.fence.refuse(context.Background(), w)
	}
	return err
}

// runAll runs the statements of one write. Only the first statement can be refused, and has
// changed nothing then.
func (w *writer) runAll(ss []statement) (refused, err error) {
	for _, s := range ss {
		changed, err := w.conn.run(s.sql, s.args)
		if err != nil {
			return nil, err
		}
		if s.unless != nil && changed == 0 {
			return s.unless, nil
		}
	}
	return nil, nil
}

// query reads on the writer's connection, inside its transaction. That is why it ignores the
// request's context.
func (w *writer) query(_ context.Context, sql string, args ...any) (rows, error) {
	return w.conn.read(sql, args, func() {})
}

// close runs the queued writes, then closes the connection.
func (w *writer) close() error {
	w.queue.close()
	return w.conn.close()
}
