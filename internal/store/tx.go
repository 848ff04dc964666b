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
	// unless, if set, is the error of the write if the statement changes no row; the
	// statements after it are dropped. Only the first statement of a write may have it, so
	// that nothing needs to be undone. On PostgreSQL the statement fails instead; see orFail.
	unless error
	// insert marks an INSERT of one row, whose text ends with its VALUES. PostgreSQL inserts
	// the rows of many writes with one statement; see combine.
	insert bool
	// many, if set, does for the rows of its VALUES what the statement does for one, with the same
	// parameters; see combine.
	many *many
	// sets is the row that the statement writes, whatever was in it; see tx.set.
	sets rowKey
}

// rowKey names a row of the proposals, or of the votes on one if it has a voter.
type rowKey struct{ org, proposal, voter string }

// many is the text of a statement for several rows, split after its one row of VALUES. It must fail
// if it does not change a row for each.
type many struct{ upToValues, rest string }

// tx is one write while it is being decided. It reads at once and writes at the end: exec only
// queues. So a function that returns an error has changed nothing, nothing needs to be undone,
// and on PostgreSQL all statements travel with the commit in one round trip.
type tx struct {
	reader
	d          *dialect
	hooks      *hooks
	statements []statement
	counts     []counted
	touched    []string  // orgs whose proposals change
	awaiting   []awaited // see await
	revoked    []string  // orgs in which rights may be revoked; see newEpoch
	events     []packed  // see emit
	invalid    error     // of events that cannot be stored
}

func newTx(r reader, d *dialect, h *hooks) *tx { return &tx{reader: r, d: d, hooks: h} }

// exec queues a statement.
func (t *tx) exec(sql string, args ...any) {
	t.statements = append(t.statements, statement{sql: sql, args: args})
}

// insert queues an INSERT of one row, whose text ends with its VALUES.
func (t *tx) insert(sql string, args ...any) {
	t.statements = append(t.statements, statement{sql: sql, args: args, insert: true})
}

// set queues a statement that determines a whole row. If several writes of a batch set the same row,
// the last one counts; see latest.
func (t *tx) set(row rowKey, m *many, sql string, args ...any) {
	t.statements = append(t.statements, statement{sql: sql, args: args, many: m, sets: row})
}

// insertUnless queues the first statement of a write, an INSERT of one row like that of insert.
// If its key is taken, the write fails: with refusal on SQLite, with a unique violation on
// PostgreSQL.
func (t *tx) insertUnless(refusal error, sql string, args ...any) {
	t.statements = append(t.statements, statement{
		sql: sql + t.d.orNothing, args: args, unless: refusal, insert: t.d.orNothing == "",
	})
}

// lock locks the rows that a query yields until the end of the write, where others could change
// them meanwhile. It is sent with the next read, which sees them as they are under the lock.
func (t *tx) lock(sql string, args ...any) {
	if c, ok := t.reader.(*pgConn); ok {
		c.locks = append(c.locks, statement{sql: sql + t.d.forUpdate, args: args})
	}
}

// exists reports whether a query yields a row.
func (t *tx) exists(ctx context.Context, sql string, args ...any) (bool, error) {
	var n int
	return one(ctx, t, []any{&n}, sql, args...)
}

// count adds n to a counter.
func (t *tx) count(c counter, n int64) {
	t.counts = append(t.counts, counted{c, n})
}

// touch marks the org's proposals as changed.
func (t *tx) touch(org string) {
	if !slices.Contains(t.touched, org) {
		t.touched = append(t.touched, org)
	}
}

// decide runs fn on t. A panic, or an event that cannot be stored, becomes an error of this write
// only.
func decide(t *tx, fn func(*tx) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in a write: %v\n%s", p, debug.Stack())
		}
	}()
	if err := fn(t); err != nil {
		return err
	}
	return t.invalid
}

// merge adds to dst everything from src except its statements.
func merge(dst, src *tx) {
	dst.counts = append(dst.counts, src.counts...)
	for _, org := range src.touched {
		dst.touch(org)
	}
	dst.awaiting = append(dst.awaiting, src.awaiting...)
	dst.events = append(dst.events, src.events...)
	for _, org := range src.revoked {
		if !slices.Contains(dst.revoked, org) {
			dst.revoked = append(dst.revoked, org)
		}
	}
}
