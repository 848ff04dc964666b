package store

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/parley-dev/parley/internal/errs"
)

// fence keeps a program from using a store that a newer one has migrated incompatibly. Every
// write checks it inside its transaction, so that a node that has not noticed the migration yet
// cannot write what the new schema does not expect. Reads are refused once it is noticed.
type fence struct {
	known int // the newest schema that this program supports
	moved atomic.Pointer[errs.Error]

	moves string // a query that yields a row if the fence must close

	// check is moves for the start of a batch on PostgreSQL, where no decision is possible
	// between statements: it fails with codeMoved.
	//
	// Both lock the table until the write ends, as every query does. An incompatible
	// migration locks the table exclusively, so it waits for the writes that began before it.
	// Writes that waited for the migration see it, because PostgreSQL takes the snapshot of a
	// statement after its locks.
	check statement
}

// Numbers of PostgreSQL's advisory locks: arbitrary, but the same on all nodes.
const (
	migrationLock = 7_202_611_150_817 // taken by every migration
	writersLock   = 7_202_611_150_818 // shared by writes of older versions, taken by incompatible migrations
)

// codeMoved is the SQLSTATE of a failed check: division by zero. orFail fails with the same
// code, so the fence is checked after it.
const codeMoved = "22012"

// stopWriters makes an incompatible migration wait for running writes, and new writes wait for
// the migration.
var stopWriters = []statement{
	{sql: `SELECT pg_advisory_xact_lock($1)`, args: []any{int64(writersLock)}},
	{sql: `LOCK TABLE schema_migrations IN ACCESS EXCLUSIVE MODE`},
}

func newFence(known int) *fence {
	moves := fmt.Sprintf(`SELECT 1 FROM schema_migrations WHERE number > %d AND compatible = 0 LIMIT 1`, known)
	return &fence{
		known: known, moves: moves,
		check: statement{sql: `SELECT 1 / (1 - count(*)) FROM (` + moves + `) moved`},
	}
}

// CodeMigrated is the code of the error that all methods return once a newer program has
// migrated the store incompatibly.
const CodeMigrated = "store.migrated"

// retryElsewhere is the Retry-After of a node that must be restarted.
const retryElsewhere = 5 * time.Second

// err returns nil as long as this program may use the store.
func (f *fence) err() error {
	if e := f.moved.Load(); e != nil {
		return e
	}
	return nil
}

// look reads the migrations that this program does not know, and closes the fence if one of
// them is incompatible.
func (f *fence) look(ctx context.Context, r reader) ([]applied, error) {
	var out []applied
	closed := false
	err := each(ctx, r, func(rs rows) error {
		var a applied
		var compatible int64
		if err := rs.Scan(&a.Number, &a.Name, &compatible, &a.program); err != nil {
			return err
		}
		a.Compatible = compatible != 0
		closed = closed || !a.Compatible
		out = append(out, a)
		return nil
	}, `SELECT number, name, compatible, program FROM schema_migrations WHERE number > $1 ORDER BY number`, f.known)
	if err == nil && closed {
		f.close(out[len(out)-1])
	}
	return out, err
}

func (f *fence) close(newest applied) {
	e := errs.New(errs.Unavailable, CodeMigrated,
		"the store was migrated to schema %d by a newer parley%s, and this one knows schema %d; "+
			"restart this node with that version",
		newest.Number, version(newest.program), f.known)
	e.RetryAfter = retryElsewhere
	f.moved.CompareAndSwap(nil, e)
}

func version(program string) string {
	if program == "" {
		return ""
	}
	return " (" + program + ")"
}

// refuse closes the fence for a write that found an incompatible migration, and returns the
// error.
func (f *fence) refuse(ctx context.Context, r reader) error {
	if _, err := f.look(ctx, r); err != nil {
		return err
	}
	return f.err()
}

// guarded is a reader that returns an error once the fence is closed.
type guarded struct {
	reader
	fence *fence
}

func (g guarded) query(ctx context.Context, sql string, args ...any) (rows, error) {
	if err := g.fence.err(); err != nil {
		return nil, err
	}
	return g.reader.query(ctx, sql, args...)
}

// Moved returns an error if this program may no longer use the store; see CodeMigrated.
func (s *Store) Moved() error { return s.fence.err() }
