package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgxpool"
)

// pg is the PostgreSQL engine. Any number of nodes may share one database.
type pg struct {
	pool     *pgxpool.Pool
	slowPool *pgxpool.Pool // see lane.go
	// writes holds a token for every write that may run: fewer than the pool has
	// connections, so that writes that wait for locks leave some to the reads.
	writes  chan struct{}
	adder   *adder
	revoked *revocations
	fence   *fence
}

const (
	// slots is over how many rows a counter is spread, so that writers of one org
	// do not queue for one row.
	slots = 16
	// writeTimeout bounds a write from begin to commit, whatever the request's
	// context does.
	writeTimeout = 30 * time.Second
	maxTries     = 10
	// defaultConns lets 16 writes run at once, and leaves 4 connections to reads.
	defaultConns = 20
	// maxSlowConns bounds the connections of slow reads, beside a quarter of the pool.
	maxSlowConns = 4
)

func openPostgres(ctx context.Context, o Options, met *metrics, revoked *revocations) (*pg, error) {
	cfg, err := pgxpool.ParseConfig(o.URL)
	if err != nil {
		// The cause would repeat the address, password included.
		return nil, errors.New("the database address cannot be read; write postgres://user:password@host:5432/database")
	}
	if o.ReadConns > 0 {
		cfg.MaxConns = int32(min(o.ReadConns, 10_000)) //nolint:gosec // bounded above
	} else if cfg.MaxConns < defaultConns {
		cfg.MaxConns = defaultConns
	}
	// A statement that was planned while the tables were empty would keep scanning
	// them when they have grown; every list has an index to follow.
	cfg.ConnConfig.RuntimeParams["enable_seqscan"] = "off"
	cfg.ConnConfig.RuntimeParams["application_name"] = "parley"
	cfg.ConnConfig.RuntimeParams["timezone"] = "UTC"
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, fmt.Errorf("connect to PostgreSQL at %s: %w", cfg.ConnConfig.Host, err)
	}
	slow, err := openSlowPool(ctx, cfg, o)
	if err != nil {
		pool.Close()
		return nil, err
	}
	met.observePool(pool)
	e := &pg{pool: pool, slowPool: slow, revoked: revoked, writes: make(chan struct{}, maxWrites(cfg.MaxConns)), fence: o.fence}
	e.adder = newAdder(e, met)
	met.observeQueue(e.adder.queue)
	return e, nil
}

// openSlowPool opens the second, small pool. The server cancels a statement whose
// context ends, and the connection stays usable; statement_timeout ends a statement
// whose client has vanished.
func openSlowPool(ctx context.Context, cfg *pgxpool.Config, o Options) (*pgxpool.Pool, error) {
	timeout := o.SearchTimeout
	if timeout <= 0 {
		timeout = defaultSlowTimeout
	}
	cfg = cfg.Copy()
	cfg.MaxConns = max(1, min(maxSlowConns, cfg.MaxConns/4))
	cfg.MinConns, cfg.MinIdleConns = 0, 0
	cfg.ConnConfig.RuntimeParams["statement_timeout"] = strconv.FormatInt((timeout + time.Second).Milliseconds(), 10)
	cfg.ConnConfig.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: c, DeadlineDelay: time.Second}
	}
	return pgxpool.NewWithConfig(ctx, cfg)
}

func (e *pg) slow() reader { return guarded{pgPool{e.slowPool}, e.fence} }

func (e *pg) slowConns() int { return int(e.slowPool.Config().MaxConns) }

// maxWrites is how many of the pool's connections may write: four fifths.
func maxWrites(conns int32) int32 { return max(1, conns-max(1, conns/5)) }

// acquireWrite takes a connection for a write; release gives it back.
func (e *pg) acquireWrite(ctx context.Context) (conn *pgxpool.Conn, release func(), err error) {
	select {
	case e.writes <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	if conn, err = e.pool.Acquire(ctx); err != nil {
		<-e.writes
		return nil, nil, err
	}
	return conn, func() {
		conn.Release()
		<-e.writes
	}, nil
}

func (e *pg) query(ctx context.Context, sql string, args ...any) (rows, error) {
	return guarded{pgPool{e.pool}, e.fence}.query(ctx, sql, args...)
}

// write runs fn in a transaction of its own. When it lost a race against another
// transaction it is run again.
func (e *pg) write(ctx context.Context, fn func(*tx) error) error {
	if err := e.fence.err(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	for try := 1; ; try++ {
		err := e.writeOnce(ctx, fn)
		if try == maxTries || !retryable(err) {
			return translate(err)
		}
		pause := time.Duration(rand.IntN(try*2000)) * time.Microsecond //nolint:gosec // jitter
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return translate(err)
		}
	}
}

func (e *pg) writeOnce(ctx context.Context, fn func(*tx) error) error {
	conn, release, err := e.acquireWrite(ctx)
	if err != nil {
		return err
	}
	defer release()
	moved, err := e.fence.begin(ctx, conn.Conn())
	t := newTx(pgConn{conn, ctx}, &postgresDialect)
	switch {
	case err != nil:
	case moved:
		err = e.fence.refuse(ctx, t)
	default:
		err = decide(t, fn)
	}
	if err == nil {
		t.finish()
		t.exec("COMMIT")
		err = send(ctx, conn.Conn(), t.statements)
		e.revoked.tell(t) // also after an error: a connection can break behind the commit
	}
	if err != nil {
		// A connection that cannot even roll back is closed by the pool.
		_, _ = conn.Exec(ctx, "ROLLBACK")
	}
	return err
}

// finish queues what every write ends with: counters, then data versions, each
// in a fixed order.
func (t *tx) finish() {
	slot := rand.IntN(slots) //nolint:gosec // spreads load
	t.flushCounts(slot)
	orgs := make([]string, 0, len(t.touched))
	for org := range t.touched {
		orgs = append(orgs, org)
	}
	slices.Sort(orgs)
	for _, org := range orgs {
		t.exec(`INSERT INTO data_versions (org_id, slot, version) VALUES ($1, $2, 1)
			ON CONFLICT (org_id, slot) DO UPDATE SET version = data_versions.version + 1`, org, slot)
	}
}

// send runs the statements in one round trip. Without a BEGIN among them or
// before, PostgreSQL runs them as one transaction.
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

// readySearch has nothing to do: the words of a proposal are written with it.
func (e *pg) readySearch(context.Context, string) error { return nil }

func (e *pg) dataVersion(ctx context.Context, org string) (uint64, error) {
	var v int64
	_, err := one(ctx, e, []any{&v}, `SELECT CAST(coalesce(sum(version), 0) AS BIGINT) FROM data_versions WHERE org_id = $1`, org)
	return uint64(v), err //nolint:gosec // a count of changes
}

func (e *pg) migrate(ctx context.Context, fn func(migrator) error) error {
	return pgx.BeginFunc(ctx, e.pool, func(t pgx.Tx) error {
		exec := func(sql string, args ...any) error {
			_, err := t.Exec(ctx, sql, args...)
			return err
		}
		if err := exec(`SELECT pg_advisory_xact_lock($1)`, int64(migrationLock)); err != nil {
			return err
		}
		return fn(migrator{
			reader: pgTx{t}, exec: exec,
			stopWriters: func() error { return exec(`SELECT pg_advisory_xact_lock($1)`, int64(writersLock)) },
			others:      func(schema int) ([]Node, error) { return aliveNodes(ctx, pgTx{t}, schema) },
		})
	})
}

func (e *pg) ping(ctx context.Context) error {
	var n int
	_, err := one(ctx, e, []any{&n}, `SELECT count(*) FROM identity_epoch`)
	return err
}

func (e *pg) close() error {
	e.adder.close()
	e.slowPool.Close()
	e.pool.Close()
	return nil
}

// pgPool reads on any connection of a pool.
type pgPool struct{ *pgxpool.Pool }

func (p pgPool) query(ctx context.Context, sql string, args ...any) (rows, error) {
	rs, err := p.Query(ctx, sql, args...)
	return rs, translate(err)
}

// pgConn reads inside a write. It listens to the write's context, not to the
// request's: a caller going away must not break the connection in mid-transaction.
type pgConn struct {
	conn *pgxpool.Conn
	ctx  context.Context //nolint:containedctx // see above
}

func (c pgConn) query(_ context.Context, sql string, args ...any) (rows, error) {
	return c.conn.Query(c.ctx, sql, args...)
}

// pgTx reads inside the migration.
type pgTx struct{ pgx.Tx }

func (c pgTx) query(ctx context.Context, sql string, args ...any) (rows, error) {
	return c.Query(ctx, sql, args...)
}
