package store

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/parley-dev/parley/internal/errs"
)

// fence keeps a program off a store that a newer one has migrated incompatibly. Every
// write checks it inside of its transaction, so that not even a node that has yet to
// notice can write what the new schema does not expect. Reads are refused as soon as
// it is noticed.
type fence struct {
	known int // the newest schema of this program
	moved atomic.Pointer[errs.Error]

	moves string // a query that yields a row if the fence is to close

	// check is moves for the start of a batch on PostgreSQL, where nothing can be decided
	// in between: it fails with codeMoved.
	//
	// Either locks the table until the write ends, as every query does. An incompatible
	// migration takes the table for itself, so it waits for the writes that have begun
	// before it. Those that waited for the migration see it, because PostgreSQL takes the
	// snapshot of a statement after its locks.
	check statement
}

// Arbitrary numbers that all nodes agree on, of PostgreSQL's advisory locks.
const (
	migrationLock = 7_202_611_150_817 // taken by every migration
	writersLock   = 7_202_611_150_818 // shared by writes of earlier versions, taken by incompatible migrations
)

// codeMoved is how check fails: a division by zero. orFail fails in the same way, so
// the fence is looked at after it.
const codeMoved = "22012"

// stopWriters makes an incompatible migration wait for the writes under way, and others
// for the migration.
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

// CodeMigrated is the code of the error that a store gives once a newer program has
// migrated it incompatibly.
const CodeMigrated = "store.migrated"

// retryElsewhere is what clients of a node that must be restarted are told to wait.
const retryElsewhere = 5 * time.Second

// err is nil as long as this program may use the store.
func (f *fence) err() error {
	if e := f.moved.Load(); e != nil {
		return e
	}
	return nil
}

// look reads the migrations that this program does not know, and closes the fence if
// one of them is incompatible.
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
		"the store was migrated to schema %d by a newer parley%s, and this one knows schema %d; restart this node with that version",
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

// refuse closes the fence for a write that found it to be due, and returns the error.
func (f *fence) refuse(ctx context.Context, r reader) error {
	if _, err := f.look(ctx, r); err != nil {
		return err
	}
	return f.err()
}

// guarded is a reader that a closed fence refuses.
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

// Moved says why this program may not use the store any more; nil: it may.
func (s *Store) Moved() error { return s.fence.err() }
