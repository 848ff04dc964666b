package dispatch

import (
	"context"
	"sync"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/task"
)

// Replays: a configuration that is set when there are events already makes the server
// push them again, in form 0.3 the whole task. Whatever request causes it, the size of
// the task is taken from a budget of whoever asks, and of its org.
const (
	replayPerSender = 32 << 20 // bytes a minute
	replayPerOrg    = 4 * replayPerSender
	minReplay       = 4 << 10 // what the smallest counts
)

// CodePushReplay is the error code of a replay beyond the budget.
const CodePushReplay = "push.replay_limit"

// pushGuard decides about one configuration inside of the write that sets it. The write
// may be run again: the guard then decides anew.
type pushGuard struct {
	s       *Tasks
	who     identity.Principal
	refusal error // of a new one; nil: room is reserved
	room    reservation
	isNew   bool  // there was none with its id
	taken   int64 // from the budget
}

// newPushGuard reserves room in the quotas, which must not be done inside of a write.
// The guard must be told how the write ended.
func (s *Tasks) newPushGuard(ctx context.Context, who identity.Principal) *pushGuard {
	room, refusal := s.quotas.admitPush(ctx, who)
	return &pushGuard{s: s, who: who, room: room, refusal: refusal}
}

// of is the guard for a configuration of the task.
func (g *pushGuard) of(t *task.Task) func(task.PushSet) error {
	return func(set task.PushSet) error {
		g.undo()
		g.isNew = set.New
		if set.New && g.refusal != nil {
			return g.refusal
		}
		if !set.Replay {
			return nil
		}
		return g.replay(t.Size)
	}
}

// replay takes a task of the size from the budgets.
func (g *pushGuard) replay(size int64) error {
	n := min(max(size, minReplay), replayPerSender)
	wait := g.s.replays.take(g.who, n, g.s.board.now())
	if wait > 0 {
		e := errs.New(errs.RateLimited, CodePushReplay,
			"pushing the task again would be more than %d MiB of repeated events a minute; try again later, or get the task instead", replayPerSender>>20)
		e.RetryAfter = wait
		return e
	}
	g.taken = n
	return nil
}

// end settles what was taken, after the write ended with err. A nil guard has taken
// nothing.
func (g *pushGuard) end(err error) {
	if g == nil {
		return
	}
	if err != nil {
		g.undo()
	}
	g.room.settle(g.isNew && mayBeWritten(err))
}

// undo gives back what was taken for a write that did not happen.
func (g *pushGuard) undo() {
	if g.taken > 0 {
		g.s.replays.take(g.who, -g.taken, g.s.board.now())
		g.taken = 0
	}
}

// replays keeps the budgets.
type replays struct {
	mu      sync.Mutex
	buckets map[identity.Principal]bucket // an org's has no kind and no id
}

// bucket is how much was taken at a time; it drains steadily.
type bucket struct {
	taken int64
	at    time.Time
}

const maxBuckets = 10_000

func newReplays() *replays { return &replays{buckets: map[identity.Principal]bucket{}} }

// take takes n bytes from both budgets, or reports how long to wait.
func (r *replays) take(who identity.Principal, n int64, now time.Time) (wait time.Duration) {
	org := identity.Principal{Org: who.Org}
	r.mu.Lock()
	defer r.mu.Unlock()
	mine, all := r.buckets[who].drained(replayPerSender, now), r.buckets[org].drained(replayPerOrg, now)
	if wait := max(mine.wait(n, replayPerSender), all.wait(n, replayPerOrg)); wait > 0 {
		return wait
	}
	if len(r.buckets) >= maxBuckets {
		for k, b := range r.buckets { // in no order; those that are empty mean nothing
			if b.drained(replayPerSender, now).taken == 0 || len(r.buckets) >= 2*maxBuckets {
				delete(r.buckets, k)
			}
		}
	}
	mine.taken, all.taken = max(0, mine.taken+n), max(0, all.taken+n)
	r.buckets[who], r.buckets[org] = mine, all
	return 0
}

// drained is the bucket as of now.
func (b bucket) drained(perMinute int64, now time.Time) bucket {
	if gone := now.Sub(b.at); gone < time.Minute {
		b.taken = max(0, b.taken-int64(float64(perMinute)*gone.Minutes()))
	} else {
		b.taken = 0
	}
	b.at = now
	return b
}

// wait is how long it takes until n more fit.
func (b bucket) wait(n, perMinute int64) time.Duration {
	over := b.taken + n - perMinute
	if n <= 0 || over <= 0 {
		return 0
	}
	return max(time.Second, time.Duration(float64(over)/float64(perMinute)*float64(time.Minute)))
}
