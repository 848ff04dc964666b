package store

import (
	"context"
	"errors"
	"fmt"
)

// maxBatch is how many writes share one commit at the most.
const maxBatch = 256

// writer is SQLite's one writer. It takes what waits, runs it in one transaction,
// commits once and only then answers everybody: under load the cost of making a
// commit durable is shared by all that arrived during the one before.
type writer struct {
	*queue
	conn     *liteConn
	onCommit func(*tx)
	fence    *fence
}

func newWriter(conn *liteConn, met *metrics, onCommit func(*tx)) *writer {
	w := &writer{queue: newQueue(met), conn: conn, onCommit: onCommit}
	w.serve(maxBatch, w.commit)
	return w
}

// commit runs a batch. Decisions that refuse have queued nothing and cost the
// others nothing. If a statement fails, which is rare, the transaction is undone
// and every write of the batch gets one of its own, so that only the one at
// fault fails.
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

// attempt runs the batch in one transaction. It never uses a request's context:
// one caller going away must not undo the work of the others.
func (w *writer) attempt(batch []*request) error {
	if err := w.conn.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	whole := newTx(w, &sqliteDialect)
	err := func() error {
		if err := w.checkFence(); err != nil {
			return err
		}
		for _, r := range batch {
			t := newTx(w, &sqliteDialect)
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

// checkFence refuses to write into a schema that this program does not know.
func (w *writer) checkFence() error {
	n := 0
	moved, err := one(context.Background(), w, []any{&n}, w.fence.moves)
	if err == nil && moved {
		err = w.fence.refuse(context.Background(), w)
	}
	return err
}

// runAll runs the statements of one write. A refusal is that of its first one,
// which then has changed nothing.
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

// query reads on the writer's own connection, inside its transaction, which is
// why it does not listen to the request's context.
func (w *writer) query(_ context.Context, sql string, args ...any) (rows, error) {
	return w.conn.read(sql, args, func() {})
}

// close answers what is queued, then closes the connection.
func (w *writer) close() error {
	w.queue.close()
	return w.conn.close()
}
