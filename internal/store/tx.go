package store

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
)

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

// exists reports whether a query yields a row.
func (t *tx) exists(ctx context.Context, sql string, args ...any) (bool, error) {
	var n int
	return one(ctx, t, []any{&n}, sql, args...)
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
