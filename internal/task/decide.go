package task

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/policy"
)

// MaxAttempts is how many workers may be lost before a task without a retry policy fails.
const MaxAttempts = policy.DefaultAttempts

// Change is the result of a decision: the new row and its new events, which the store writes
// atomically.
type Change struct {
	Task   Task
	Events []Event
	Push   *PushConfig // to set; may be nil
	// Replaces is the uid of the task whose follow-up a new task takes over; may be empty.
	Replaces string
	// PushGuard is called before Push is written, unless it is stored already. It may refuse.
	PushGuard func(PushSet) error
	Reported  Reported
	// CanceledBy is who canceled the task; zero means its sender.
	CanceledBy identity.Principal
	// System means that nobody asked for the change: a worker was lost, or a deadline passed.
	System bool
	// Charge is what a new task is counted against; nil: nothing.
	Charge *Charge
}

// Reported has the data for the response to a worker's report. With an idempotency key it is
// stored, to repeat the response.
type Reported struct {
	Given  int64 // the last event that the worker had before
	Before int64 // the last event before those of the report
	Seq    int64 // the last event
}

// add appends an event to the change and updates the row.
func (c *Change) add(e Event, now time.Time) {
	c.Task.Seq++
	e.Seq, e.At = c.Task.Seq, now
	if e.Kind == StatusEvent {
		c.Task.State, c.Task.StatusSeq = e.State, e.Seq
		if e.State.Terminal() {
			c.Task.WakeAt = time.Time{}
		}
	}
	if e.Message != nil && e.Message.ID == "" {
		m := *e.Message
		m.ID = "m-" + c.Task.UID + "-" + strconv.FormatInt(e.Seq, 10)
		e.Message = &m
	}
	c.Task.UpdatedAt = now
	c.Events = append(c.Events, e)
}

// endLease removes the lease from the row and returns the event for the log.
func (c *Change) endLease(how LeaseEnd) Event {
	e := Event{
		Kind: StatusEvent, Lease: c.Task.Lease.Token, Attempt: c.Task.Attempts + 1, Beats: c.Task.Lease.Beats, Ended: how,
	}
	if e.Lease == "" {
		e.Attempt, e.Beats, e.Ended = 0, 0, ""
	}
	c.Task.Lease = Lease{}
	if how == LeaseCanceled {
		c.Task.Lease.Token = e.Lease // so that its holder learns that the task was canceled
	}
	return e
}

// Turn is a message of the sender: the first of a task, or a further one.
type Turn struct {
	Message     Message
	OutputModes []string        // media types that the sender accepts; may be nil
	Metadata    json.RawMessage // a JSON object; for the first turn it is in the task's row
	Trace       string          // see Task
}

// DecideNew creates a task. If l is not nil, the task is leased at once, and its first visible
// state is working. A task that repeats another one has more turns than the first.
func DecideNew(t Task, first Turn, l *Lease, limits Limits, now time.Time, more ...Turn) (Change, error) {
	m, modes := first.Message, first.OutputModes
	size := m.Size() + listSize(modes)
	if err := limits.message(size); err != nil {
		return Change{}, err
	}
	t.State, t.CreatedAt, t.Size, t.LastTurn, t.Queued = Submitted, now, size, m.fingerprint(), true
	t.Trace, t.WakeAt = first.Trace, t.Policy.Deadline
	c := Change{Task: t, Events: make([]Event, 0, 3+len(more))}
	c.add(Event{Kind: TurnEvent, Message: &m, OutputModes: modes}, now)
	for i := range more {
		if err := c.turn(&more[i], more[i].Message.fingerprint(), limits, now); err != nil {
			return Change{}, err
		}
	}
	c.add(Event{Kind: StatusEvent, State: Submitted}, now)
	if l != nil {
		c.claim(*l, now)
	}
	return c, nil
}

// claim leases the task to a worker.
func (c *Change) claim(l Lease, now time.Time) {
	c.Task.Queued, c.Task.Lease = false, l
	c.add(Event{
		Kind: StatusEvent, State: Working, Lease: l.Token, Worker: l.Worker, Attempt: c.Task.Attempts + 1,
	}, now)
	c.Task.Delivered = c.Task.Seq // a claim returns all turns so far
}

// DecideClaim leases a waiting task to a worker.
func DecideClaim(t Task, l Lease, now time.Time) (Change, error) {
	if !t.Queued || t.Lease.Live() || t.State.Terminal() || t.Policy.Overdue(now) {
		return Change{Task: t}, nil
	}
	c := Change{Task: t}
	c.claim(l, now)
	return c, nil
}

// DecideSeen records that all turns up to an event were delivered to the holder of the lease.
func DecideSeen(t Task, token string, seq int64) (Change, error) {
	c := Change{Task: t}
	if t.Lease.Token == token && t.Delivered < seq {
		c.Task.Delivered = seq
	}
	return c, nil
}

// DecideUnseen records that the turns after an event were not delivered to the holder of the
// lease.
func DecideUnseen(t Task, token string, seq int64) (Change, error) {
	c := Change{Task: t}
	if t.Lease.Token == token && t.Delivered > seq {
		c.Task.Delivered = seq
	}
	return c, nil
}

// DecideTurn adds a message to an existing task. The same message again is a retry and changes
// nothing, unless the agent has asked for input since.
func DecideTurn(t Task, turn Turn, limits Limits, now time.Time) (Change, error) {
	c, m := Change{Task: t}, turn.Message
	print := m.fingerprint()
	if print != "" && print == t.LastTurn {
		return c, nil
	}
	if t.State.Terminal() {
		return c, errs.New(errs.Conflict, CodeTerminal,
			"the task is %s and takes no further messages; send a new task", t.State)
	}
	if err := c.turn(&turn, print, limits, now); err != nil {
		return c, err
	}
	if turn.Trace != "" {
		c.Task.Trace = turn.Trace
	}
	if t.State.Interrupted() {
		c.Task.Queued = true
		c.add(Event{Kind: StatusEvent, State: Working}, now)
	}
	return c, nil
}

// turn adds a further message of the sender, with its fingerprint.
func (c *Change) turn(turn *Turn, print string, limits Limits, now time.Time) error {
	m := turn.Message
	size := m.Size() + listSize(turn.OutputModes) + int64(len(turn.Metadata))
	if err := limits.grow(c.Task.Seq+2, c.Task.Size+size); err != nil {
		return err
	}
	c.Task.Size += size
	c.Task.LastTurn = print
	c.add(Event{Kind: TurnEvent, Message: &m, OutputModes: turn.OutputModes, Metadata: turn.Metadata}, now)
	return nil
}

// Rerunnable are the states of tasks that can be sent again.
var Rerunnable = []State{Failed, Rejected, Canceled}

// Error codes that transports map to their own.
const (
	CodeNotRerunnable = "task.not_rerunnable"
	CodeTerminal      = "task.terminal"
	CodeNotCancelable = "task.not_cancelable"
	CodeStaleLease    = "task.lease_stale"
	CodeTooLarge      = "task.too_large"
)

// DecideCancel cancels a task on behalf of its sender.
func DecideCancel(t Task, now time.Time) (Change, error) {
	c := Change{Task: t}
	if t.State.Terminal() {
		return c, errs.New(errs.Conflict, CodeNotCancelable, "the task is %s already and cannot be canceled", t.State)
	}
	c.Task.Queued = false
	e := c.endLease(LeaseCanceled)
	e.State = Canceled
	c.add(e, now)
	return c, nil
}

// Report is a report of a worker about the task that it holds.
type Report struct {
	State     State // empty for no change
	Message   *Message
	Reply     bool // the message completes the task and is the whole result
	Artifacts []ArtifactUpdate
	Extend    time.Duration // new length of the lease, from now; 0 leaves it unchanged
	// Seen is the number from the last response that the worker received. Turns since then
	// are delivered again. If it is nil, turns since the last response are delivered, although
	// that response may have been lost.
	Seen *int64
}

// Length returns the size of the report's content in bytes.
func (r *Report) Length() int64 {
	n := r.Message.Length()
	for i := range r.Artifacts {
		n += partsLength(r.Artifacts[i].Artifact.Parts)
	}
	return n
}

// ArtifactUpdate is an artifact, or a further chunk of one.
type ArtifactUpdate struct {
	Artifact  Artifact
	Append    bool
	LastChunk bool
	More      bool // the worker said that more chunks follow
}

// ReportableStates are the states that a worker may report. Canceled only confirms that the
// sender canceled the task; see DecideReport.
var ReportableStates = []State{Working, Completed, Failed, InputRequired, AuthRequired, Rejected, Canceled}

// lastChunk reports whether the artifact at i is complete. In a report that ends the task it is,
// unless the worker said otherwise: clients drop artifacts that look incomplete.
func (r *Report) lastChunk(i int) bool {
	u := &r.Artifacts[i]
	if u.LastChunk || u.More || !r.State.Terminal() || r.State == "" {
		return u.LastChunk
	}
	return !slices.ContainsFunc(r.Artifacts[i+1:], func(later ArtifactUpdate) bool {
		return later.Append && later.Artifact.ID == u.Artifact.ID
	})
}

// DecideReport applies a worker's report if the token is that of the live lease.
func DecideReport(t Task, token string, r Report, limits Limits, now, clock time.Time) (Change, error) {
	c := Change{Task: t}
	if t.State == Canceled && t.Lease.Token == token && token != "" {
		return c, nil // too late, or a confirmation; the response has the state
	}
	if err := holds(t, token, clock); err != nil {
		return c, err
	}
	if t.Policy.Overdue(clock) {
		return c, ErrStaleLease // the task is about to fail
	}
	if r.Seen != nil && (*r.Seen < 0 || *r.Seen > t.Seq) {
		return c, errs.InvalidFields(errs.NewField("seen", "must be the number from the claim or the last response"))
	}
	c.Events = slices.Grow(c.Events, len(r.Artifacts)+1)
	for i, u := range r.Artifacts {
		c.Task.Size += u.Artifact.size()
		c.add(Event{Kind: ArtifactEvent, Artifact: &u.Artifact, Append: u.Append, LastChunk: r.lastChunk(i)}, now)
	}
	if r.Message != nil {
		c.Task.Size += r.Message.Size()
	}
	switch {
	case r.State == "" && r.Message == nil:
	case r.State == "" || r.State == Working:
		c.add(Event{Kind: StatusEvent, State: Working, Message: r.Message}, now)
	case r.State == Canceled:
		return Change{}, errs.InvalidFields(errs.NewField("status",
			"canceled confirms that the sender canceled the task, which it has not; report failed or rejected instead"))
	case !slices.Contains(ReportableStates, r.State) || !slices.Contains(t.State.Next(), r.State):
		return Change{}, errs.InvalidFields(errs.NewField("status", fmt.Sprintf("must be one of %v", ReportableStates)))
	case r.State == Failed && t.Policy.Retry.Failed && limits.grow(t.Seq+1, t.Size) == nil &&
		c.retryFailed(r.Message, now):
	default:
		if r.State.Interrupted() {
			c.Task.LastTurn = "" // an equal message is a new one now, not a retry
		}
		e := c.endLease(LeaseDone)
		e.State, e.Message, e.Reply = r.State, r.Message, r.Reply
		c.add(e, now)
	}
	if err := limits.grow(c.Task.Seq, c.Task.Size); err != nil && len(c.Events) > 0 && !r.endsBriefly() {
		return Change{}, err
	}
	if r.Extend > 0 && c.Task.Lease.Live() {
		c.Task.Lease.ExpiresAt = clock.Add(r.Extend)
		c.Task.Lease.Beats++
	}
	c.Task.Delivered = c.Task.Seq
	return c, nil
}

// maxLastMessage limits the message of a report that ends a task which has reached its limits, in bytes.
const maxLastMessage = 8 << 10

// endsBriefly reports whether a report ends the task and adds little: without it, a task that has reached
// its limits could not end.
func (r *Report) endsBriefly() bool {
	return r.State != "" && r.State.Terminal() && len(r.Artifacts) == 0 &&
		(r.Message == nil || r.Message.Size() <= maxLastMessage)
}

// Known returns the last event that was delivered to the worker before the report.
func (r *Report) Known(t *Task) int64 {
	if r.Seen != nil {
		return *r.Seen
	}
	return t.Delivered
}

// ErrStaleLease refuses a token that is not that of the live lease.
var ErrStaleLease = errs.New(errs.Conflict, CodeStaleLease,
	"the lease is over: it expired, was handed back, or the task was canceled or finished; drop this work and claim again")

// holds checks that the token is that of the live lease.
func holds(t Task, token string, clock time.Time) error {
	if t.Lease.Token == token && token != "" && clock.Before(t.Lease.ExpiresAt) {
		return nil
	}
	return ErrStaleLease
}

// DecideReturn puts a task back into the queue. It does not count as an attempt.
func DecideReturn(t Task, token string, now, clock time.Time) (Change, error) {
	return DecideReturnLater(t, token, now, now, clock)
}

// DecideReturnLater is like DecideReturn, but the task is not in the queue before a time: other tasks
// go first.
func DecideReturnLater(t Task, token string, at, now, clock time.Time) (Change, error) {
	c := Change{Task: t}
	if err := holds(t, token, clock); err != nil {
		return c, err
	}
	if d := t.Policy.Deadline; !d.IsZero() && d.Before(at) {
		at = d
	}
	c.queueAgain(c.endLease(LeaseReturned), true, at, now)
	return c, nil
}

// DecideExpire ends an expired lease. The task goes back to the queue, or fails after its last
// attempt. The lease of an agent that runs in a server costs no attempt: the node was lost, and
// the agent continues on another one.
func DecideExpire(t Task, now, clock time.Time) (Change, error) {
	c := Change{Task: t, System: true}
	if !t.Lease.Live() || !t.Lease.over(clock) {
		return c, nil
	}
	if t.Lease.hosted() {
		e := c.endLease(LeaseExpired)
		e.State = Working
		c.Task.Queued = true
		c.add(e, now)
		return c, nil
	}
	c.lose("The worker was lost", 0, now)
	return c, nil
}

// DecideLost ends the lease of a worker that has lost its work on the task. The task goes back to
// the queue, at the earliest after a time, or fails after its last attempt. why is a sentence
// without its period.
func DecideLost(t Task, token, why string, after time.Duration, now, clock time.Time) (Change, error) {
	c := Change{Task: t, System: true}
	if err := holds(t, token, clock); err != nil {
		return c, err
	}
	c.lose(why, after, now)
	return c, nil
}

// Says returns a text message of the agent.
func Says(text string) *Message {
	return &Message{Role: RoleAgent, Parts: []Part{{Kind: TextPart, Text: text}}}
}
