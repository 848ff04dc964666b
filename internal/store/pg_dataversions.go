package store

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-dev/parley/internal/proposal"
)

// dataVersions reads the data versions of orgs for many callers. A running read may miss a write
// that finished before a caller asked. So callers that arrive during a read share the next one,
// which starts when it ends. There is one read at a time for all orgs, however many callers.
//
// Most reads find that nothing was written in the whole database: PostgreSQL's snapshot is the same
// as that of the last read on the same connection. Then all versions are the same too. That costs
// half of what a version costs.
type dataVersions struct {
	eng  *pg
	seen sync.Map // org → *seenVersion

	mu      sync.Mutex
	waiting map[string]*versionRead // the next read, by org
	running bool

	// Used by the running read only.
	conn     *pgx.Conn // on which the versions were read
	snapshot string    // with which they were read
	known    map[string]uint64
}

// seenVersion is what this process knows of an org's changes without a query. It is small, and one is
// kept for each org that the process has served.
type seenVersion struct {
	version atomic.Pointer[uint64] // the last one that was read; nil: none
	changes atomic.Uint64          // commits of this process
	asked   atomic.Uint64          // the changes for which the version was read again, or will be
}

func (v *dataVersions) seenOf(org string) *seenVersion {
	s, ok := v.seen.Load(org)
	if !ok {
		s, _ = v.seen.LoadOrStore(org, new(seenVersion))
	}
	return s.(*seenVersion)
}

// last returns what was read last. After a change by this process it has the version read again, without
// waiting for it.
func (v *dataVersions) last(org string) proposal.SeenVersion {
	s := v.seenOf(org)
	version, out := s.version.Load(), proposal.SeenVersion{Changes: s.changes.Load()}
	if s.asked.Load() != out.Changes && s.asked.Swap(out.Changes) != out.Changes {
		v.ask(org)
	}
	if version != nil {
		out.Version, out.Known = *version, true
	}
	return out
}

const (
	// versionBurst is how long one connection is used for consecutive reads.
	versionBurst = time.Second
	// maxVersions limits the orgs whose versions are kept.
	maxVersions = 10_000
)

func newDataVersions(e *pg) *dataVersions {
	return &dataVersions{eng: e, waiting: map[string]*versionRead{}, known: map[string]uint64{}}
}

// get returns the data version at some time after the call.
func (v *dataVersions) get(ctx context.Context, org string) (uint64, error) {
	r := v.ask(org)
	select {
	case <-r.done:
		return r.version, r.err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// ask returns the next read of the org's version, which starts when the running one ends.
func (v *dataVersions) ask(org string) *versionRead {
	v.mu.Lock()
	defer v.mu.Unlock()
	r := v.waiting[org]
	if r == nil {
		r = &versionRead{done: make(chan struct{})}
		v.waiting[org] = r
	}
	if !v.running {
		v.running = true
		go v.serve() // independent of the callers' contexts, which may all end
	}
	return r
}

// serve reads until no caller waits.
func (v *dataVersions) serve() {
	for more := true; more; {
		until := time.Now().Add(versionBurst)
		h, err := v.eng.acquire(context.Background(), v.eng.pool, until.Add(v.eng.limits.statement))
		if err == nil {
			err = v.eng.fence.err()
		}
		if err != nil {
			more = v.next(func(map[string]*versionRead) error { return err })
		}
		for more && err == nil && time.Now().Before(until) {
			more = v.next(func(round map[string]*versionRead) error {
				err = h.blame(context.Background(), v.read(h.Conn.Conn(), round))
				return err
			})
		}
		h.release()
	}
}

// next completes the reads that callers wait for. If there are none, it reports false, and the next
// caller starts serve again.
func (v *dataVersions) next(read func(map[string]*versionRead) error) bool {
	v.mu.Lock()
	round := v.waiting
	if len(round) == 0 {
		v.running = false
		v.mu.Unlock()
		return false
	}
	v.waiting = make(map[string]*versionRead, len(round))
	v.mu.Unlock()
	err := read(round)
	for org, r := range round {
		if r.err = err; err == nil {
			v.seenOf(org).version.Store(&r.version)
		}
		close(r.done)
	}
	return true
}

// read reads the versions of the orgs, unless those that are known are still valid.
func (v *dataVersions) read(conn *pgx.Conn, round map[string]*versionRead) (err error) {
	defer func() {
		if err != nil {
			v.forget(nil)
		}
	}()
	ctx := context.Background()
	if conn != v.conn || v.eng.pooled || len(v.known) > maxVersions { // a pooler may connect to another server
		v.forget(conn)
	}
	if v.snapshot != "" {
		var now string
		if err := conn.QueryRow(ctx, `SELECT pg_current_snapshot()::text`).Scan(&now); err != nil {
			return err
		}
		if now != v.snapshot {
			v.forget(conn)
		}
	}
	var orgs []string
	for org, r := range round {
		version, ok := v.known[org]
		if r.version = version; !ok {
			orgs = append(orgs, org)
		}
	}
	if len(orgs) == 0 {
		return nil
	}
	return v.readAll(ctx, conn, orgs, round)
}

// readAll reads the versions of orgs: the number of changes plus the time when PostgreSQL was started. The
// number alone could come back after a failover or a restore that lost commits, for other data.
func (v *dataVersions) readAll(
	ctx context.Context, conn *pgx.Conn, orgs []string, round map[string]*versionRead,
) error {
	found, err := conn.Query(ctx, `SELECT o.org_id, pg_current_snapshot()::text, CAST(coalesce((SELECT sum(version)
			FROM data_versions d WHERE d.org_id = o.org_id), 0) AS BIGINT)
			+ CAST(extract(epoch FROM pg_postmaster_start_time()) * 1000000 AS BIGINT)
		FROM unnest($1::text[]) AS o (org_id)`, orgs)
	if err != nil {
		return err
	}
	defer found.Close()
	for found.Next() {
		var org, snapshot string
		var version int64
		if err := found.Scan(&org, &snapshot, &version); err != nil {
			return err
		}
		if snapshot != v.snapshot { // those that are known were read earlier
			clear(v.known)
			v.snapshot = snapshot
		}
		v.known[org] = uint64(version) // both terms are positive
		round[org].version = v.known[org]
	}
	return found.Err()
}

// forget drops the known versions. The next ones are read on conn.
func (v *dataVersions) forget(conn *pgx.Conn) {
	v.conn, v.snapshot = conn, ""
	clear(v.known)
}
