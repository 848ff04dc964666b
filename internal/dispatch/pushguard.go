package dispatch

import (
	"context"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/limit"
	"github.com/parley-dev/parley/internal/task"
)

// Limits of replays. A configuration that is set when events exist already makes the server
// push them, in form 0.3 with the whole task each. The size of the task is taken from the
// budgets of the caller and of its org.
const (
	replayPerSender = 32 << 20 // bytes per minute
	replayPerOrg    = 4 * replayPerSender
	minReplay       = 4 << 10 // the least that a replay counts
)

// CodePushReplay is the error code of a replay that exceeds the budget.
const CodePushReplay = "push.replay_limit"

// pushGuard admits or refuses one configuration inside the transaction that sets it. The
// transaction may run more than once.
type pushGuard struct {
	s       *Tasks
	who     identity.Principal
	refusal error // of a new configuration; nil if room is reserved
	room    reservation
	isNew   bool // no configuration with the id existed
	taken   int  // from the budgets
}

// newPushGuard reserves room in the quotas, which must not be done inside a transaction. The
// caller must call end.
func (s *Tasks) newPushGuard(ctx context.Context, who identity.Principal) *pushGuard {
	room, refusal := s.quotas.admitPush(ctx, who)
	return &pushGuard{s: s, who: who, room: room, refusal: refusal}
}

// of returns the guard function for a configuration of the task.
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

// replay takes the size of the task from the budgets.
func (g *pushGuard) replay(size int64) error {
	n := int(min(max(size, minReplay), replayPerSender))
	wait := g.s.replays.take(g.who, n, g.s.board.now())
	if wait > 0 {
		e := errs.New(errs.RateLimited, CodePushReplay,
			"pushing the task again would exceed %d MiB of repeated events per minute; try again later, or get the task instead",
			replayPerSender>>20)
		e.RetryAfter = wait
		return e
	}
	g.taken = n
	return nil
}

// end settles the reservations after the write ended with err. It does nothing on a nil guard.
func (g *pushGuard) end(err error) {
	if g == nil {
		return
	}
	if err != nil {
		g.undo()
	}
	g.room.settle(g.isNew && mayBeWritten(err))
}

// undo gives back what was taken for a write that failed.
func (g *pushGuard) undo() {
	if g.taken > 0 {
		g.s.replays.giveBack(g.who, g.taken, g.s.board.now())
		g.taken = 0
	}
}

// replays keeps the budgets of senders and of their orgs.
type replays struct {
	senders *limit.Keyed[identity.Principal]
	orgs    *limit.Keyed[string]
}

const replayKeys = 10_000 // budgets in memory, of each sort

func newReplays() *replays {
	return &replays{
		senders: limit.New[identity.Principal](replayPerSender/60., replayPerSender, replayKeys),
		orgs:    limit.New[string](replayPerOrg/60., replayPerOrg, replayKeys),
	}
}

// take takes n bytes from both budgets, or from none and returns how long to wait.
func (r *replays) take(who identity.Principal, n int, now time.Time) (wait time.Duration) {
	if wait = r.senders.Take(who, n, now); wait == 0 {
		if wait = r.orgs.Take(who.Org, n, now); wait > 0 {
			r.senders.GiveBack(who, n, now)
		}
	}
	return wait
}

// giveBack undoes a take.
func (r *replays) giveBack(who identity.Principal, n int, now time.Time) {
	r.senders.GiveBack(who, n, now)
	r.orgs.GiveBack(who.Org, n, now)
}
