package store

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// leaveEvents queues the insertion of the packs of a transaction, which have no numbers yet. To
// number them here would need a lock until the commit, so that an org could not share commits.
func (t *tx) leaveEvents() {
	for _, p := range packs(t.events) {
		t.exec(`INSERT INTO events_new (org_id, n, at, types, data) VALUES ($1, $2, $3, $4, $5)`,
			p.org, p.n, p.at, int64(p.types), p.data.String())
	}
}

// maxNumbered limits the packs that are numbered at once.
const maxNumbered = 1000

// number implements engine. It returns after all packs of the org that were committed before the
// call have numbers. Callers share a run.
func (e *pg) number(ctx context.Context, org string) error {
	_, err := e.numbers.get(ctx, org)
	return err
}

// numberAll gives numbers to the committed packs of an org and returns how many packs it were.
func (e *pg) numberAll(ctx context.Context, org string) (sum uint64, err error) {
	for n := int64(maxNumbered); n == maxNumbered && err == nil; sum += uint64(n) {
		n, err = e.numberSome(ctx, org)
	}
	return sum, err
}

// numberSome gives numbers to packs in the order of their ids, which is the order of their
// inserts. So of two changes of one record, of which the second waits for the commit of the first,
// the first has the lower number.
//
// The lock comes first and is a statement of its own: the second statement sees all that was
// committed before it had the lock, and nobody else gives numbers meanwhile. A pack that is
// committed later gets a later number, whenever its transaction began. So a reader that has seen a
// number has all numbers below it.
//
// floor is the oldest transaction that was running when the last run began: all earlier ones have
// no packs left. So the search does not step over deleted packs, of which there can be millions
// while a backup keeps PostgreSQL from cleaning up. After a restore into a new cluster, which
// counts transactions anew, floor lies in the future and is not used.
func (e *pg) numberSome(ctx context.Context, org string) (numbered int64, err error) {
	err = e.write(ctx, func(t *tx) error {
		t.lock(`SELECT 1 FROM event_heads WHERE org_id = $1`, org)
		_, err := one(ctx, t, []any{&numbered}, `WITH taken AS (
				DELETE FROM events_new WHERE id IN (
					SELECT n.id FROM events_new n JOIN event_heads h ON h.org_id = n.org_id
					WHERE n.org_id = $1 AND n.xid >= `+floorOf+` ORDER BY n.id`+limit(maxNumbered)+`)
				RETURNING id, n, at, types, data
			), total AS (
				SELECT count(*) AS packs, coalesce(sum(n), 0) AS events FROM taken
			), head AS (
				UPDATE event_heads SET seq = seq + total.events, floor = CASE WHEN total.packs < $2
					THEN pg_snapshot_xmin(pg_current_snapshot()) ELSE floor END
				FROM total WHERE org_id = $1 AND total.packs > 0 RETURNING seq, total.events
			), added AS (
				INSERT INTO events (org_id, last_seq, n, at, types, data)
				SELECT $1, head.seq - head.events + sum(n) OVER (ORDER BY id), n, at, types, data FROM taken, head
			) SELECT packs FROM total`, org, int64(maxNumbered))
		return err
	})
	return numbered, err
}

// floorOf is the first transaction that may have left packs of the org of h.
const floorOf = `(CASE WHEN h.floor > pg_snapshot_xmax(pg_current_snapshot()) THEN '0'::xid8 ELSE h.floor END)`

// numberer gives numbers to events soon after their commit, so that streams get them.
type numberer struct {
	eng   *pg
	hooks *hooks
	log   *slog.Logger

	mu      sync.Mutex
	pending map[string]struct{} // orgs
	wake    chan struct{}       // buffered
	stop    chan struct{}
	done    chan struct{} // closed when run has ended; nil before start
}

const (
	// numberEvery is how long commits are collected.
	numberEvery = 10 * time.Millisecond
	// strayEvery is how often packs are sought that another process left, such as a node that
	// ended before it could number them.
	strayEvery = 2 * time.Second
)

func newNumberer(e *pg, h *hooks, log *slog.Logger) *numberer {
	return &numberer{
		eng: e, hooks: h, log: log, pending: map[string]struct{}{}, wake: make(chan struct{}, 1),
		stop: make(chan struct{}),
	}
}

// start must be called after the schema was brought up to date, and only once.
func (n *numberer) start() {
	n.done = make(chan struct{})
	go n.run()
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
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// run numbers until close.
func (n *numberer) run() {
	defer close(n.done)
	stray := time.NewTicker(strayEvery)
	defer stray.Stop()
	for {
		select {
		case <-n.stop:
			n.numberPending() // so that no other process needs to
			return
		case <-n.wake:
			select {
			case <-time.After(numberEvery):
			case <-n.stop:
			}
		case <-stray.C:
			n.addStray()
		}
		n.numberPending()
	}
}

// addStray adds orgs with packs of other processes.
func (n *numberer) addStray() {
	orgs, err := strs(context.Background(), n.eng, `SELECT org_id FROM event_heads h WHERE EXISTS (`+unnumberedPacks+`)`)
	if err != nil {
		n.log.Debug("could not look for events without a number", "error", err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, org := range orgs {
		n.pending[org] = struct{}{}
	}
}

func (n *numberer) numberPending() {
	n.mu.Lock()
	orgs := n.pending
	n.pending = map[string]struct{}{}
	n.mu.Unlock()
	for org := range orgs {
		if err := n.eng.number(context.Background(), org); err != nil {
			// The search for strays finds them again, and readers number what they need.
			n.log.Debug("could not number events", "org", org, "error", err)
			continue
		}
		n.hooks.events(org)
	}
}

func (n *numberer) close() {
	if n.done != nil {
		close(n.stop)
		<-n.done
	}
}

// unnumberedPacks selects the packs without numbers of the org of h.
const unnumberedPacks = `SELECT 1 FROM events_new n WHERE n.org_id = h.org_id AND n.xid >= ` + floorOf
