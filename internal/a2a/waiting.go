package a2a

import (
	"context"
	"time"

	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/task"
)

// send sends a message and waits for what comes of it, but no longer than the
// caller may know it.
func (c *call) send(r dispatch.SendRequest, wait time.Duration) (task.Task, error) {
	if wait <= 0 {
		return c.s.Tasks.Send(c, c.to, r, 0)
	}
	to, err := c.s.Tasks.Aim(c, c.to, r.ID)
	if err != nil {
		return task.Task{}, err
	}
	if err := c.s.router.Park(c, httpx.Wait); err != nil {
		return task.Task{}, err
	}
	r.Waiting = func() {
		if !c.batch { // else the results so far are held
			c.dropBody()
			httpx.ReleaseMemory(c)
		}
		c.s.router.Yield(c)
	}
	ctx, stop := c.s.router.WhileAllowed(c, c.r, func(ctx context.Context, caller *identity.Caller) error {
		return c.s.Tasks.Still(ctx, caller, to.Target().Key())
	})
	defer stop()
	t, err := c.s.Tasks.Send(ctx, to, r, wait)
	if cause := context.Cause(ctx); cause != nil && c.Err() == nil {
		return task.Task{}, cause
	}
	return t, err
}

// recheckDue reports whether it is time to ask again who reads a stream. The tick at
// which a silent stream looks may come a moment early: to skip it would double the
// time that a revoked key is good for.
func (s *server) recheckDue(checked, now time.Time) bool {
	return now.Sub(checked) >= s.Recheck-s.Recheck/10
}
