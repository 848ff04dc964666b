// Package store keeps everything Parley knows, on SQLite or PostgreSQL. It is
// the only package that speaks SQL.
//
// One set of statements with $n placeholders serves both engines; what differs
// between them lives in dialect.go. A write is a function that first reads, then
// queues its statements (see tx.go): the engine runs them and commits before
// anybody is told that they succeeded. The rules that decide what to write come
// from the domain packages; this package must not contain one.
package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Options says where the data is.
type Options struct {
	Dir       string // folder of the SQLite file; used when URL is empty
	URL       string // postgres:// address; takes precedence over Dir
	ReadConns int    // readers on SQLite, connections on PostgreSQL; 0: a sensible number
	// SearchTimeout is how long a search or another slow read may take, waiting
	// included; 0: 5 seconds.
	SearchTimeout time.Duration
	// Deadlines on PostgreSQL: of one statement, of waiting for locks, and of waiting
	// for a connection; 0: 10, 3 and 3 seconds.
	StatementTimeout, LockTimeout, AcquireTimeout time.Duration

	Log *slog.Logger     // nil: nothing is logged
	Now func() time.Time // nil: the system's clock

	Version string // of this program, for the records of migrations and nodes
	Node    string // id of this server; empty: a command, which nobody needs to wait for
	Locked  bool   // the caller holds LockDir of Dir
	Migrate Policy

	schema []schemaFile // nil: those of this program
	fence  *fence
}

// Store implements the Store interfaces of all domain packages.
type Store struct {
	eng  engine
	d    *dialect
	met  *metrics
	lane *lane
	now  func() time.Time

	revoked *revocations
	fence   *fence
	report  Report
	node    string
	version string
}

// engine is what SQLite and PostgreSQL do differently.
type engine interface {
	reader
	// write runs fn in a transaction of its own or shared with others, and returns
	// after the commit. fn may run more than once.
	write(ctx context.Context, fn func(*tx) error) error
	// writeWide is write for megabytes: it delays other writes as little as possible.
	writeWide(ctx context.Context, fn func(*tx) error) error
	// add is write for a function that reads nothing, which lets the engine
	// combine many of them.
	add(ctx context.Context, fn func(*tx) error) error
	// dataVersion changes after every commit that touched the org's proposals.
	dataVersion(ctx context.Context, org string) (uint64, error)
	// slow reads on connections that only slow reads use; see lane.go.
	slow() reader
	slowConns() int
	// readySearch returns when a search finds everything that was written in the org
	// so far.
	readySearch(ctx context.Context, org string) error
	// migrate runs fn in a transaction that excludes other migrations.
	migrate(ctx context.Context, fn func(migrator) error) error
	ping(ctx context.Context) error
	close() error
}

// The files in a data folder; SQLite adds -wal and -shm to the first.
const (
	fileName = "parley.db"
	lockName = "parley.lock"
)

// Open opens the store and brings its schema up to date, as far as o.Migrate allows.
func Open(ctx context.Context, o Options) (*Store, error) {
	s, err := prepare(ctx, &o)
	if err != nil {
		return nil, err
	}
	if err := s.migrate(ctx, o); err != nil {
		_ = s.eng.close()
		return nil, err
	}
	return s, nil
}

// prepare opens the store, whatever its schema is, and completes the options.
func prepare(ctx context.Context, o *Options) (*Store, error) {
	if o.schema == nil {
		var err error
		if o.schema, err = schemaFiles(); err != nil {
			return nil, err
		}
	}
	o.fence = newFence(len(o.schema))
	s := &Store{met: newMetrics(), now: o.Now, fence: o.fence, revoked: &revocations{}, node: o.Node, version: o.Version}
	if s.now == nil {
		s.now = func() time.Time { return time.Now().UTC() }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	var err error
	switch {
	case o.URL != "":
		if !strings.HasPrefix(o.URL, "postgres://") && !strings.HasPrefix(o.URL, "postgresql://") {
			return nil, errors.New("the database address must start with postgres://")
		}
		s.d = &postgresDialect
		s.eng, err = openPostgres(ctx, *o, s.met, s.revoked)
	case o.Dir != "":
		if err := os.MkdirAll(o.Dir, 0o700); err != nil {
			return nil, fmt.Errorf("create the data folder: %w", err)
		}
		if err := createPrivate(filepath.Join(o.Dir, fileName)); err != nil {
			return nil, fmt.Errorf("create the store: %w", err)
		}
		s.d = &sqliteDialect
		s.eng, err = openSQLite(filepath.Join(o.Dir, fileName), *o, s.met, s.revoked)
	default:
		return nil, errors.New("name a data folder or a database address")
	}
	if err != nil {
		return nil, err
	}
	s.lane = newLane(s.eng.slowConns(), o.SearchTimeout)
	s.met.observeLane(s.lane)
	return s, nil
}

func (s *Store) migrate(ctx context.Context, o Options) error {
	return s.eng.migrate(ctx, func(m migrator) error { return s.migrateAll(ctx, m, o) })
}

// Close waits for running writes and closes all connections.
func (s *Store) Close() error {
	s.leave()
	return s.eng.close()
}

// Ping reports whether the store can be read and written to.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.fence.err(); err != nil {
		return err
	}
	return s.eng.ping(ctx)
}

// Engine names the engine in use: "sqlite" or "postgres".
func (s *Store) Engine() string { return s.d.name }

// Sweep deletes what has expired, a bounded number of rows a call, and reports
// how many it deleted.
func (s *Store) Sweep(ctx context.Context, now time.Time) (int, error) {
	const most = 1000
	n := 0
	err := s.eng.write(ctx, func(t *tx) error {
		n = 0
		return each(ctx, t, func(r rows) error {
			var org, principal, operation, key string
			if err := r.Scan(&org, &principal, &operation, &key); err != nil {
				return err
			}
			n++
			t.exec(`DELETE FROM idempotency WHERE org_id = $1 AND principal = $2 AND operation = $3 AND key = $4`,
				org, principal, operation, key)
			return nil
		}, `SELECT org_id, principal, operation, key FROM idempotency WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2`,
			micros(now), most)
	})
	return n, err
}

// micros is a time as it is stored; the zero time is 0.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// fromMicros is the inverse of micros.
func fromMicros(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
