package worker_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/chain"
	"github.com/parley-dev/parley/sdk/client"
	"github.com/parley-dev/parley/sdk/worker"
)

// Two agents that call each other for every task come to an end at the depth limit.
func TestALoopOfAgentsEnds(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	var refused atomic.Value
	passOn := func(to string) worker.Handler {
		return func(ctx context.Context, t *worker.Task) error {
			c, err := chain.Parse(t.Metadata)
			if err != nil || int64(c.Depth) != calls.Load() || len(c.Agents) != c.Depth {
				return t.Fail(ctx, "the chain does not count the calls")
			}
			calls.Add(1)
			next, err := t.Send(ctx, to, client.SendParams{Message: client.NewMessage(client.Text("again")), Wait: time.Minute})
			var refusal *client.Error
			switch {
			case errors.As(err, &refusal):
				refused.Store(refusal)
				return t.Complete(ctx, worker.Text("the end"))
			case err != nil:
				return err
			}
			return t.Complete(ctx, worker.Text(string(next.Status.State)))
		}
	}
	run(t, "ping", register("ping", "svc:a2a:write"), passOn("pong"), func(c *worker.Config) { c.Capacity = 16 })
	run(t, "pong", register("pong", "svc:a2a:write"), passOn("ping"), func(c *worker.Config) { c.Capacity = 16 })
	if got := send("ping", "t-loop", "start"); got.Status.State != "completed" || !strings.HasPrefix(got.String(), "completed: completed") {
		t.Errorf("the first task = %s, want it completed", got)
	}
	refusal, _ := refused.Load().(*client.Error)
	if n := calls.Load(); n != chain.DefaultDepth+1 || refusal == nil || refusal.Code != chain.CodeTooDeep {
		t.Errorf("%d tasks ran, and the last call was refused with %v; want %d and %s", n, refusal, chain.DefaultDepth+1,
			chain.CodeTooDeep)
	}
}
