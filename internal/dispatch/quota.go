package dispatch

import (
	"context"
	"sync"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/task"
)

// quotas has a gauge for each quota that is too hot to be counted for every write.
type quotas struct{ live, stored, senderPushes, orgPushes *gauge }

func newQuotas(o *Options) *quotas {
	gauge := func(limit int64, kind errs.Kind, code, message string, count func(context.Context, identity.Principal, int64) (int64, error)) *gauge {
		refusal := errs.New(kind, code, message, limit)
		if kind == errs.RateLimited {
			refusal.RetryAfter = 5 * time.Second
		}
		return &gauge{limit: limit, refusal: refusal, count: count, now: o.Now, onError: o.OnError, shared: o.Bus != nil, levels: map[identity.Principal]*level{}}
	}
	return &quotas{
		live: gauge(o.Quotas.LiveTasks, errs.RateLimited, task.CodeLiveTasks,
			"the sender has %d tasks that are not over, which is the limit (--max-live-tasks); wait until some are, or cancel some", o.Stores.Stock.CountLive),
		stored: gauge(o.Quotas.StoredTasks, errs.Conflict, task.CodeStoredTasks,
			"the agent's org has %d stored tasks, which is the limit (--max-stored-tasks); tasks are deleted some time after they are over (--task-retention)",
			func(ctx context.Context, p identity.Principal, most int64) (int64, error) {
				return o.Stores.Stock.Count(ctx, p.Org, most)
			}),
		senderPushes: gauge(o.Quotas.SenderPushes, errs.Conflict, task.CodePushConfigs,
			"the sender has %d active push configurations, which is the limit (--max-push-configs); delete some, or wait until their tasks are over",
			o.Stores.Pushes.CountActive),
		orgPushes: gauge(o.Quotas.OrgPushes, errs.Conflict, task.CodePushConfigs,
			"the sender's org has %d active push configurations, which is the limit (--max-org-push-configs); delete some, or wait until their tasks are over",
			o.Stores.Pushes.CountActive),
	}
}

// newTask is the room for a new task and its push configuration.
type newTask struct{ task, push reservation }

// end settles the room, after the write of the task ended with err.
func (n *newTask) end(err error) {
	written := mayBeWritten(err)
	n.task.settle(written)
	n.push.settle(written)
}

// admit reserves room for a new task, or refuses it if a quota is used up.
func (q *quotas) admit(ctx context.Context, c *Call, push bool) (room newTask, err error) {
	if push {
		if room.push, err = q.admitPush(ctx, c.sender); err != nil {
			return newTask{}, err
		}
	}
	if room.task, err = reserve(ctx, q.stored, identity.Principal{Org: c.target.Org}, q.live, c.sender); err != nil {
		room.push.settle(false)
		return newTask{}, err
	}
	return room, nil
}

// admitPush reserves room for a new push configuration, or refuses it if a quota is
// used up.
func (q *quotas) admitPush(ctx context.Context, sender identity.Principal) (reservation, error) {
	return reserve(ctx, q.orgPushes, identity.Principal{Org: sender.Org}, q.senderPushes, sender)
}

// reservation is room for one thing that is about to be written, in two quotas. It must
// be settled. The zero value holds nothing.
type reservation [2]held

func reserve(ctx context.Context, a *gauge, of identity.Principal, b *gauge, by identity.Principal) (r reservation, err error) {
	if r[0], err = a.take(ctx, of); err != nil {
		return reservation{}, err
	}
	if r[1], err = b.take(ctx, by); err != nil {
		r[0].settle(false)
		return reservation{}, err
	}
	return r, nil
}

// settle says whether the thing was written.
func (r *reservation) settle(written bool) {
	r[0].settle(written)
	r[1].settle(written)
	*r = reservation{}
}

// mayBeWritten reports whether a write that ended with err can have taken effect. When
// in doubt it counts: an estimate that is too high is put right by the next count.
func mayBeWritten(err error) bool {
	if err == nil {
		return true
	}
	kind := errs.KindOf(err)
	return kind == errs.Internal || kind == errs.Unavailable
}

// gauge keeps a quota without a count for every write: it estimates how much each owner
// has as the last exact count, what was added since, and what is being written, which a
// count may not see yet. What is taken away is not noticed, so an estimate is too high rather than too low, and when it reaches the limit
// the store is asked again. An owner is counted first when it has added a tenth of the
// limit here, so that most never are, and where other nodes write too (shared), again
// after each further tenth: N nodes exceed the limit by N tenths at most.
type gauge struct {
	limit   int64
	refusal *errs.Error
	count   func(ctx context.Context, owner identity.Principal, most int64) (int64, error)
	now     func() time.Time
	onError func(error)
	shared  bool

	turn   sync.Mutex // of counting: one at a time, however many owners there are
	mu     sync.Mutex
	levels map[identity.Principal]*level
}

// level is what is known of one owner.
type level struct {
	counted  int64         // by the last exact count
	added    int64         // since: written, or perhaps written
	flying   int64         // reserved, and not settled yet
	known    bool          // there was one
	counting chan struct{} // closed when the count that is under way is done; nil: none is
	next     time.Time     // not before this, unless much was added
}

const (
	maxLevels = 10_000
	// recountEvery and recountShare bound how often an owner at the limit is counted: not
	// more often than this, and not more than a twentieth of the time.
	recountEvery   = 2 * time.Second
	recountShare   = 20
	recountTimeout = time.Minute
)

// held is room for one, of a level.
type held struct {
	g *gauge
	l *level
}

// settle turns the room into one that was added, or gives it back.
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

// take reserves room for one of the owner's, or refuses it.
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
		// While an owner that had room is counted again it may go a little beyond the
		// limit, so that a count of millions delays nobody.
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
		// Twice: the count that is under way may have begun before most was added.
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

// due reports whether the store must be asked.
func (g *gauge) due(l *level, full bool) bool {
	grown := l.added >= max(1, g.limit/10)
	return (!l.known || g.shared) && grown || full && (grown || !g.now().Before(l.next))
}

// level finds what is known of an owner. If there are too many, any other is forgotten:
// it is counted again when it comes back.
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

// recount asks the store in the background.
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
		before := l.added // the count sees these
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
