package store

import (
	"context"
	"slices"
	"time"
)

// updater combines decisions about proposals. Its workers run all that wait in one transaction with
// two round trips: one locks the proposals and reads them, the other writes and commits. The
// decisions are made in between, each on what those before it have left.
type updater struct {
	*queue
	eng *pg
}

const (
	updaterWorkers = 2 // see adderWorkers
	maxUpdated     = 128
)

func newUpdater(eng *pg, q *queue) *updater {
	u := &updater{queue: q, eng: eng}
	for range updaterWorkers {
		u.serve(maxUpdated, u.commit)
	}
	return u
}

// commit runs the batch. If PostgreSQL refused it, nothing was committed, and each change is tried
// alone, as in adder.commit: so a proposal that another transaction has locked delays the others
// only for shortLockWait.
func (u *updater) commit(batch []*request) {
	ctx := context.Background()
	err := u.runAll(ctx, batch)
	if err == nil {
		return
	}
	for _, r := range batch {
		switch {
		case refused(err):
			u.handOver(r, func() error { return u.runAlone(ctx, r.change) })
		case r.err == nil: // else the change was refused, whatever became of the others
			r.err = err
		}
	}
}

func (u *updater) runAlone(ctx context.Context, c *change) error {
	return u.eng.write(ctx, func(t *tx) error { return c.run(ctx, t, aloneReader{t}) })
}

func (u *updater) runAll(ctx context.Context, batch []*request) (err error) {
	h, err := u.eng.acquireWrite(ctx, time.Now().Add(writeTimeout))
	if err != nil {
		return err
	}
	defer u.eng.releaseWrite(&h)
	c := &pgConn{conn: h.Conn.Conn(), ctx: ctx, fence: u.eng.fence}
	if u.eng.pooled { // else the session sets these limits
		c.limits = setLimits(u.eng.limits.statement, shortLockWait)
	}
	whole := newTx(nil, &postgresDialect, u.eng.hooks)
	if err = u.decideAll(ctx, c, batch, whole); err == nil {
		whole.finish(c.conn)
		if err = c.finish(whole.statements); !refused(err) { // also if it is unknown
			u.eng.committed(whole)
		}
	}
	if err == nil {
		return nil
	}
	if c.begun { // the pool closes a connection that cannot roll back
		_, _ = c.conn.Exec(ctx, "ROLLBACK")
	}
	if refused(err) {
		return err
	}
	return h.blame(ctx, err)
}

// decideAll reads what the changes depend on, and adds the writes of those that succeed to whole. An
// error of one change does not affect the others.
func (u *updater) decideAll(ctx context.Context, c *pgConn, batch []*request, whole *tx) error {
	known := newKnown(batch)
	if err := c.queryAll(known.queries()); err != nil {
		return err
	}
	for _, r := range batch {
		t := newTx(nil, &postgresDialect, u.eng.hooks)
		if r.err = decide(t, func(t *tx) error { return r.change.run(ctx, t, known) }); r.err != nil {
			continue
		}
		known.update(r.change)
		whole.statements = append(whole.statements, t.statements...)
		merge(whole, t)
	}
	whole.statements = combine(latest(whole.statements))
	return nil
}

// latest drops statements that set a row which a later one sets again.
func latest(ss []statement) []statement {
	last := map[rowKey]int{}
	for i, s := range ss {
		if s.sets != (rowKey{}) {
			last[s.sets] = i
		}
	}
	i := -1
	return slices.DeleteFunc(ss, func(s statement) bool {
		i++
		return s.sets != (rowKey{}) && last[s.sets] != i
	})
}
