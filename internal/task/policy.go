package task

import (
	"fmt"
	"slices"
	"time"
)

// Attempt returns the number of the current attempt, or of the last one.
func (t *Task) Attempt() int { return min(t.Attempts+1, t.Policy.Retries().Attempts) }

// DecideWake does what the task waits for: it fails after its deadline, or its next attempt is due.
func DecideWake(t Task, now, clock time.Time) (Change, error) {
	c := Change{Task: t, System: true}
	switch {
	case t.WakeAt.IsZero() || clock.Before(t.WakeAt):
	case t.State.Terminal(): // a program that knows no policies has ended it
		c.Task.WakeAt = time.Time{}
	case t.Policy.Overdue(clock):
		c.overdue(now)
	default:
		c.Task.WakeAt = t.Policy.Deadline
		if t.waitsToRetry() {
			c.Task.Queued = true
			c.add(Event{
				Kind: StatusEvent, State: Working, Message: Says("Waiting for " + t.attemptOf(t.Attempts+1) + "."),
			}, now)
		}
	}
	return c, nil
}

// waitsToRetry reports whether the task waits until it is queued for its next attempt.
func (t *Task) waitsToRetry() bool { return t.State == Working && !t.Queued && !t.Lease.Live() }

// overdue fails a task whose deadline has passed.
func (c *Change) overdue(now time.Time) {
	t := &c.Task
	doing := "a worker was working on it"
	switch {
	case t.State.Interrupted():
		doing = "it waited for its sender"
	case t.Queued:
		doing = "it waited for a worker"
	case t.waitsToRetry():
		doing = "it waited for " + t.attemptOf(t.Attempts+1)
	}
	text := fmt.Sprintf("The deadline %s passed while %s.", stamp(t.Policy.Deadline), doing)
	t.Queued = false
	e := c.endLease(LeaseOverdue)
	e.State, e.Message = Failed, Says(text)
	c.add(e, now)
}

// lose ends the lease of a lost worker. why is a sentence without its period.
func (c *Change) lose(why string, after time.Duration, now time.Time) {
	t := &c.Task
	retry := t.Policy.Retries()
	at, again := t.nextAttempt(retry.Lost, after, now)
	e := c.endLease(LeaseExpired)
	t.Attempts++
	switch {
	case again && at.Equal(now):
		e.Message = Says(why + "; waiting for " + t.attemptOf(t.Attempts+1) + ".")
	case again:
		e.Message = Says(fmt.Sprintf("%s; %s starts at %s.", why, t.attemptOf(t.Attempts+1), stamp(at)))
	case retry.Lost && t.Attempts < retry.Attempts:
		e.Message = Says(why + ", and another attempt would start after the deadline.")
	case t.Policy.Retry.Failed: // not every attempt was lost
		e.Message = Says(fmt.Sprintf("%s in %s; the task was given up.", why, t.attemptOf(t.Attempts)))
	case t.Attempts == 1:
		e.Message = Says(why + "; the task was given up.")
	default:
		e.Message = Says(fmt.Sprintf("%s; the task was given up after %d attempts.", why, t.Attempts))
	}
	c.queueAgain(e, again, at, now)
}

// retryFailed ends the lease of a worker that failed, if another attempt follows. It keeps what the
// worker said.
func (c *Change) retryFailed(said *Message, now time.Time) bool {
	t := &c.Task
	at, again := t.nextAttempt(t.Policy.Retries().Failed, 0, now)
	if !again {
		return false
	}
	e := c.endLease(LeaseFailed)
	t.Attempts++
	next := "waiting for the next one"
	if at.After(now) {
		next = "the next one starts at " + stamp(at)
	}
	e.Message = Says(fmt.Sprintf("A%s failed; %s.", t.attemptOf(t.Attempts)[1:], next))
	if said != nil {
		m := *said
		m.Parts = slices.Concat(e.Message.Parts, said.Parts)
		e.Message = &m
	}
	c.queueAgain(e, true, at, now)
	return true
}

// reported returns what the worker said in the message of an event that ends a lease: that of a
// failure that is followed by another attempt starts with a part of the platform.
func (m *Message) reported(how LeaseEnd) *Message {
	if m == nil || how != LeaseFailed {
		return m
	}
	if len(m.Parts) < 2 {
		return nil
	}
	out := *m
	out.Parts = m.Parts[1:]
	return &out
}

// nextAttempt returns when the attempt after the current one starts, at the earliest after a time, and
// false if there is none.
func (t *Task) nextAttempt(retried bool, after time.Duration, now time.Time) (time.Time, bool) {
	retry, ended := t.Policy.Retries(), t.Attempts+1
	at := now.Add(max(retry.Wait(ended), after))
	return at, retried && ended < retry.Attempts && !t.Policy.Overdue(at)
}

// queueAgain adds an event that ends an attempt. The task goes to the queue at the given time, or it
// fails.
func (c *Change) queueAgain(e Event, again bool, at, now time.Time) {
	switch e.State = Working; {
	case !again:
		e.State = Failed
	case at.After(now):
		c.Task.WakeAt = at
	default:
		c.Task.Queued = true
	}
	c.add(e, now)
}

// attemptOf names an attempt.
func (t *Task) attemptOf(number int) string {
	return fmt.Sprintf("attempt %d of %d", number, t.Policy.Retries().Attempts)
}

// stamp returns a time for people and programs, to the second unless it has a fraction.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.999Z") }
