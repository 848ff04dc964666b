package dispatch

import (
	"context"
	"sync"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/task"
)

// quotas has a gauge for each quota that is too expensive to count on every write.
type quotas struct{ live, again, stored, senderPushes, orgPushes *gauge }

func newQuotas(o *Options) *quotas {
	gauge := func(limit int64, kind errs.Kind, code, message string, count countFunc) *gauge {
		refusal := errs.New(kind, code, message, limit)
		if kind == errs.RateLimited {
			refusal.RetryAfter = 5 * time.Second
		}
		return &gauge{
			limit: limit, refusal: refusal, count: count, now: o.Now, onError: o.OnError, shared: o.Bus != nil,
			levels: map[identity.Principal]*level{},
		}
	}
	return &quotas{
		live: gauge(o.Quotas.LiveTasks, errs.RateLimited, task.CodeLiveTasks,
			"the sender has %d tasks that are not over, which is the limit (--max-live-tasks); "+
				"wait until some are, or cancel some", o.Stores.Stock.CountLive),
		// The agent's org must not use up the places of a sender of another org. Between two exact
		// counts, this gauge does not see the tasks that the sender sends itself.
		again: gauge((o.Quotas.LiveTasks+1)/2, errs.RateLimited, task.CodeLiveTasks,
			"the sender has %d tasks that are not over, which is half of its limit (--max-live-tasks); "+
				"the other half is for tasks that it sends itself, so wait until some are over",
			o.Stores.Stock.CountLive),
		stored: gauge(o.Quotas.StoredTasks, errs.Conflict, task.CodeStoredTasks,
			"the agent's org has %d stored tasks, which is the limit (--max-stored-tasks); "+
				"tasks are deleted some time after they are over (--task-retention)",
			func(ctx context.Context, p identity.Principal, most int64) (int64, error) {
				return o.Stores.Stock.Count(ctx, p.Org, most)
			}),
		senderPushes: gauge(o.Quotas.SenderPushes, errs.Conflict, task.CodePushConfigs,
			"the sender has %d active push configurations, which is the limit (--max-push-configs); "+
				"delete some, or wait until their tasks are over",
			o.Stores.Pushes.CountActive),
		orgPushes: gauge(o.Quotas.OrgPushes, errs.Conflict, task.CodePushConfigs,
			"the sender's org has %d active push configurations, which is the limit (--max-org-push-configs); "+
				"delete some, or wait until their tasks are over",
			o.Stores.Pushes.CountActive),
	}
}

// countFunc counts what an owner has, up to most.
type countFunc = func(ctx context.Context, owner identity.Principal, most int64) (int64, error)

// newTask is the reservation for a new task and its push configuration.
type newTask struct {
	task, push reservation
	again      held // of a task that another org sends again
}

// end settles the reservations after the write ended with err.
func (n *newTask) end(err error) {
	written := mayBeWritten(err)
	n.task.settle(written)
	n.push.settle(written)
	n.again.settle(written)
}

// admit reserves room for a new task. It refuses the task if a quota is used up.
func (q *quotas) admit(ctx context.Context, c *Call, push bool) (room newTask, err error) {
	if push {
		if room.push, err = q.admitPush(ctx, c.sender()); err != nil {
			return newTask{}, err
		}
	}
	if room.task, err = reserve(ctx, q.stored, identity.Principal{Org: c.target.Org}, q.live, c.sender()); err != nil {
		room.push.settle(false)
		return newTask{}, err
	}
	if sender := c.onBehalf; sender != (identity.Principal{}) && sender.Org != c.target.Org {
		if room.again, err = q.again.take(ctx, sender); err != nil {
			room.task.settle(false)
			room.push.settle(false)
			return newTask{}, err
		}
	}
	return room, nil
}

// admitPush reserves room for a new push configuration. It refuses it if a quota is used up.
func (q *quotas) admitPush(ctx context.Context, sender identity.Principal) (reservation, error) {
	return reserve(ctx, q.orgPushes, identity.Principal{Org: sender.Org}, q.senderPushes, sender)
}

// reservation reserves room for one write in two quotas. It must be settled. The zero value
// reserves nothing.
type reservation [2]held

func reserve(
	ctx context.Context, a *gauge, of identity.Principal, b *gauge, by identity.Principal,
) (r reservation, err error) {
	if r[0], err = a.take(ctx, of); err != nil {
		return reservation{}, err
	}
	if r[1], err = b.take(ctx, by); err != nil {
		r[0].settle(false)
		return reservation{}, err
	}
	return r, nil
}

// settle ends the reservation. written reports whether the write took effect.
func (r *reservation) settle(written bool) {
	r[0].settle(written)
	r[1].settle(written)
	*r = reservation{}
}

// mayBeWritten reports whether a write that ended with err may have taken effect. If in doubt
// it is counted, because the next exact count corrects an estimate that is too high.
func mayBeWritten(err error) bool {
	if err == nil {
		return true
	}
	kind := errs.KindOf(err)
	return kind == errs.Internal || kind == errs.Unavailable
}

// gauge enforces a quota without a count on every write. It estimates what each owner has: the
// last exact count, what was added since, and what is being written. Deletions are not
// noticed, so an estimate is never too low. When it reaches the limit, the store counts again.
//
// An owner is counted for the first time when it has added a tenth of the limit on this node,
// so that most owners never are. If other nodes write too (shared), it is counted again after
// each further tenth, so that N nodes exceed the limit by at most N tenths.
type gauge struct {
	limit   int64
	refusal *errs.Error
	count   countFunc
	now     func() time.Time
	onError func(error)
	shared  bool

	turn   sync.Mutex // held while counting: one count at a time for all owners
	mu     sync.Mutex
	levels map[identity.Principal]*level
}

// level is the estimate of one owner.
type level struct {
	counted  int64         // by the last exact count
	added    int64         // since the count: written, or perhaps written
	flying   int64         // reserved, not settled yet
	known    bool          // an exact count was made
	counting chan struct{} // closed when the current count is done; nil if there is none
	next     time.Time     // no count before this time, unless much was added
}

const (
	maxLevels = 10_000
	// recountEvery and recountShare limit how often an owner at the limit is counted: at most
	// once per interval, and at most a twentieth of the time.
	recountEvery   = 2 * time.Second
	recountShare   = 20
	recountTimeout = time.Minute
)

// held is the reservation of one unit in a level.
type held struct {
	g *gauge
	l *level
}

// settle counts the unit as added if it was written, and gives it back otherwise.
func (h held) settle(written bool) {
	if h.g == nil {
		return
	}
	h.g.mu.Lock()
	defer h.g.mu.Unlock()
	if h.l.flying--; written {
		h.l.added++
	}
}

// take reserves one unit for the owner. It refuses if the quota is used up.
func (g *gauge) take(ctx context.Context, owner identity.Principal) (held, error) {
	if g.limit <= 0 {
		return held{}, nil
	}
	for waits := 0; ; waits++ {
		g.mu.Lock()
		l := g.level(owner)
		estimate := l.counted + l.added + l.flying
		full := estimate >= g.limit
		if l.counting == nil && g.due(l, full) {
			g.recount(owner, l)
		}
		// While an owner that had room is counted again, it may exceed the limit a little, so
		// that no write waits for a count of millions.
		slack := int64(0)
		if l.counting != nil && l.counted < g.limit {
			slack = g.limit / 20
		}
		if estimate < g.limit+slack {
			l.flying++
			g.mu.Unlock()
			return held{g, l}, nil
		}
		counting := l.counting
		g.mu.Unlock()
		// Wait for two counts: the current one may have begun before most was added.
		if counting == nil || waits == 2 {
			return held{}, g.refusal
		}
		select {
		case <-counting:
		case <-ctx.Done():
			return held{}, ctx.Err()
		}
	}
}

// due reports whether an exact count is needed.
func (g *gauge) due(l *level, full bool) bool {
	grown := l.added >= max(1, g.limit/10)
	return (!l.known || g.shared) && grown || full && (grown || !g.now().Before(l.next))
}

// level returns the level of an owner. If there are too many, it drops any other, which will
// be counted again when needed.
func (g *gauge) level(owner identity.Principal) *level {
	l := g.levels[owner]
	if l != nil {
		return l
	}
	if len(g.levels) >= maxLevels {
		for other, was := range g.levels {
			if was.counting == nil {
				delete(g.levels, other)
				break
			}
		}
	}
	l = &level{}
	g.levels[owner] = l
	return l
}

// recount counts exactly, in the background.
func (g *gauge) recount(owner identity.Principal, l *level) {
	done := make(chan struct{})
	l.counting = done
	go func() {
		defer close(done)
		g.turn.Lock()
		defer g.turn.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), recountTimeout)
		defer cancel()
		g.mu.Lock()
		before := l.added // included in the count
		g.mu.Unlock()
		start := time.Now()
		n, err := g.count(ctx, owner, g.limit)
		took := time.Since(start)
		g.mu.Lock()
		defer g.mu.Unlock()
		l.counting, l.next = nil, g.now().Add(max(recountEvery, recountShare*took))
		if err != nil {
			g.onError(err)
			return
		}
		l.known, l.counted, l.added = true, n, l.added-before
	}()
}
