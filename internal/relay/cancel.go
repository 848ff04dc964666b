package relay

import (
	"context"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/task"
)

const (
	// cancelLook is how often links of ended tasks are sought.
	cancelLook = 5 * time.Second
	// cancelAgain is when a link is due again.
	cancelAgain = 15 * time.Second
	// cancelFor is how long canceling a task of a remote is tried.
	cancelFor = 24 * time.Hour
	// unknownFor is how long a link waits for the id of the remote's task after the end of ours.
	unknownFor = time.Minute
	// maxDue bounds how many links are looked at in one transaction.
	maxDue = 100
)

// taskEnded notes that a task has ended. If its remote has not reported the end, its task there is
// canceled.
func (e *Engine) taskEnded(r task.Ref) {
	if _, reported := e.ending.Load(r.UID); reported {
		return
	}
	select {
	case e.ended <- r:
	default: // found later
	}
}

// cancelEnded cancels the remotes' tasks of tasks that have ended here, until ctx ends.
func (e *Engine) cancelEnded(ctx context.Context) {
	queue := newCancelQueue(func(l Link) {
		if !e.cancel(ctx, &l) {
			return // due again later
		}
		if err := e.store.DeleteLink(context.WithoutCancel(ctx), l); err != nil {
			e.onError(err)
		}
	})
	defer queue.wait()
	tick := time.NewTicker(cancelLook)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case r := <-e.ended:
			if err := e.store.HurryLink(ctx, r.Org, r.UID); err != nil && ctx.Err() == nil {
				e.onError(err)
				continue
			}
			if len(e.ended) > 0 {
				continue // one look for all of them
			}
		case <-tick.C:
		}
		if err := e.queueDue(ctx, queue); err != nil && ctx.Err() == nil {
			e.onError(err)
		}
	}
}

// queueDue queues all links whose task is over.
func (e *Engine) queueDue(ctx context.Context, queue *cancelQueue) error {
	for {
		now := e.now()
		links, more, err := e.store.DueLinks(ctx, now, now.Add(cancelAgain), maxDue)
		if err != nil {
			return err
		}
		for _, l := range links {
			queue.add(l)
		}
		if !more {
			return nil
		}
	}
}

// cancel cancels the task of a remote. It reports whether nothing is left to do.
func (e *Engine) cancel(ctx context.Context, l *Link) (done bool) {
	now := e.now()
	if l.Task == "" {
		return now.Sub(l.EndedAt) > unknownFor
	}
	over := now.Sub(l.EndedAt) > cancelFor
	inst, err := e.instanceOf(ctx, l.relay())
	if errs.KindOf(err) == errs.NotFound {
		return true // the agent is gone, and with it the credential
	}
	if err != nil || inst.breaker.isOpen() {
		return over
	}
	c, err := inst.client()
	if err != nil {
		return over
	}
	_, err = c.cancel(ctx, l.Task)
	if v := judge(err); err == nil || v != transient && v != faulty {
		return true // canceled, over already, or it cannot be canceled
	}
	return over
}

// instanceOf returns a relay of this node, or that of an agent which is disabled, and so has none.
func (e *Engine) instanceOf(ctx context.Context, k task.AgentKey) (*instance, error) {
	e.mu.Lock()
	inst := e.instances[k]
	e.mu.Unlock()
	if inst != nil {
		return inst, nil
	}
	r, err := e.store.Relay(ctx, k.Org, k.ID)
	if err != nil {
		return nil, err
	}
	inst = &instance{e: e, key: k, relay: r}
	time.AfterFunc(2*callTimeout, inst.close)
	return inst, nil
}
