package store

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// adder combines writes that read nothing. Its workers send all waiting writes as one
// transaction in one round trip, which raises PostgreSQL's rate of single inserts two- to
// threefold.
type adder struct {
	*queue
	eng *pg
}

const (
	// adderWorkers is two, so that one batch gathers while another is committed. With more of them
	// batches are smaller, and each has costs of its own: its counters, its events, its commit.
	adderWorkers = 2
	maxAdded     = 128
)

func newAdder(eng *pg, q *queue) *adder {
	a := &adder{queue: q, eng: eng}
	for range adderWorkers {
		a.serve(maxAdded, a.commit)
	}
	return a
}

// commit sends the batch. If PostgreSQL refused it, nothing was committed, and each write is
// tried alone: then only the faulty one fails, or all of them if the fence has closed. If the
// connection broke, the outcome is unknown and all writes fail.
func (a *adder) commit(batch []*request) {
	ctx := context.Background()
	// A single write is sent like a batch. If it were handed over, the worker would take the
	// next one at once, and no batch would ever form.
	err := a.sendAll(ctx, batch)
	if err == nil {
		return
	}
	if !refused(err) {
		for _, r := range batch {
			r.err = err
		}
		return
	}
	// A write that waits for a lock must not delay the others.
	for _, r := range batch {
		a.handOver(r, func() error { return a.eng.write(ctx, r.fn) })
	}
}

func (a *adder) sendAll(ctx context.Context, batch []*request) error {
	whole := newTx(nil, &postgresDialect, a.eng.hooks)
	if a.eng.pooled { // else the session sets these limits
		whole.statements = setLimits(a.eng.limits.statement, shortLockWait)
	}
	for _, r := range batch {
		t := newTx(nil, &postgresDialect, a.eng.hooks)
		if r.err = decide(t, r.fn); r.err != nil {
			continue
		}
		whole.statements = append(whole.statements, t.statements...)
		merge(whole, t)
	}
	whole.statements = combine(whole.statements)
	h, err := a.eng.acquireWrite(ctx, time.Now().Add(writeTimeout))
	if err != nil {
		return err
	}
	defer a.eng.releaseWrite(&h)
	whole.finish(h.Conn.Conn())
	err = send(ctx, h.Conn.Conn(), slices.Insert(whole.statements, 0, a.eng.fence.check))
	if !refused(err) { // also if it is unknown
		a.eng.committed(whole)
	}
	if err == nil || refused(err) {
		return err
	}
	return h.blame(ctx, err)
}

// refused reports whether PostgreSQL rejected the statements without committing them. If it
// ended the session instead, it may have committed before.
func refused(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.SeverityUnlocalized == "ERROR"
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
