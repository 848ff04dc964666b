// Package policy says how long a task may take and how often it is tried.
//
// A sender gives a policy with a task, an agent has a default. The package holds no state and
// knows no SQL.
package policy

import (
	"fmt"
	"time"

	"github.com/parley-dev/parley/internal/errs"
)

// Limits of a policy.
const (
	MaxTimeout  = 30 * 24 * time.Hour
	MaxAttempts = 10
	MaxBackoff  = time.Hour // of the first retry, and of every later one
)

// DefaultAttempts is how many workers a task without a policy may lose before it fails.
const DefaultAttempts = 3

// Policy is the policy of a task, or the default of an agent. Its zero value sets nothing: the
// task has no deadline, and is tried again only after a lost worker.
type Policy struct {
	// Deadline is when the task fails unless it is over. A policy that is not that of a task may
	// have a Timeout instead.
	Deadline time.Time
	// Timeout is the time from the creation of the task to its deadline.
	Timeout time.Duration
	Retry   Retry // zero: the default
}

// Retry says which attempts are followed by another one.
type Retry struct {
	Attempts int           // at most, with the first
	Backoff  time.Duration // before the second attempt; doubles with each further one
	Lost     bool          // retry if the worker was lost
	Failed   bool          // retry if the worker reported a failure
}

// IsZero reports whether the policy sets nothing.
func (p Policy) IsZero() bool { return p == Policy{} }

// Or returns the policy with what it does not set taken from another one.
func (p Policy) Or(other Policy) Policy {
	if p.Deadline.IsZero() && p.Timeout == 0 {
		p.Deadline, p.Timeout = other.Deadline, other.Timeout
	}
	if p.Retry == (Retry{}) {
		p.Retry = other.Retry
	}
	return p
}

// From returns the policy of a task that is created now: with a deadline and a timeout, or
// neither.
func (p Policy) From(now time.Time) Policy {
	switch {
	case !p.Deadline.IsZero():
		p.Deadline = p.Deadline.Truncate(time.Microsecond).UTC()
		p.Timeout = p.Deadline.Sub(now)
	case p.Timeout != 0:
		p.Deadline = now.Add(p.Timeout).Truncate(time.Microsecond).UTC()
	}
	return p
}

// Again returns the policy for another task like the one that has this policy: as much time, and
// as many attempts.
func (p Policy) Again() Policy {
	p.Deadline = time.Time{}
	return p
}

// Overdue reports whether the deadline has passed.
func (p Policy) Overdue(clock time.Time) bool {
	return !p.Deadline.IsZero() && !clock.Before(p.Deadline)
}

// Retries returns the retry policy, which is the default one if none is set.
func (p Policy) Retries() Retry {
	if p.Retry == (Retry{}) {
		return Retry{Attempts: DefaultAttempts, Lost: true}
	}
	return p.Retry
}

// Wait returns how long to wait after so many attempts.
func (r Retry) Wait(attempts int) time.Duration {
	wait := r.Backoff
	for ; attempts > 1 && wait < MaxBackoff; attempts-- {
		wait *= 2
	}
	return min(wait, MaxBackoff)
}

// Check reports every field that is out of range.
func (p Policy) Check() (f []errs.Field) {
	if p.Timeout != 0 && (p.Timeout < time.Second || p.Timeout > MaxTimeout) {
		f = append(f, errs.NewField("timeout_seconds", between(1, MaxTimeout)))
	}
	if p.Retry != (Retry{}) {
		f = append(f, errs.Under(p.Retry.check(), "retry")...)
	}
	return f
}

func (r Retry) check() (f []errs.Field) {
	if r.Attempts < 1 || r.Attempts > MaxAttempts {
		f = append(f, errs.NewField("max_attempts", fmt.Sprintf("must be an integer from 1 to %d", MaxAttempts)))
	}
	if r.Backoff < 0 || r.Backoff > MaxBackoff {
		f = append(f, errs.NewField("backoff_seconds", between(0, MaxBackoff)))
	}
	if !r.Lost && !r.Failed {
		f = append(f, errs.NewField("on", OnRule))
	}
	return f
}

// OnRule describes the attempts after which a task is tried again.
const OnRule = `must have "lost", "failed" or both; for a single attempt set max_attempts to 1`

// CheckDeadline reports a deadline of a new task that has passed or is too far away.
func (p Policy) CheckDeadline() []errs.Field {
	switch {
	case p.Deadline.IsZero():
	case p.Timeout <= 0:
		return []errs.Field{errs.NewField("deadline", "has passed; give a later one")}
	case p.Timeout > MaxTimeout:
		return []errs.Field{errs.NewField("deadline",
			fmt.Sprintf("must be at most %d days from now", MaxTimeout/(24*time.Hour)))}
	}
	return nil
}

func between(low int, high time.Duration) string {
	return fmt.Sprintf("must be an integer from %d to %d", low, high/time.Second)
}
