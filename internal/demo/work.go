package demo

import (
	"context"
	"time"

	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/task"
)

const (
	capacity   = 1 // tasks that a worker does at once
	claimWait  = 20 * time.Second
	workLease  = 30 * time.Second
	beatsAfter = 2 // pauses after a failed call
)

// work claims and does tasks of one agent until ctx ends.
func (c *Company) work(ctx context.Context, agent, name string) {
	var ack []string // direct messages that were received
	for ctx.Err() == nil {
		post, err := c.post(ctx, agent)
		if err == nil {
			var claim dispatch.Claim
			claim, err = c.Workers.Claim(ctx, post, dispatch.ClaimRequest{
				Worker: name, Max: 1, Wait: claimWait, Lease: workLease, Capacity: capacity, Ack: ack,
			})
			ack = ack[:0]
			for _, m := range claim.Messages {
				ack = append(ack, m.ID)
			}
			for _, a := range claim.Assignments {
				c.report(ctx, c.do(ctx, post, name, a))
			}
		}
		if c.report(ctx, err) {
			c.sleep(ctx, beatsAfter*c.beat)
		}
	}
}

// do works on one task. If the server stops, the task goes back to the queue: a call that has
// begun is completed, and the next one returns it.
func (c *Company) do(stop context.Context, post dispatch.Post, worker string, a dispatch.Assignment) error {
	ctx := context.WithoutCancel(stop)
	for _, r := range reportsOn(&a.Task) {
		if !c.sleep(stop, c.beat+c.upTo(c.beat)) {
			return c.Workers.Return(ctx, post, a.Lease.Token)
		}
		r.Extend = workLease
		p, err := c.Workers.Report(ctx, post, a.Lease.Token, r)
		if err != nil || p.Canceled {
			return err
		}
		// A claim without tasks shows that the worker is alive.
		if _, err := c.Workers.Claim(ctx, post, dispatch.ClaimRequest{
			Worker: worker, Lease: workLease, Capacity: capacity,
		}); err != nil {
			return err
		}
	}
	return nil
}

// reportsOn returns what a worker reports on a task that it has claimed.
func reportsOn(t *task.Task) []task.Report {
	turns, text := 0, ""
	for _, m := range t.History {
		if m.Role != task.RoleUser {
			continue
		}
		if turns++; turns == 1 && len(m.Parts) > 0 {
			text = m.Parts[0].Text
		}
	}
	j := jobOf(t.Agent, text)
	if turns > 1 {
		return j.finish()
	}
	return j.begin()
}
