package a2a

import (
	"context"
	"time"

	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/task"
)

// send sends a message and waits for the result, but only while the caller may read it.
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
		if !c.batch { // a batch still holds its earlier results
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

// recheckDue reports whether it is time to authenticate the reader of a stream again. The tick of a
// silent stream may be a moment early; skipping it would double the time that a revoked key works.
func (s *server) recheckDue(checked, now time.Time) bool {
	return now.Sub(checked) >= s.Recheck-s.Recheck/10
}
