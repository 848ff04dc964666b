package store

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// defaultConns allows 16 concurrent writes and leaves 4 connections to reads.
	defaultConns = 20
	// connectTimeout limits a connection attempt to one host, unless the URL has a
	// connect_timeout.
	connectTimeout = 2 * time.Second
	// closeTimeout limits the work for a connection that is given up: the request to cancel
	// its statement, and reading what the server still sends. The pool counts the connection
	// until then.
	closeTimeout = time.Second
	// unacknowledged is how long data sent to the database may stay unacknowledged.
	unacknowledged = 5 * time.Second

	defaultStatementTimeout = 10 * time.Second
	defaultLockTimeout      = 3 * time.Second
	defaultAcquireTimeout   = 3 * time.Second
	// shortLockWait is how long a write first waits for a lock; see pg.patience.
	shortLockWait = 100 * time.Millisecond
)

// pgLimits are the deadlines of one engine.
type pgLimits struct{ statement, lock, acquire time.Duration }

func (o Options) pgLimits() pgLimits {
	return pgLimits{
		statement: orDefault(o.StatementTimeout, defaultStatementTimeout),
		lock:      orDefault(o.LockTimeout, defaultLockTimeout),
		acquire:   orDefault(o.AcquireTimeout, defaultAcquireTimeout),
	}
}

func orDefault(d, otherwise time.Duration) time.Duration {
	if d <= 0 {
		return otherwise
	}
	return d
}

// parsePostgres parses the URL. Its parameters override the defaults.
func parsePostgres(o Options) (*pgxpool.Config, error) {
	cfg, err := pgxpool.ParseConfig(o.URL)
	if err != nil {
		// The cause would repeat the URL, including the password.
		return nil, errors.New("the database URL is malformed; write postgres://user:password@host:5432/database")
	}
	if o.ReadConns > 0 {
		cfg.MaxConns = int32(min(o.ReadConns, 10_000)) // cannot overflow
	} else if cfg.MaxConns < defaultConns {
		cfg.MaxConns = defaultConns
	}
	cc := cfg.ConnConfig
	if cc.ConnectTimeout == 0 {
		cc.ConnectTimeout = connectTimeout
	}
	// Poolers accept these two parameters at the start of a session, and refuse others.
	cc.RuntimeParams["application_name"] = "parley"
	cc.RuntimeParams["timezone"] = "UTC"
	if cc.ValidateConnect == nil && severalHosts(cc) {
		cc.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	cfg.PingTimeout = connectTimeout
	return cfg, nil
}

// severalHosts reports whether the URL names more than one server. Only the primary is usable
// then.
func severalHosts(cc *pgx.ConnConfig) bool {
	for _, f := range cc.Fallbacks { // one host with and without TLS is a fallback, too
		if f.Host != cc.Host || f.Port != cc.Port {
			return true
		}
	}
	return false
}

// execModeChosen reports whether the URL sets how statements are sent.
func execModeChosen(rawURL string) bool {
	u, err := url.Parse(rawURL)
	return err == nil && u.Query().Has("default_query_exec_mode")
}

// sessionChosen reports whether the URL says which of several servers to use.
func sessionChosen(rawURL string) bool {
	u, err := url.Parse(rawURL)
	return err == nil && u.Query().Has("target_session_attrs")
}

// idleTimeout is how long a transaction may wait for this process, after which PostgreSQL ends it. A
// process that is frozen in the middle of a write would keep its locks from all other nodes.
const idleTimeout = 5 * time.Second

// pgSession holds the settings of a session, used if there is no pooler.
type pgSession struct {
	seqScan bool
	// anyPlan lets PostgreSQL plan a statement for its parameters. Otherwise it plans once: it would
	// plan each read of a task's log anew, because it takes a plan for all partitions to read them all.
	anyPlan         bool
	statement, lock time.Duration
}

func (s pgSession) sql() string {
	var b strings.Builder
	if !s.seqScan {
		// A statement that was planned while the tables were empty would still scan them after
		// they have grown. Every list has an index to use instead.
		b.WriteString("SET enable_seqscan = off; ")
	}
	// A table that is scanned nevertheless, because it has one row, seems so expensive to PostgreSQL
	// that it would compile the statement, for a hundred milliseconds each time.
	b.WriteString("SET jit = off; ")
	if !s.anyPlan {
		b.WriteString("SET plan_cache_mode = force_generic_plan; ")
	}
	fmt.Fprintf(&b, "SET statement_timeout = %d; SET lock_timeout = %d; SET idle_in_transaction_session_timeout = %d",
		s.statement.Milliseconds(), s.lock.Milliseconds(), idleTimeout.Milliseconds())
	return b.String()
}

// dialWell configures cc so that a lost connection is noticed and given up quickly. A non-empty
// session is run on every new connection. cc must be used for one connection only.
func dialWell(cc *pgx.ConnConfig, hosts *pgHosts, session string) {
	var connected atomic.Bool
	a := &attempt{hosts: hosts}
	cc.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		d := net.Dialer{
			Timeout:         cc.ConnectTimeout,
			KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: unacknowledged, Interval: time.Second, Count: 3},
		}
		if strings.HasPrefix(network, "tcp") {
			d.Control = limitUnacknowledged(unacknowledged)
		}
		if connected.Load() { // the driver dials to cancel a statement
			d.Timeout = closeTimeout
		} else if err := a.try(addr, time.Now()); err != nil {
			return nil, err
		}
		conn, err := d.DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		if connected.Load() {
			err = conn.SetDeadline(time.Now().Add(closeTimeout))
		}
		return hastyConn{conn}, err
	}
	cc.AfterConnect = func(ctx context.Context, c *pgconn.PgConn) error {
		connected.Store(true)
		a.succeed(time.Now())
		if session == "" {
			return nil
		}
		_, err := c.Exec(ctx, session).ReadAll()
		return err
	}
}

// hastyConn limits how long the driver waits for a connection that it gives up. Only then does
// the driver set a deadline far ahead.
type hastyConn struct{ net.Conn }

// SetDeadline implements net.Conn.
func (c hastyConn) SetDeadline(t time.Time) error {
	if most := time.Now().Add(closeTimeout); t.After(most) {
		t = most
	}
	return c.Conn.SetDeadline(t)
}

// behindPooler reports whether a pooler such as pgbouncer shares sessions. Then the process id
// that the connection got at its start is not that of the process that runs its statements.
func behindPooler(ctx context.Context, c *pgconn.PgConn) (bool, error) {
	results, err := c.Exec(ctx, "SELECT pg_backend_pid()").ReadAll()
	if err != nil {
		return false, err
	}
	if len(results) == 0 || len(results[0].Rows) == 0 {
		return false, errors.New("PostgreSQL returned no row for pg_backend_pid()")
	}
	return string(results[0].Rows[0][0]) != strconv.FormatUint(uint64(c.PID()), 10), nil
}
