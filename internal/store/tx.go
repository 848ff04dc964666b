package store

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
)

// rows is what both engines answer a query with.
type rows interface {
	Next() bool
	Scan(dest ...any) error
	Err() error
	Close()
}

// reader runs queries, inside or outside of a transaction.
type reader interface {
	query(ctx context.Context, sql string, args ...any) (rows, error)
}

// each calls fn for every row of a query.
func each(ctx context.Context, r reader, fn func(rows) error, sql string, args ...any) error {
	rs, err := r.query(ctx, sql, args...)
	if err != nil {
		return err
	}
	defer rs.Close()
	for rs.Next() {
		if err := fn(rs); err != nil {
			return err
		}
	}
	return translate(rs.Err())
}

// one scans the first row of a query and reports whether there was one.
func one(ctx context.Context, r reader, dest []any, sql string, args ...any) (bool, error) {
	found := false
	err := each(ctx, r, func(rs rows) error {
		if found {
			return nil
		}
		found = true
		return rs.Scan(dest...)
	}, sql, args...)
	return found, err
}

// statement is one queued write.
type statement struct {
	sql  string
	args []any
	// unless, if set, is the refusal if the statement changes no row: what is queued
	// after it is dropped. Only a write's first statement may have it: nothing needs to be
	// undone then. On PostgreSQL the statement fails instead; see orFail.
	unless error
}

// tx is one write while it is being decided. It reads at once and writes at the
// end: exec only queues. So a function that refuses has changed nothing, nothing
// needs to be undone for it, and on PostgreSQL all its statements travel with the
// commit in one round trip.
type tx struct {
	reader
	d          *dialect
	statements []statement
	counts     map[counter]int64
	touched    map[string]struct{} // orgs whose proposals change
	unindexed  int64               // new proposals that SQLite's text index does not have yet
	revoked    []string            // orgs in which rights may be taken away; see newEpoch
}

func newTx(r reader, d *dialect) *tx { return &tx{reader: r, d: d} }

// exec queues a statement.
func (t *tx) exec(sql string, args ...any) {
	t.statements = append(t.statements, statement{sql: sql, args: args})
}

// execUnless queues the first statement of a write; if it changes no row, the
// write is refused.
func (t *tx) execUnless(refusal error, sql string, args ...any) {
	t.statements = append(t.statements, statement{sql, args, refusal})
}

// count adds n to a counter.
func (t *tx) count(c counter, n int64) {
	if t.counts == nil {
		t.counts = map[counter]int64{}
	}
	t.counts[c] += n
}

// touch says that the org's proposals will read differently.
func (t *tx) touch(org string) {
	if t.touched == nil {
		t.touched = map[string]struct{}{}
	}
	t.touched[org] = struct{}{}
}

// decide runs fn on t; a panic in it is an error of this write only.
func decide(t *tx, fn func(*tx) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in a write: %v\n%s", p, debug.Stack())
		}
	}()
	return fn(t)
}

// merge adds to dst what src asks for beside its statements.
func merge(dst, src *tx) {
	for c, n := range src.counts {
		dst.count(c, n)
	}
	for org := range src.touched {
		dst.touch(org)
	}
	dst.unindexed += src.unindexed
	for _, org := range src.revoked {
		if !slices.Contains(dst.revoked, org) {
			dst.revoked = append(dst.revoked, org)
		}
	}
}
