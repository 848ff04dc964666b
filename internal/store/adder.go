package store

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"
)

// adder combines writes that read nothing. Its workers take what waits and send
// it as one transaction in one round trip, which raises PostgreSQL's rate of
// single inserts two- to threefold.
type adder struct {
	*queue
	eng *pg
}

const (
	adderWorkers = 4
	maxAdded     = 128
)

func newAdder(eng *pg, met *metrics) *adder {
	a := &adder{queue: newQueue(met), eng: eng}
	for range adderWorkers {
		a.serve(maxAdded, a.commit)
	}
	return a
}

// commit sends the batch. If PostgreSQL refused it, nothing of it was committed,
// and each write is tried alone so that only the one at fault fails, or each with the
// reason if the fence has closed. If the connection broke, nobody knows, and nobody is told that it succeeded.
func (a *adder) commit(batch []*request) {
	ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
	defer cancel()
	if len(batch) > 1 {
		err := a.sendAll(ctx, batch)
		var refused *pgconn.PgError
		if err == nil {
			return
		}
		if !errors.As(err, &refused) {
			for _, r := range batch {
				r.err = err
			}
			return
		}
	}
	for _, r := range batch {
		r.err = a.eng.write(ctx, r.fn)
	}
}

func (a *adder) sendAll(ctx context.Context, batch []*request) error {
	whole := newTx(nil, &postgresDialect)
	for _, r := range batch {
		t := newTx(nil, &postgresDialect)
		if r.err = decide(t, r.fn); r.err != nil {
			continue
		}
		whole.statements = append(whole.statements, t.statements...)
		merge(whole, t)
	}
	whole.finish()
	conn, release, err := a.eng.acquireWrite(ctx)
	if err != nil {
		return err
	}
	defer release()
	return send(ctx, conn.Conn(), slices.Concat(a.eng.fence.check, whole.statements))
}
