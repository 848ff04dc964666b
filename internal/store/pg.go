package store

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-dev/parley/internal/proposal"
	"github.com/parley-dev/parley/internal/trace"
)

// pg is the PostgreSQL engine. Any number of nodes may share one database.
type pg struct {
	pool      *connPool
	slowPool  *connPool // see lane.go
	replica   *replica  // nil: none
	slowLimit time.Duration
	leashes   *leashes
	turns     atomic.Pointer[turn]
	limits    pgLimits
	hosts     pgHosts
	// pooled is set if a pooler such as pgbouncer shares sessions. Then nothing can be kept
	// in a session: no settings, no LISTEN, no prepared statements.
	pooled bool
	pulse  *pulse
	probe  *pgProbe
	// writes holds a token for every running write. It has fewer tokens than the pool has
	// connections, so that writes that wait for locks leave some to the reads.
	writes chan struct{}
	// patience holds a token for every write that may wait long for a lock. All others wait
	// shortly, return their connection and queue for a token. So writes that need a locked
	// row leave connections to writes that do not.
	patience chan struct{}
	adder    *adder
	updater  *updater
	versions *dataVersions
	hooks    *hooks
	numbers  *versionReads // shared runs of numberAll
	numberer *numberer
	stats    *statistics
	tracer   *trace.Tracer // nil: no spans
	fence    *fence

	reset atomic.Int64 // when the pools were last reset, in Unix microseconds
}

const (
	// slots is the number of rows of one counter, so that writers of one org do not queue
	// for one row.
	slots = 16
	// writeTimeout limits a write from begin to commit, independent of the request's
	// context.
	writeTimeout = 30 * time.Second
	maxTries     = 10
	// maxSlowConns limits the connections for slow reads, besides a quarter of the pool and
	// the number of processors: this process decodes and encodes what they return.
	maxSlowConns = 4
)

func openPostgres(ctx context.Context, o Options, met *metrics, hooks *hooks) (_ *pg, err error) {
	cfg, err := parsePostgres(o)
	if err != nil {
		return nil, err
	}
	first, err := connectFirst(ctx, cfg)
	if err != nil {
		return nil, err
	}
	e := &pg{
		limits: o.pgLimits(), hooks: hooks, fence: o.fence, tracer: o.Tracer,
		writes: make(chan struct{}, maxWrites(cfg.MaxConns)),
	}
	e.patience = make(chan struct{}, max(1, cap(e.writes)/4))
	e.leashes = newLeashes()
	e.versions = newDataVersions(e)
	e.numbers = newVersionReads(e.numberAll)
	e.numberer = newNumberer(e, hooks, o.Log)
	e.stats = &statistics{eng: e, log: o.Log}
	defer func() {
		if err != nil {
			closeSoon(first)
			e.closePools()
		}
	}()
	if e.pooled, err = behindPooler(ctx, first.PgConn()); err != nil {
		return nil, err
	}
	if e.pooled && !execModeChosen(o.URL) {
		cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	}
	if e.pooled {
		o.Log.Info("PostgreSQL is behind a connection pooler: sessions hold no state, and other nodes are polled")
	}
	session := pgSession{statement: e.limits.statement, lock: shortLockWait}
	if e.pool, err = e.openPool(ctx, cfg, &e.hosts, session); err != nil {
		return nil, err
	}
	slowTimeout := orDefault(o.SearchTimeout, defaultSlowTimeout)
	e.slowLimit = slowTimeout + 2*time.Second // after the other limits, which keep the connection open
	slow := pgSession{anyPlan: true, statement: slowTimeout + time.Second, lock: shortLockWait}
	if e.slowPool, err = e.openPool(ctx, slowConfig(cfg), &e.hosts, slow); err != nil {
		return nil, err
	}
	if o.ReplicaURL != "" {
		if e.replica, err = e.openReplica(ctx, o, slow); err != nil {
			return nil, err
		}
		met.observeReplica(e.replica)
	}
	connect := dialer(cfg, &e.hosts)
	// The connection of the pulse shows other nodes that this one runs; see claims.go.
	hold := func(ctx context.Context, conn *pgx.Conn) error {
		if o.Node == "" || e.pooled {
			return nil
		}
		_, err := conn.Exec(ctx, holdNode, o.Node)
		return err
	}
	if err := hold(ctx, first); err != nil {
		return nil, fmt.Errorf("lock the name of this node: %w", err)
	}
	e.pulse = newPulse(func(ctx context.Context) (*pgx.Conn, error) {
		conn, err := connect(ctx)
		if err == nil {
			if err = hold(ctx, conn); err != nil {
				closeSoon(conn)
				conn = nil
			}
		}
		return conn, err
	}, e.leashes.pullAll, e.resetPools)
	e.probe = &pgProbe{connect: connect, pulse: e.pulse, onReadOnly: e.failOver, one: make(chan struct{}, 1)}
	e.pulse.start(first)
	met.observePool(e.pool)
	e.adder, e.updater = newAdder(e, newPacedQueue(met, o.Tracer)), newUpdater(e, newPacedQueue(met, o.Tracer))
	met.observeQueue(e.adder.queue, e.updater.queue)
	return e, nil
}

// connectFirst makes the first connection, which shows whether there is a database at all. Error
// messages of the driver contain the host and the user, but not the password.
func connectFirst(ctx context.Context, cfg *pgxpool.Config) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	cc := cfg.ConnConfig.Copy()
	dialWell(cc, new(pgHosts), "")
	conn, err := pgx.ConnectConfig(ctx, cc)
	if err != nil {
		return nil, fmt.Errorf("connect to PostgreSQL at %s: %w", cfg.ConnConfig.Host, err)
	}
	return conn, nil
}

func (e *pg) openPool(ctx context.Context, cfg *pgxpool.Config, hosts *pgHosts, s pgSession) (*connPool, error) {
	session := ""
	if !e.pooled {
		session = s.sql()
	}
	cfg = cfg.Copy()
	cfg.BeforeConnect = func(_ context.Context, cc *pgx.ConnConfig) error {
		dialWell(cc, hosts, session)
		return nil
	}
	cfg.AfterConnect = func(_ context.Context, c *pgx.Conn) error {
		e.leashes.add(c)
		return nil
	}
	cfg.BeforeClose = e.leashes.remove
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return newConnPool(pool), nil
}

// slowConfig is the configuration of the second, small pool. The server cancels a statement
// whose context ends, and the connection stays usable. statement_timeout ends a statement whose
// client has vanished.
func slowConfig(cfg *pgxpool.Config) *pgxpool.Config {
	cfg = cfg.Copy()
	cfg.MaxConns = max(1, min(maxSlowConns, cfg.MaxConns/4, int32(runtime.GOMAXPROCS(0))))
	cfg.MinConns, cfg.MinIdleConns = 0, 0
	cfg.ConnConfig.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: c, DeadlineDelay: time.Second}
	}
	return cfg
}

func (e *pg) slow() reader { return slowReads{e} }

func (e *pg) stale() reader { return staleReads{slowReads{e}} }

func (e *pg) slowConns() int { return cap(e.slowPool.tokens) }

// maxWrites returns how many of the pool's connections may write: four fifths.
func maxWrites(conns int32) int32 { return max(1, conns-max(1, conns/5)) }

// resetPools closes the connections as they become idle. New ones may reach another server.
func (e *pg) resetPools() {
	e.pool.Reset()
	e.slowPool.Reset()
}

// failOver looks for another primary after a write was refused as read-only. If there is none,
// the next refusal must not reopen all connections at once.
func (e *pg) failOver() {
	now, last := time.Now().UnixMicro(), e.reset.Load()
	if now-last >= time.Second.Microseconds() && e.reset.CompareAndSwap(last, now) {
		e.resetPools()
	}
}

func (e *pg) query(ctx context.Context, sql string, args ...any) (rows, error) {
	return e.read(ctx, e.pool, e.limits.statement, sql, args)
}

// finish queues the last statements of every write: counters, then data versions and events, each
// in a fixed order.
func (t *tx) finish(conn *pgx.Conn) {
	// The process ids of connections are mostly consecutive, so few concurrent transactions share a
	// slot (behind a pooler they are random).
	slot := int(conn.PgConn().PID() % slots)
	t.flushCountsAtOnce(slot)
	t.flushAwaiting()
	var last []statement
	for _, org := range slices.Sorted(slices.Values(t.touched)) {
		last = append(last, statement{sql: newVersion, args: []any{org, slot}})
	}
	last = append(last, insertPacks(packs(t.events))...)
	t.statements = bundle(t.statements, last)
}

// newVersion counts a change of an org's proposals.
const newVersion = `INSERT INTO data_versions (org_id, slot, version) VALUES ($1, $2, 1)
	ON CONFLICT (org_id, slot) DO UPDATE SET version = data_versions.version + 1`

// send runs the statements in one round trip. Without a BEGIN, PostgreSQL runs them as one
// transaction.
func send(ctx context.Context, conn *pgx.Conn, ss []statement) (err error) {
	if len(ss) == 0 {
		return nil
	}
	var b pgx.Batch
	for _, s := range ss {
		b.Queue(s.sql, s.args...)
	}
	results := conn.SendBatch(ctx, &b)
	defer func() { err = errors.Join(err, results.Close()) }()
	for range ss {
		if _, err := results.Exec(); err != nil {
			return err
		}
	}
	return nil
}

func (e *pg) add(ctx context.Context, fn func(*tx) error) error {
	return translate(e.adder.do(ctx, fn))
}

func (e *pg) change(ctx context.Context, c *change) error {
	return translate(e.updater.doChange(ctx, c))
}

func (e *pg) dataVersion(ctx context.Context, org string) (uint64, error) {
	return e.versions.get(ctx, org)
}

func (e *pg) seenVersion(org string) proposal.SeenVersion { return e.versions.last(org) }

func (e *pg) migrate(ctx context.Context, fn func(migrator) error) error {
	err := pgx.BeginFunc(ctx, e.pool.Pool, func(t pgx.Tx) error {
		// The duration of a migration depends on the data, so it has no time limit.
		const noLimits = `SELECT set_config('statement_timeout', '0', true), set_config('lock_timeout', '0', true),
			set_config('idle_in_transaction_session_timeout', '0', true)`
		if _, err := t.Exec(ctx, noLimits); err != nil {
			return err
		}
		exec := func(sql string, args ...any) error {
			_, err := t.Exec(ctx, sql, args...)
			return err
		}
		if err := exec(`SELECT pg_advisory_xact_lock($1)`, int64(migrationLock)); err != nil {
			return err
		}
		return fn(migrator{
			reader: pgTx{t}, exec: exec,
			stopWriters: func() error {
				for _, s := range stopWriters {
					if err := exec(s.sql, s.args...); err != nil {
						return err
					}
				}
				return nil
			},
			others: func(schema int) ([]Node, error) { return aliveNodes(ctx, pgTx{t}, schema) },
		})
	})
	if err == nil {
		e.numberer.start()
		e.stats.start()
		if e.replica != nil {
			e.replica.start()
		}
	}
	return err
}

// committed runs after a commit, or if it is unknown whether a write was committed.
func (e *pg) committed(t *tx) {
	e.hooks.tellRevoked(t)
	e.hooks.awaiting(t.awaiting)
	for _, org := range t.touched {
		e.versions.seenOf(org).changes.Add(1)
	}
	e.numberer.committed(t)
}

func (e *pg) ping(ctx context.Context) error { return e.probe.check(ctx) }

func (e *pg) close() error {
	e.adder.close()
	e.updater.close()
	e.numberer.close()
	e.stats.close()
	e.pulse.close()
	e.probe.close()
	e.closePools()
	return nil
}

func (e *pg) closePools() {
	e.leashes.close()
	if e.replica != nil {
		e.replica.close()
	}
	if e.slowPool != nil {
		e.slowPool.Close()
	}
	if e.pool != nil {
		e.pool.Close()
	}
}

// pgTx reads inside the transaction of a migration.
type pgTx struct{ pgx.Tx }

func (c pgTx) query(ctx context.Context, sql string, args ...any) (rows, error) {
	return c.Query(ctx, sql, args...)
}
