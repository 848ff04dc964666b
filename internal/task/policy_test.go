package task

import (
	"strings"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/policy"
)

// governed returns a task in a state with a policy.
func governed(s State, p policy.Policy) Task {
	t := in(s)
	t.Policy = p.From(noon)
	t.WakeAt = t.Policy.Deadline
	if s.Terminal() {
		t.WakeAt = time.Time{}
	}
	return t
}

func (t Task) with(change func(*Task)) Task {
	change(&t)
	return t
}

// What a task that is woken does, for every state in which it may be.
func TestWakingATask(t *testing.T) {
	t.Parallel()
	minute := policy.Policy{Timeout: time.Minute}
	retry := policy.Policy{Timeout: time.Minute, Retry: policy.Retry{Attempts: 3, Backoff: time.Second, Failed: true}}
	waiting := governed(Working, retry).with(func(t *Task) {
		t.Lease, t.Attempts, t.WakeAt = Lease{}, 1, noon.Add(time.Second)
	})
	for _, c := range []struct {
		name   string
		task   Task
		after  time.Duration
		state  State
		says   string // empty: nothing changes
		queued bool
		wake   time.Time
	}{
		{"before the deadline", governed(Submitted, minute), 59 * time.Second, Submitted, "", true, noon.Add(time.Minute)},
		{
			"queued", governed(Submitted, minute), time.Minute, Failed,
			"The deadline 2026-01-01T12:01:00Z passed while it waited for a worker.", false,
			time.Time{},
		},
		{
			"leased", governed(Working, minute), time.Hour, Failed,
			"The deadline 2026-01-01T12:01:00Z passed while a worker was working on it.", false,
			time.Time{},
		},
		{
			"input-required", governed(InputRequired, minute), time.Hour, Failed,
			"The deadline 2026-01-01T12:01:00Z passed while it waited for its sender.", false,
			time.Time{},
		},
		{
			"auth-required", governed(AuthRequired, minute), time.Hour, Failed,
			"The deadline 2026-01-01T12:01:00Z passed while it waited for its sender.", false,
			time.Time{},
		},
		{"between attempts", waiting, time.Millisecond, Working, "", false, noon.Add(time.Second)},
		{
			"the next attempt", waiting, time.Second, Working, "Waiting for attempt 2 of 3.", true, noon.Add(time.Minute),
		},
		{
			"between attempts, overdue", waiting, time.Minute, Failed,
			"The deadline 2026-01-01T12:01:00Z passed while it waited for attempt 2 of 3.", false,
			time.Time{},
		},
		{
			"ended by an older program",
			governed(Completed, minute).with(func(t *Task) { t.WakeAt = noon.Add(time.Minute) }),
			time.Hour, Completed, "", false,
			time.Time{},
		},
		{"without a policy", in(Working), time.Hour, Working, "", false, time.Time{}},
	} {
		at := noon.Add(c.after)
		got, err := DecideWake(c.task, at, at)
		if err != nil {
			t.Fatal(err)
		}
		if got.Task.State != c.state || got.Task.Queued != c.queued || !got.Task.WakeAt.Equal(c.wake) {
			t.Errorf("%s: %s, queued %v, wakes at %s; want %s, %v, %s",
				c.name, got.Task.State, got.Task.Queued, got.Task.WakeAt, c.state, c.queued, c.wake)
		}
		if c.says == "" {
			if len(got.Events) != 0 {
				t.Errorf("%s: it wrote %+v", c.name, got.Events)
			}
			continue
		}
		checkChange(t, c.name, c.task, got)
		if e := got.Events[0]; e.Message.Text() != c.says || !got.System {
			t.Errorf("%s: it says %q (system %v); want %q", c.name, e.Message.Text(), got.System, c.says)
		}
		if e := got.Events[0]; c.task.Lease.Live() && (e.Ended != LeaseOverdue || got.Task.Lease != Lease{}) {
			t.Errorf("%s: the lease ended as %q and is %+v", c.name, e.Ended, got.Task.Lease)
		}
	}
}

// Nobody starts or finishes work after the deadline, even before the task is woken.
func TestTheDeadlineEndsTheWork(t *testing.T) {
	t.Parallel()
	late := noon.Add(time.Minute)
	queued := governed(Submitted, policy.Policy{Timeout: time.Minute})
	lease := Lease{Token: "lease-u-2", ExpiresAt: late.Add(time.Minute)}
	if c, err := DecideClaim(queued, lease, late); err != nil || len(c.Events) != 0 {
		t.Errorf("claim at the deadline: %+v, %v", c.Events, err)
	}
	if c, err := DecideClaim(queued, lease, late.Add(-1)); err != nil || len(c.Events) != 1 {
		t.Errorf("claim before the deadline: %+v, %v", c.Events, err)
	}
	held := governed(Working, policy.Policy{Timeout: time.Minute})
	held.Lease.ExpiresAt = late.Add(time.Minute)
	for _, r := range []Report{{State: Completed}, {State: Failed}, {Extend: time.Second}} {
		if _, err := DecideReport(held, "lease-u-1", r, DefaultLimits, late, late); errs.As(err).Code != CodeStaleLease {
			t.Errorf("report %+v at the deadline: %v; want a stale lease", r, err)
		}
		if _, err := DecideReport(held, "lease-u-1", r, DefaultLimits, late.Add(-1), late.Add(-1)); err != nil {
			t.Errorf("report %+v before the deadline: %v", r, err)
		}
	}
}

// What follows an attempt that is lost or fails, for each policy.
func TestRetries(t *testing.T) {
	t.Parallel()
	failed := func(t Task) (Change, error) {
		r := Report{State: Failed, Message: Says("no disk space")}
		return DecideReport(t, "lease-u-1", r, DefaultLimits, noon, noon)
	}
	lost := func(t Task) (Change, error) { return DecideExpire(t, noon, noon.Add(2*time.Minute)) }
	lostAfter := func(wait time.Duration) func(Task) (Change, error) {
		return func(t Task) (Change, error) { return DecideLost(t, "lease-u-1", "The disk broke", wait, noon, noon) }
	}
	retry := func(attempts int, backoff time.Duration, on string) policy.Policy {
		return policy.Policy{Retry: policy.Retry{
			Attempts: attempts, Backoff: backoff, Lost: strings.Contains(on, "lost"), Failed: strings.Contains(on, "failed"),
		}}
	}
	both := "lost, failed"
	for _, c := range []struct {
		name   string
		policy policy.Policy
		before int // attempts
		do     func(Task) (Change, error)
		state  State
		wait   time.Duration // before the task is queued; negative: it is over
		says   string
	}{
		{"no policy, lost", policy.Policy{}, 0, lost, Working, 0, "The worker was lost; waiting for attempt 2 of 3."},
		{"no policy, lost at last", policy.Policy{}, 2, lost, Failed, -1, "The worker was lost; the task was given up after 3 attempts."},
		{"lost for a reason", policy.Policy{}, 0, lostAfter(0), Working, 0, "The disk broke; waiting for attempt 2 of 3."},
		{
			"lost for a reason, later", retry(3, 5*time.Second, both), 0, lostAfter(time.Minute), Working, time.Minute,
			"The disk broke; attempt 2 of 3 starts at 2026-01-01T12:01:00Z.",
		},
		{
			"lost for a reason at last",
			policy.Policy{},
			2, lostAfter(0), Failed, -1,
			"The disk broke; the task was given up after 3 attempts.",
		},
		{"no policy, failed", policy.Policy{}, 0, failed, Failed, -1, "no disk space"},
		{"failed, at once", retry(3, 0, both), 0, failed, Working, 0, "Attempt 1 of 3 failed; waiting for the next one."},
		{
			"failed, later", retry(3, 5*time.Second, both), 0, failed, Working, 5 * time.Second,
			"Attempt 1 of 3 failed; the next one starts at 2026-01-01T12:00:05Z.",
		},
		{
			"failed again, later", retry(3, 5*time.Second, both), 1, failed, Working, 10 * time.Second,
			"Attempt 2 of 3 failed; the next one starts at 2026-01-01T12:00:10Z.",
		},
		{"failed at last", retry(3, 5*time.Second, both), 2, failed, Failed, -1, "no disk space"},
		{"failed, not retried", retry(3, 0, "lost"), 0, failed, Failed, -1, "no disk space"},
		{
			"lost, later", retry(3, 5*time.Second, both), 0, lost, Working, 5 * time.Second,
			"The worker was lost; attempt 2 of 3 starts at 2026-01-01T12:00:05Z.",
		},
		{"lost, not retried", retry(3, 0, "failed"), 0, lost, Failed, -1, "The worker was lost in attempt 1 of 3; the task was given up."},
		{"lost in the only attempt", retry(1, 0, "lost"), 0, lost, Failed, -1, "The worker was lost; the task was given up."},
		{
			"lost, too late",
			policy.Policy{Timeout: time.Second, Retry: retry(3, 5*time.Second, both).Retry},
			0, lost, Failed, -1,
			"The worker was lost, and another attempt would start after the deadline.",
		},
		{
			"failed, too late",
			policy.Policy{Timeout: time.Second, Retry: retry(3, 5*time.Second, both).Retry},
			0, failed,
			Failed, -1, "no disk space",
		},
	} {
		before := governed(Working, c.policy).with(func(t *Task) { t.Attempts = c.before })
		got, err := c.do(before)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		checkChange(t, c.name, before, got)
		wake := before.Policy.Deadline
		switch {
		case c.wait < 0:
			wake = time.Time{}
		case c.wait > 0:
			wake = noon.Add(c.wait)
		}
		if got.Task.State != c.state || got.Task.Queued != (c.wait == 0) || !got.Task.WakeAt.Equal(wake) {
			t.Errorf("%s: %s, queued %v, wakes at %s; want %s, %v, %s",
				c.name, got.Task.State, got.Task.Queued, got.Task.WakeAt, c.state, c.wait == 0, wake)
		}
		if said := got.Events[0].Message.Text(); said != c.says {
			t.Errorf("%s: it says %q; want %q", c.name, said, c.says)
		}
		if c.state == Working && got.Task.Attempts != c.before+1 {
			t.Errorf("%s: %d attempts are over; want %d", c.name, got.Task.Attempts, c.before+1)
		}
		if got.Task.Lease != (Lease{}) {
			t.Errorf("%s: the lease is %+v; want none", c.name, got.Task.Lease)
		}
	}
}

// A task that is handed back for later costs no attempt, and keeps its deadline.
func TestHandedBackForLater(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		deadline, wakes time.Time
	}{
		"without a deadline":     {wakes: noon.Add(time.Minute)},
		"with a later deadline":  {noon.Add(time.Hour), noon.Add(time.Minute)},
		"with an early deadline": {noon.Add(time.Second), noon.Add(time.Second)},
	} {
		before := governed(Working, policy.Policy{Deadline: c.deadline})
		got, err := DecideReturnLater(before, "lease-u-1", noon.Add(time.Minute), noon, noon)
		if err != nil {
			t.Fatal(err)
		}
		if got.Task.Queued || !got.Task.WakeAt.Equal(c.wakes) || got.Task.Attempts != 0 || got.Task.Lease.Live() {
			t.Errorf("%s: %+v; want it to wait until %s", name, got.Task, c.wakes)
		}
		if got, err = DecideWake(got.Task, c.wakes, c.wakes); err != nil {
			t.Fatal(err)
		}
		if over := c.wakes.Equal(c.deadline); got.Task.Queued == over || (got.Task.State == Failed) != over {
			t.Errorf("%s: %s, queued %v at %s", name, got.Task.State, got.Task.Queued, c.wakes)
		}
	}
}

// The response to a failure may be lost, and the worker reports it again.
func TestARetriedFailureIsRecognized(t *testing.T) {
	t.Parallel()
	artifacts := []ArtifactUpdate{{Artifact: Artifact{ID: "a", Parts: []Part{{Kind: TextPart, Text: "half"}}}}}
	for name, r := range map[string]Report{
		"with a message":    {State: Failed, Message: Says("no disk space"), Artifacts: artifacts},
		"without a message": {State: Failed},
	} {
		before := governed(Working, policy.Policy{Retry: policy.Retry{Attempts: 2, Failed: true}})
		c, err := DecideReport(before, "lease-u-1", r, DefaultLimits, noon, noon)
		if err != nil {
			t.Fatal(err)
		}
		if _, same := r.EndIn(c.Events, "lease-u-1"); !same {
			t.Errorf("%s: the same report is not recognized", name)
		}
		for _, other := range []Report{
			{State: Failed, Message: Says("another cause"), Artifacts: r.Artifacts},
			{State: Completed, Message: r.Message, Artifacts: r.Artifacts},
		} {
			if _, same := other.EndIn(c.Events, "lease-u-1"); same {
				t.Errorf("%s: another report is taken for it: %+v", name, other)
			}
		}
		attempts := Attempts(append([]Event{{Lease: "lease-u-1", Attempt: 1}}, c.Events...))
		if want := r.Message; want != nil && attempts[0].Text != want.Text() || attempts[0].Ended != LeaseFailed {
			t.Errorf("%s: attempt %+v; want the worker's words", name, attempts[0])
		}
	}
}
