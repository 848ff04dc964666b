package store

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// insertPacks returns the inserts of packs, which have no numbers yet. To number them here would
// need a lock until the commit, so that an org could not share commits.
func insertPacks(packs []*pack) []statement {
	out := make([]statement, len(packs))
	for i, p := range packs {
		out[i] = statement{
			sql:  `INSERT INTO events_new (org_id, n, at, types, data) VALUES ($1, $2, $3, $4, $5)`,
			args: []any{p.org, p.n, p.at, int64(p.types), p.data()},
		}
	}
	return out
}

// maxNumbered limits the packs that are numbered at once.
const maxNumbered = 1000

// number implements engine. It returns after all packs of the org that were committed before the
// call have numbers. Callers share a run.
func (e *pg) number(ctx context.Context, org string) error {
	_, err := e.numbers.get(ctx, org)
	return err
}

// scanPack implements engine.
func (e *pg) scanPack(r rows, p *storedPack) error { return r.Scan(&p.last, &p.n, &p.data) }

// numberAll gives numbers to the committed packs of an org and returns how many.
func (e *pg) numberAll(ctx context.Context, org string) (sum uint64, err error) {
	for {
		n, known, err := e.numberSome(ctx, org)
		sum += uint64(n)
		switch {
		case err != nil:
			return sum, err
		case !known:
			if known, err = e.addHead(ctx, org); err != nil || !known {
				return sum, err
			}
		case n < maxNumbered:
			return sum, nil
		}
	}
}

// numberSome gives numbers to packs in the order of their ids, which is the order of their
// inserts. So of two changes of one record, of which the second waits for the commit of the first,
// the first has the lower number. known reports whether the org had a head to lock.
//
// The lock comes first and is a statement of its own: the second statement sees all that was
// committed before it had the lock, and no other node gives numbers meanwhile. A pack that is
// committed later gets a later number, whenever its transaction began. So a reader that has seen a
// number has all numbers below it.
//
// seen is the snapshot of the last run, which left no pack that it saw. So the search looks only
// for packs of transactions that began after it or were open then. It does not step over deleted
// packs, of which there can be millions while a backup keeps PostgreSQL from cleaning up.
func (e *pg) numberSome(ctx context.Context, org string) (numbered int64, known bool, err error) {
	err = e.write(ctx, func(t *tx) error {
		numbered = 0
		t.lock(`SELECT 1 FROM event_heads WHERE org_id = $1`, org)
		known, err = t.reader.(*pgConn).readAndCommit([]any{&numbered}, numberPacks, org, int64(maxNumbered))
		return err
	})
	return numbered, known, err
}

// numberPacks numbers the packs of an org whose head is locked, and yields how many. The
// expressions around the ids keep the planner from reading the whole table.
var numberPacks = `WITH taken AS (
		DELETE FROM events_new WHERE ctid = ANY (ARRAY(
			SELECT new.ctid FROM event_heads h CROSS JOIN LATERAL (` + newPacks("n.id, n.ctid") + `) new
			WHERE h.org_id = $1 ORDER BY new.id + 0` + limit(maxNumbered) + `))
		RETURNING id, n, at, types, data
	), total AS (
		SELECT count(*) AS packs, coalesce(sum(n), 0) AS events FROM taken
	), head AS (
		UPDATE event_heads SET seq = seq + total.events,
			seen = CASE WHEN total.packs < $2 THEN pg_current_snapshot() ELSE seen END
		FROM total WHERE org_id = $1 AND total.packs > 0 RETURNING seq, total.events
	), added AS (
		INSERT INTO events (org_id, last_seq, n, at, types, data)
		SELECT $1, head.seq - head.events + sum(n) OVER (ORDER BY id), n, at, types, data FROM taken, head
	) SELECT total.packs FROM total, event_heads WHERE org_id = $1`

// newPacks selects columns of the packs without numbers of the org of h.
func newPacks(columns string) string {
	packs := `SELECT ` + columns + ` FROM events_new n WHERE n.org_id = h.org_id`
	return packs + ` AND n.xid >= ` + seenTo + ` UNION ALL ` +
		packs + ` AND n.xid = ANY (ARRAY(SELECT x FROM pg_snapshot_xip(h.seen) x WHERE x < ` + seenTo + `))`
}

// seenTo is the first transaction that began after h.seen. After a restore into a new cluster,
// which counts transactions anew, h.seen lies in the future and is not used.
const seenTo = `(CASE WHEN pg_snapshot_xmax(h.seen) > pg_snapshot_xmax(pg_current_snapshot())
	THEN '0'::xid8 ELSE pg_snapshot_xmax(h.seen) END)`

// addHead makes the head of an org that has packs but no head, and reports whether it did. An org
// gets its head when it is created.
func (e *pg) addHead(ctx context.Context, org string) (added bool, err error) {
	err = e.write(ctx, func(t *tx) error {
		if added, err = t.exists(ctx, `SELECT 1 FROM events_new WHERE org_id = $1 LIMIT 1`, org); added && err == nil {
			t.exec(`INSERT INTO event_heads (org_id) VALUES ($1) ON CONFLICT (org_id) DO NOTHING`, org)
		}
		return err
	})
	return added, err
}

// forgetSeen resets the snapshots that were restored into a new cluster, before it has counted as
// many transactions as the old one.
func (e *pg) forgetSeen(ctx context.Context) error {
	return e.write(ctx, func(t *tx) error {
		t.exec(`UPDATE event_heads SET seen = DEFAULT WHERE pg_snapshot_xmax(seen) > pg_snapshot_xmax(pg_current_snapshot())`)
		return nil
	})
}

// numberer gives numbers to events soon after their commit, so that streams get them.
type numberer struct {
	eng   *pg
	hooks *hooks
	log   *slog.Logger

	mu      sync.Mutex
	pending map[string]struct{} // orgs
	running map[string]struct{} // orgs whose events are being numbered
	wake    chan struct{}       // buffered
	slots   chan struct{}       // for the running ones
	ctx     context.Context     // ends with close
	stop    context.CancelFunc
	done    chan struct{} // closed when run has ended; nil before start
	close   func()
}

const (
	// numberEvery is how long commits are collected under load, for each node that shares the
	// database: one that numbers does so for all. The first after a pause is numbered at once.
	numberEvery = 20 * time.Millisecond
	// maxSpacing limits how long commits are collected with many nodes.
	maxSpacing = 100 * time.Millisecond
	// strayEvery is how often packs are sought that another process left, such as a node that
	// ended before it could number them.
	strayEvery = 2 * time.Second
	// numberOrgs is how many orgs are numbered at once, so that one that waits delays no other.
	numberOrgs = 4
)

func newNumberer(e *pg, h *hooks, log *slog.Logger) *numberer {
	n := &numberer{
		eng: e, hooks: h, log: log, pending: map[string]struct{}{}, running: map[string]struct{}{},
		wake: make(chan struct{}, 1), slots: make(chan struct{}, numberOrgs),
	}
	n.ctx, n.stop = context.WithCancel(context.Background())
	n.close = sync.OnceFunc(n.end)
	return n
}

// start must be called after the schema was brought up to date, and only once.
func (n *numberer) start() {
	n.done = make(chan struct{})
	go n.run()
}

// end numbers what is pending, so that no other process needs to, and ends run.
func (n *numberer) end() {
	n.stop()
	if n.done == nil {
		return
	}
	<-n.done
	for range numberOrgs { // waits for the running ones
		n.slots <- struct{}{}
	}
	for _, org := range n.take() {
		if !n.number(org) {
			return
		}
	}
}

// committed notes the orgs of a commit.
func (n *numberer) committed(t *tx) {
	if len(t.events) == 0 {
		return
	}
	n.mu.Lock()
	for i := range t.events {
		n.pending[t.events[i].org] = struct{}{}
	}
	n.mu.Unlock()
	n.awake()
}

func (n *numberer) awake() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// run numbers until close.
func (n *numberer) run() {
	defer close(n.done)
	if err := n.eng.forgetSeen(n.ctx); err != nil {
		n.log.Debug("could not check the heads of events", "error", err)
	}
	stray := time.NewTicker(strayEvery)
	defer stray.Stop()
	var last time.Time
	spacing := n.spacing()
	for {
		select {
		case <-n.ctx.Done():
			return
		case <-n.wake:
			select {
			case <-time.After(spacing - time.Since(last)):
			case <-n.ctx.Done():
				return
			}
		case <-stray.C:
			n.addStray()
			spacing = n.spacing()
		}
		last = time.Now()
		for _, org := range n.take() {
			n.slots <- struct{}{}
			go n.numberApart(org)
		}
	}
}

// spacing returns how long commits are collected, which depends on the number of nodes.
func (n *numberer) spacing() time.Duration {
	nodes := 0
	if _, err := one(n.ctx, n.eng, []any{&nodes}, `SELECT count(*) FROM nodes WHERE seen_at > `+postgresClock+` - $1`,
		aliveFor.Microseconds()); err != nil {
		n.log.Debug("could not count the nodes", "error", err)
	}
	return min(numberEvery*time.Duration(max(1, nodes)), maxSpacing)
}

// addStray adds orgs with packs of other processes.
func (n *numberer) addStray() {
	orgs, err := strs(n.ctx, n.eng, `SELECT org_id FROM event_heads h WHERE EXISTS (`+newPacks("1")+`)`)
	if err != nil {
		n.log.Debug("could not look for events without a number", "error", err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, org := range orgs {
		n.pending[org] = struct{}{}
	}
}

// take returns the pending orgs that are not running, which then are.
func (n *numberer) take() (orgs []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for org := range n.pending {
		if _, running := n.running[org]; !running {
			n.running[org] = struct{}{}
			delete(n.pending, org)
			orgs = append(orgs, org)
		}
	}
	return orgs
}

// numberApart is number in a goroutine that has a slot.
func (n *numberer) numberApart(org string) {
	defer func() { <-n.slots }()
	n.number(org)
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.running, org)
	if _, again := n.pending[org]; again {
		n.awake()
	}
}

func (n *numberer) number(org string) bool {
	if err := n.eng.number(context.Background(), org); err != nil {
		// The search for strays finds them again, and readers number what they need.
		n.log.Debug("could not number events", "org", org, "error", err)
		return false
	}
	n.hooks.tellOf(org)
	return true
}
