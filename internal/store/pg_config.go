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
	// defaultConns lets 16 writes run at once, and leaves 4 connections to reads.
	defaultConns = 20
	// connectTimeout bounds a connection attempt to one host, unless the URL has a
	// connect_timeout.
	connectTimeout = 2 * time.Second
	// closeTimeout bounds what is done for a connection that is given up: the request
	// to cancel its statement, and reading what the server still sends. The pool counts
	// the connection until then.
	closeTimeout = time.Second
	// unacknowledged is how long the network may keep what was sent to the database.
	unacknowledged = 5 * time.Second

	defaultStatementTimeout = 10 * time.Second
	defaultLockTimeout      = 3 * time.Second
	defaultAcquireTimeout   = 3 * time.Second
	// shortLockWait is how long a write waits for a lock at first. See patience.
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

// parsePostgres reads the URL. What it names wins over the defaults here.
func parsePostgres(o Options) (*pgxpool.Config, error) {
	cfg, err := pgxpool.ParseConfig(o.URL)
	if err != nil {
		// The cause would repeat the address, password included.
		return nil, errors.New("the database address cannot be read; write postgres://user:password@host:5432/database")
	}
	if o.ReadConns > 0 {
		cfg.MaxConns = int32(min(o.ReadConns, 10_000)) // bounded above
	} else if cfg.MaxConns < defaultConns {
		cfg.MaxConns = defaultConns
	}
	cc := cfg.ConnConfig
	if cc.ConnectTimeout == 0 {
		cc.ConnectTimeout = connectTimeout
	}
	// Poolers take these two parameters at the start of a session, and refuse others.
	cc.RuntimeParams["application_name"] = "parley"
	cc.RuntimeParams["timezone"] = "UTC"
	if cc.ValidateConnect == nil && severalHosts(cc) {
		cc.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	cfg.PingTimeout = connectTimeout
	return cfg, nil
}

// severalHosts reports whether the URL names more than one server, of which only the
// primary is of use.
func severalHosts(cc *pgx.ConnConfig) bool {
	for _, f := range cc.Fallbacks { // also one host with and without TLS
		if f.Host != cc.Host || f.Port != cc.Port {
			return true
		}
	}
	return false
}

// execModeChosen reports whether the URL says how statements are sent.
func execModeChosen(rawURL string) bool {
	u, err := url.Parse(rawURL)
	return err == nil && u.Query().Has("default_query_exec_mode")
}

// pgSession is what a connection is told once, where sessions are ours.
type pgSession struct {
	seqScan         bool
	statement, lock time.Duration
}

func (s pgSession) sql() string {
	var b strings.Builder
	if !s.seqScan {
		// A statement that was planned while the tables were empty would keep scanning
		// them when they have grown; every list has an index to follow.
		b.WriteString("SET enable_seqscan = off; ")
	}
	fmt.Fprintf(&b, "SET statement_timeout = %d; SET lock_timeout = %d", s.statement.Milliseconds(), s.lock.Milliseconds())
	return b.String()
}

// dialWell makes cc use connections whose end is noticed, and that are given up
// quickly. A non-empty session is run on every new connection. cc must be used for
// one connection only.
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
		if connected.Load() { // it asks to cancel a statement
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

// hastyConn bounds how long the driver waits for a connection that it has given up,
// which is the only time that it sets a deadline far ahead.
type hastyConn struct{ net.Conn }

// SetDeadline implements net.Conn.
func (c hastyConn) SetDeadline(t time.Time) error {
	if most := time.Now().Add(closeTimeout); t.After(most) {
		t = most
	}
	return c.Conn.SetDeadline(t)
}

// behindPooler reports whether something between us and the server hands out
// sessions, as pgbouncer does: then the process that the connection was told of at
// its start is not the one that runs its statements.
func behindPooler(ctx context.Context, c *pgconn.PgConn) (bool, error) {
	results, err := c.Exec(ctx, "SELECT pg_backend_pid()").ReadAll()
	if err != nil {
		return false, err
	}
	if len(results) == 0 || len(results[0].Rows) == 0 {
		return false, errors.New("the database did not name its process")
	}
	return string(results[0].Rows[0][0]) != strconv.FormatUint(uint64(c.PID()), 10), nil
}
