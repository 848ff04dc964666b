package worker

import (
	"context"
	"testing"
	"time"
)

// The deadline of a task ends the context of its handler at the right moment, even if the clocks of
// the server and this machine differ. The task is neither reported nor handed back: the server ends
// it.
func TestADeadlineEndsTheHandler(t *testing.T) {
	t.Parallel()
	const lease, left = 30 * time.Second, 10 * time.Second
	for name, ahead := range map[string]time.Duration{
		"the clocks agree":             0,
		"the server's clock is ahead":  time.Hour,
		"the server's clock is behind": -time.Hour,
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := newFake(t, "hi")
				serverTime := time.Now().Add(ahead)
				f.tasks[0].LeaseExpiresAt, f.tasks[0].Deadline = serverTime.Add(lease), serverTime.Add(left)
				ended := make(chan error, 1)
				stop := start(t, f, func(ctx context.Context, task *Task) error {
					if !task.Deadline.Equal(serverTime.Add(left)) {
						t.Errorf("Deadline = %v, want that of the server", task.Deadline)
					}
					<-ctx.Done()
					ended <- context.Cause(ctx)
					return ctx.Err()
				}, func(c *Config) { c.Lease = lease })
				begun := time.Now()
				select {
				case cause := <-ended:
					if after := time.Since(begun); cause != ErrOverdue || after != left {
						t.Errorf("the handler ended with %v after %v, want %v after %v", cause, after, ErrOverdue, left)
					}
				case <-time.After(time.Minute):
					t.Error("the handler still runs, or did not start")
				}
				if err := stop(); err != nil {
					t.Errorf("Run = %v, want nil", err)
				}
				if got := f.said(); got != "" || len(f.returned) > 0 {
					t.Errorf("reported %q, handed back %q; want neither", got, f.returned)
				}
			})
		})
	}
}
