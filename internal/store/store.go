// Package store keeps all data of Parley, on SQLite or PostgreSQL. It is the only package that
// contains SQL.
//
// Each domain has its own type (Proposals, Identity, Audit, …) with the methods that its callers
// declare in their interfaces. All of them share one db.
//
// One set of statements with $n placeholders serves both engines; dialect.go holds the
// differences. A write is a function that first reads and then queues its statements (see
// tx.go). The engine runs them and commits before the write returns. The domain packages decide
// what to write; this package must not contain business rules.
package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/idempotency"
	"github.com/parley-dev/parley/internal/secret"
	"github.com/parley-dev/parley/internal/trace"
)

// Options configures a store.
type Options struct {
	Dir string // folder of the SQLite file; used when URL is empty
	URL string // postgres:// URL; takes precedence over Dir
	// ReplicaURL is the URL of a replica for slow reads that may see data which is some seconds old;
	// empty: none.
	ReplicaURL string
	ReadConns  int // read connections on SQLite, all connections on PostgreSQL; 0 means the default
	// SearchTimeout limits a search or another slow read, including the wait for a
	// connection; 0 means 5 seconds.
	SearchTimeout time.Duration
	// KeepOutcomes is how long the outcome of an idempotency key is kept; 0 means idempotency.TTL.
	KeepOutcomes time.Duration
	// Time limits on PostgreSQL for one statement, for the wait for locks and for the wait
	// for a connection; 0 means 10, 3 and 3 seconds.
	StatementTimeout, LockTimeout, AcquireTimeout time.Duration

	Log *slog.Logger     // nil: nothing is logged
	Now func() time.Time // nil: the system clock

	Tracer *trace.Tracer // nil: no spans

	Records Records // nil: events have no data
	// Keys encrypt secrets; nil or without keys: they are stored as they are. See sealedTables.
	Keys *secret.Keyring
	// SessionOf reports whether the data of a session has a membership of the user in the org, or of
	// any user if that is empty. nil: sessions of users and orgs that are erased end by themselves.
	SessionOf func(data []byte, org, user string) bool
	// Settle is how long a server may take to notice that the rights of a user who is erased have ended.
	Settle time.Duration

	Version string // version of this program, recorded for migrations and nodes
	Node    string // id of this server; empty for a command, for which migrations do not wait
	Locked  bool   // the caller holds LockDir of Dir
	Shred   bool   // on SQLite, overwrite what is deleted
	Migrate Policy

	schema []schemaFile // nil: those of this program
	fence  *fence
}

// Store is an open store. Its methods return the types of the domains.
type Store struct {
	*db
	met     *metrics
	fence   *fence
	report  Report
	node    string
	version string
	dir     string // of SQLite
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
	s.search.start()
	return s, nil
}

// prepare opens the store with any schema, and completes the options.
func prepare(ctx context.Context, o *Options) (*Store, error) {
	if o.schema == nil {
		var err error
		if o.schema, err = schemaFiles(); err != nil {
			return nil, err
		}
	}
	o.fence = newFence(len(o.schema))
	s := &Store{
		db:  &db{now: o.Now, hooks: newHooks(o.Records, o.Keys), claimer: o.Node, sessionOf: o.SessionOf, settle: o.Settle},
		met: newMetrics(), fence: o.fence, node: o.Node, version: o.Version, dir: o.Dir,
	}
	where := Options{Dir: o.Dir, URL: o.URL}
	s.used = func(ctx context.Context) (bool, error) { return s.inUse(ctx, where) }
	s.hooks.outcomes = cmp.Or(o.KeepOutcomes, idempotency.TTL)
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
			return nil, errors.New("the database URL must start with postgres://")
		}
		s.d = &postgresDialect
		var e *pg
		if e, err = openPostgres(ctx, *o, s.met, s.hooks); err != nil {
			return nil, err
		}
		if s.eng = e; e.pooled && o.Node != "" {
			s.claimer = noLockPrefix + o.Node
		}
	case o.Dir != "":
		if err := os.MkdirAll(o.Dir, 0o700); err != nil {
			return nil, fmt.Errorf("create the data folder: %w", err)
		}
		if err := createPrivate(filepath.Join(o.Dir, fileName)); err != nil {
			return nil, fmt.Errorf("create the store: %w", err)
		}
		s.d = &sqliteDialect
		s.eng, err = openSQLite(filepath.Join(o.Dir, fileName), *o, s.met, s.hooks)
	default:
		return nil, errors.New("no store: name a data folder or a database URL")
	}
	if err != nil {
		return nil, err
	}
	s.lane = newLane(s.eng.slowConns(), o.SearchTimeout)
	s.met.observeLane(s.lane)
	s.search = newSearchIndex(s.db, s.fence, o.Log)
	s.hooks.awaiting = s.search.added
	s.met.observeSearch(s.search)
	return s, nil
}

func (s *Store) migrate(ctx context.Context, o Options) error {
	return s.eng.migrate(ctx, func(m migrator) error { return s.migrateAll(ctx, m, o) })
}

// Close waits for running writes and closes all connections.
func (s *Store) Close() error {
	s.leave()
	s.search.close()
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
