package store

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	replicaEvery = time.Second
	// maxLag is how old the data of a replica may be. A node tells the time about every second, so the
	// lag that is measured can be larger by as much.
	maxLag = 5 * time.Second
	// maxReplicaSkew is how far the replica's clock may be behind that of the database: it would hide as much of
	// the lag.
	maxReplicaSkew = time.Second
)

// replica serves reads that may be stale from a copy of the database that follows it, while it follows closely. At
// other times they use the database itself.
type replica struct {
	pool    *connPool
	connect func(context.Context) (*pgx.Conn, error)
	node    string
	log     *slog.Logger

	usable atomic.Bool
	lag    atomic.Int64 // in microseconds; negative: unknown
	stop   context.CancelFunc
	done   sync.WaitGroup
}

// openReplica needs no replica that responds: it is used as soon as it does.
func (e *pg) openReplica(ctx context.Context, o Options, session pgSession) (*replica, error) {
	primary := o.URL
	o.URL = o.ReplicaURL
	cfg, err := parsePostgres(o)
	if err != nil {
		return nil, fmt.Errorf("the URL of the replica: %w", err)
	}
	if !sessionChosen(o.URL) {
		cfg.ConnConfig.ValidateConnect = nil // which wants a server that accepts writes
	}
	if e.pooled && !execModeChosen(primary) && !execModeChosen(o.URL) {
		cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	}
	hosts := new(pgHosts)
	r := &replica{node: o.Node, log: o.Log}
	r.lag.Store(-1)
	r.connect = dialer(cfg, hosts)
	r.pool, err = e.openPool(ctx, slowConfig(cfg), hosts, session)
	return r, err
}

// dialer returns a function that opens connections outside of a pool.
func dialer(cfg *pgxpool.Config, hosts *pgHosts) func(context.Context) (*pgx.Conn, error) {
	bare := cfg.ConnConfig.Copy()
	return func(ctx context.Context) (*pgx.Conn, error) {
		cc := bare.Copy()
		dialWell(cc, hosts, "")
		return pgx.ConnectConfig(ctx, cc)
	}
}

// start begins to watch the replica.
func (r *replica) start() {
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	r.done.Go(func() { r.watch(ctx) })
}

func (r *replica) watch(ctx context.Context) {
	tick := time.NewTicker(replicaEvery)
	defer tick.Stop()
	var conn *pgx.Conn
	for {
		conn = r.look(ctx, conn)
		select {
		case <-ctx.Done():
			if conn != nil {
				closeSoon(conn)
			}
			return
		case <-tick.C:
		}
	}
}

// readLag reads how long ago the node told the time to the database, according to the replica.
const readLag = `SELECT ` + postgresClock + ` - seen_at FROM nodes WHERE id = $1`

// look decides whether the replica can be used. It returns the connection for the next look, or nil for
// a new one.
func (r *replica) look(ctx context.Context, conn *pgx.Conn) *pgx.Conn {
	limited, cancel := context.WithTimeout(ctx, pulseTimeout)
	defer cancel()
	lag := int64(-1)
	var err error
	if conn == nil {
		conn, err = r.connect(limited)
	}
	if err == nil {
		err = conn.QueryRow(limited, readLag, pgx.QueryExecModeExec, r.node).Scan(&lag)
	}
	if err != nil && conn != nil {
		closeSoon(conn)
		conn = nil
	}
	if ctx.Err() == nil {
		r.judge(lag, err)
	}
	return conn
}

func (r *replica) judge(lag int64, err error) {
	r.lag.Store(lag)
	usable := err == nil && lag <= (maxLag+replicaEvery).Microseconds() && lag >= -maxReplicaSkew.Microseconds()
	switch was := r.usable.Swap(usable); {
	case usable && !was:
		r.log.Info("reads that may be stale use the replica", "lag", time.Duration(lag)*time.Microsecond)
	case was && err != nil:
		r.log.Warn("the replica cannot be used; all reads use the database itself", "error", err)
	case was && !usable:
		r.log.Warn("the replica, or its clock, is too far behind; all reads use the database itself", "lag", time.Duration(lag)*time.Microsecond)
	}
}

func (r *replica) close() {
	if r.stop != nil {
		r.stop()
		r.done.Wait()
	}
	r.pool.Close()
}

// staleReads reads on the replica, or on the connections for slow reads.
type staleReads struct{ slowReads }

func (s staleReads) query(ctx context.Context, sql string, args ...any) (rows, error) {
	if rs, done, err := s.eng.replica.query(ctx, s.eng, sql, args); done {
		return rs, err
	}
	return s.slowReads.query(ctx, sql, args...)
}

// query runs a read on the replica. It reports false if the caller must use the database itself.
func (r *replica) query(ctx context.Context, e *pg, sql string, args []any) (rows, bool, error) {
	if r == nil || !r.usable.Load() {
		return nil, false, nil
	}
	rs, err := e.read(ctx, r.pool, e.slowLimit, sql, args)
	first := false
	if err == nil {
		if first = rs.Next(); !first {
			err = rs.Err()
		}
		if err != nil {
			rs.Close()
		}
	}
	switch {
	case err == nil:
		return &replicaRows{rows: rs, first: first}, true, nil
	case ctx.Err() != nil:
		return nil, true, ctx.Err()
	case isCode(err, "57014"): // it would take too long elsewhere, too
		return nil, true, err
	case e.fence.err() != nil:
		return nil, true, e.fence.err()
	}
	r.usable.Store(false) // until the next look
	return nil, false, nil
}

// replicaRows are rows of a replica, which may end a read to follow the database.
type replicaRows struct {
	rows
	first bool // the first row was read, and not yet returned
}

// Next implements rows.
func (r *replicaRows) Next() bool {
	if r.first {
		r.first = false
		return true
	}
	return r.rows.Next()
}

// Err implements rows.
func (r *replicaRows) Err() error {
	err := r.rows.Err()
	if isCode(err, "40001") || isCode(err, "40P01") {
		return unavailable(err, faultBusy)
	}
	return err
}
