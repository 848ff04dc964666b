package task

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/budget"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/idempotency"
	"github.com/parley-dev/parley/internal/identity"
)

// Post is proof that a principal may work for an agent.
type Post struct{ target Target }

// Target is the agent that is worked for.
func (p Post) Target() Target { return p.target }

// Serve checks that the caller may work for the agent, which belongs to the
// caller's org.
func (s *Tasks) Serve(ctx context.Context, c *identity.Caller, agent string) (Post, error) {
	if !identity.ValidAgentID(agent) {
		return Post{}, errs.ErrNotFound
	}
	org := ""
	if c != nil {
		org = c.Org
	}
	a, err := identity.Authorize(c, org, identity.ServeAgent)
	if err != nil {
		s.noteRefusal(c, agent)
		return Post{}, err
	}
	if !a.ServesAgent(agent) {
		s.noteRefusal(c, agent)
		return Post{}, refuseAgent("work for", agent)
	}
	target, err := s.Directory.Own(ctx, a.Org(), agent)
	return Post{target: target}, err
}

// noteRefusal remembers for Connection that a worker was refused.
func (s *Tasks) noteRefusal(c *identity.Caller, agent string) {
	if c != nil {
		s.refused.note(Refusal{Agent: agent, KeyID: c.KeyID, Principal: c.Principal, Reason: serveProblem(c, agent), At: s.Now()})
	}
}

// Bounds of a claim.
const (
	MaxClaim    = 100
	MaxWait     = 60 * time.Second
	MaxCapacity = 10_000
)

// ClaimRequest asks for work.
type ClaimRequest struct {
	Worker   string
	Max      int
	Wait     time.Duration
	Lease    time.Duration
	Capacity int
	Ack      []string // ids of direct messages that arrived
	// Waiting is called whenever there is no work and Claim begins to wait; nil: nothing is.
	Waiting func()
}

// Claim is the work that was given.
type Claim struct {
	Assignments []Assignment
	Messages    []DirectMessage
}

// Claim waits for work and takes it; the wait ends with ctx. The caller must call Return
// for what does not reach the worker.
func (s *Tasks) Claim(ctx context.Context, p Post, r ClaimRequest) (Claim, error) {
	// A claim that has begun is finished: whether a client that closed its side of the
	// connection still reads is known when the response is written.
	wait := ctx
	ctx = context.WithoutCancel(ctx)
	org, agent, queue := p.target.Org, p.target.ID, p.target.Key()
	if strings.HasPrefix(r.Worker, localPrefix) {
		return Claim{}, errs.InvalidFields(field("worker", "must not start with "+localPrefix))
	}
	if len(r.Ack) > 0 {
		if err := s.Store.AckMessages(ctx, org, agent, r.Ack); err != nil {
			return Claim{}, err
		}
	}
	if err := s.see(ctx, Worker{Org: org, Agent: agent, Name: r.Worker, Capacity: r.Capacity}); err != nil {
		return Claim{}, err
	}
	timer := time.NewTimer(r.Wait)
	defer timer.Stop()
	for {
		changed := s.queues.wait(queue)
		claim, err := s.claimNow(ctx, p, r)
		if err != nil || len(claim.Assignments)+len(claim.Messages) > 0 || r.Wait <= 0 {
			return claim, err
		}
		if wait.Err() != nil {
			return Claim{}, wait.Err()
		}
		var seat *seat
		var served chan *Task // nil, and so never ready, for a worker that only wants messages
		if r.Max > 0 {
			seat = s.desk.sit(queue, r.Worker, r.Lease)
			served = seat.served
		}
		if r.Waiting != nil {
			r.Waiting()
		}
		over := false
		select {
		case t := <-served:
			if t != nil {
				return s.served(ctx, t)
			}
			continue
		case <-changed:
		case <-timer.C:
			over = true
		case <-s.stopping.Done():
			over = true
		case <-wait.Done():
			over = true
		}
		if seat != nil && !s.desk.leave(seat) {
			if t := <-seat.served; t != nil {
				return s.served(ctx, t)
			}
		}
		if over {
			return Claim{}, wait.Err()
		}
	}
}

// served is the claim of a worker that a new task was handed to.
func (s *Tasks) served(ctx context.Context, t *Task) (Claim, error) {
	c := Claim{Assignments: []Assignment{assignment(*t)}}
	return c, budget.From(ctx).Take(ctx, t.Size)
}

// claimNow takes what waits.
func (s *Tasks) claimNow(ctx context.Context, p Post, r ClaimRequest) (Claim, error) {
	org, agent := p.target.Org, p.target.ID
	var out Claim
	var err error
	if out.Messages, err = s.Store.Messages(ctx, org, agent, Batch{MaxClaim, maxClaimMessages}); err != nil {
		return out, err
	}
	size := int64(0)
	for i := range out.Messages {
		size += out.Messages[i].Message.size()
	}
	if err := budget.From(ctx).Take(ctx, size); err != nil || r.Max <= 0 {
		return out, err
	}
	out.Assignments, err = s.claimTasks(ctx, org, agent, r.Worker, Batch{r.Max, maxClaimTasks}, r.Lease)
	return out, err
}

// Bounds of what one claim returns, in bytes. The rest is for the next claim.
const (
	maxClaimMessages = 1 << 20
	maxClaimTasks    = 4 << 20 // or one task
)

func (s *Tasks) claimTasks(ctx context.Context, org, agent, worker string, b Batch, length time.Duration) ([]Assignment, error) {
	now := s.Now()
	changes, err := s.Store.ClaimTasks(ctx, org, agent, b, func(cur Current) (Change, error) {
		lease := Lease{Token: s.leaseToken(cur.Task.UID), Worker: worker, ExpiresAt: cur.Clock.Add(length)}
		return decideClaim(cur.Task, lease, now)
	})
	if err != nil {
		return nil, err
	}
	var out []Assignment
	for _, c := range changes {
		s.publish(c)
		t, err := s.loadByUID(ctx, org, c.Task.UID, Content{History: true})
		if err == nil && t.Seq > c.Task.Seq {
			// What the sender said meanwhile is in the assignment, and must not come again.
			_, err = s.Store.UpdateTask(ctx, org, t.UID, 0, func(cur Current) (Change, error) {
				return decideSeen(cur.Task, c.Task.Lease.Token, t.Seq)
			})
		}
		if err != nil {
			// Nobody will work on what was not handed over: it costs no attempt.
			for _, c := range changes {
				_ = s.Return(context.WithoutCancel(ctx), Post{Target{ID: agent, Org: org}}, c.Task.Lease.Token)
			}
			return nil, err
		}
		t.Lease = c.Task.Lease
		out = append(out, assignment(t))
	}
	return out, nil
}

func assignment(t Task) Assignment {
	return Assignment{Task: t, Lease: t.Lease, Number: t.Attempts + 1}
}

// leaseToken names the task, so that a report needs no index of tokens, and is
// new for every lease, so that an old one is told from a live one.
func (s *Tasks) leaseToken(uid string) string { return s.NewID("lease-" + uid + "-") }

// taskOf is the uid in a lease's token.
func taskOf(token string) (string, bool) {
	rest, ok := strings.CutPrefix(token, "lease-")
	if !ok {
		return "", false
	}
	uid, _, ok := strings.Cut(rest, "-")
	return uid, ok && len(token) <= MaxID
}

// Progress is the answer to a report.
type Progress struct {
	State     State
	Canceled  bool
	ExpiresAt time.Time // of the lease; zero: it is over
	Turns     []Message // what the sender said since the claim or the last report
	Seen      int64     // the number of the last event that the worker knows by now
	More      bool      // not all that the sender said is in Turns; the next report returns the rest
}

// Report takes a worker's report. When the lease is over nothing is changed, and
// the answer is Conflict, unless the task was canceled under this very lease:
// then the answer says so.
func (s *Tasks) Report(ctx context.Context, p Post, token string, r Report) (Progress, error) {
	uid, ok := taskOf(token)
	if !ok {
		return Progress{}, holds(Task{}, token, time.Time{})
	}
	return s.report(ctx, p.target.Org, p.target.ID, uid, token, r)
}

func (s *Tasks) report(ctx context.Context, org, agent, uid, token string, r Report) (Progress, error) {
	if err := r.Validate(); err != nil {
		return Progress{}, err
	}
	r.Artifacts = s.named(r.Artifacts)
	now := s.Now()
	decide := func(cur Current) (Change, error) {
		if cur.Task.Agent != agent {
			return Change{}, errs.ErrNotFound
		}
		change, err := decideReport(cur.Task, token, r, s.Limits, now, cur.Clock)
		seq := change.Task.Seq
		change.Reported = Reported{Given: r.known(&cur.Task), Before: seq - int64(len(change.Events)), Seq: seq}
		return change, err
	}
	once := idempotency.From(ctx)
	write := s.Store.UpdateTask
	if once != nil {
		write = s.Store.UpdateTaskOnce
	}
	change, err := write(ctx, org, uid, r.length(), decide)
	switch {
	case err != nil:
		return Progress{}, stale(err)
	case once.Replayed():
		return s.repeated(ctx, org, uid, token, change.Reported)
	}
	return s.progress(ctx, token, change), nil
}

// known is the last event that the worker was told of.
func (r *Report) known(t *Task) int64 {
	if r.Seen != nil {
		return *r.Seen
	}
	return t.Delivered
}

// progress publishes a report that is stored, and makes the response to it. The report is
// stored, so it is no failure if the turns cannot be read: they stay undelivered, and the
// response says that there is more.
func (s *Tasks) progress(ctx context.Context, token string, change Change) Progress {
	s.publish(change)
	t := &change.Task
	out := Progress{State: t.State, Canceled: t.State == Canceled, ExpiresAt: t.Lease.ExpiresAt, Seen: t.Seq}
	if !s.addTurns(ctx, &out, t, change.Reported) {
		s.undeliver(ctx, t, token, out.Seen)
	}
	return out
}

// addTurns adds what the sender said between what the worker knew and the report. It
// reports whether all of that could be read; if not, the response says that there is more.
func (s *Tasks) addTurns(ctx context.Context, p *Progress, t *Task, r Reported) bool {
	if r.Given >= r.Before {
		return true
	}
	turns, read, err := s.turns(ctx, t, r.Given, r.Before)
	p.Turns = turns
	if err != nil {
		p.More, p.Seen = true, read
	}
	return err == nil
}

// repeated is the response to a report that was stored before under its idempotency key.
// It has the same messages as the first one and the state of now. Nothing is changed: what
// counts as delivered may have moved on with later reports.
func (s *Tasks) repeated(ctx context.Context, org, uid, token string, r Reported) (Progress, error) {
	t, err := s.Store.TaskRow(ctx, org, uid)
	if err != nil {
		return Progress{}, stale(err)
	}
	out := Progress{State: t.State, Canceled: t.State == Canceled, Seen: r.Seq}
	if t.Lease.Token == token {
		out.ExpiresAt = t.Lease.ExpiresAt
	}
	s.addTurns(ctx, &out, &t, r)
	return out, nil
}

// undeliver notes that the worker was not given the turns after an event.
func (s *Tasks) undeliver(ctx context.Context, t *Task, token string, seq int64) {
	_, err := s.Store.UpdateTask(context.WithoutCancel(ctx), t.Org, t.UID, 0, func(cur Current) (Change, error) {
		return decideUnseen(cur.Task, token, seq)
	})
	if err != nil {
		s.OnError(fmt.Errorf("messages of task %s may not reach its worker: %w", t.UID, err))
	}
}

// stale turns "no such task" into the stale lease that it means to a worker.
func stale(err error) error {
	if errs.KindOf(err) == errs.NotFound {
		return holds(Task{}, "", time.Time{})
	}
	return err
}

// turns reads what the sender said after one event and up to another. What comes later
// is for the next report. read is the last event that was read. Memory is taken once,
// before anything is read: reports that took it bit by bit would wait for each other.
func (s *Tasks) turns(ctx context.Context, t *Task, after, upTo int64) (out []Message, read int64, err error) {
	account, held := budget.From(ctx), int64(0)
	if t.Size > maxFolded {
		held = 2 * t.Size
	}
	if err := account.Hold(ctx, held); err != nil {
		return nil, after, err
	}
	defer func() { account.Drop(max(0, held)) }()
	for after < upTo {
		events, err := s.Store.TaskEvents(ctx, t.Org, t.UID, after, 100)
		if err != nil || len(events) == 0 {
			return out, after, err
		}
		for _, e := range events {
			if e.Kind == TurnEvent && e.Seq <= upTo {
				out = append(out, *e.Message)
				held -= 2 * e.Size() // that much is kept
			}
			after = e.Seq
		}
	}
	return out, after, nil
}

// Return hands a task back to the queue at once.
func (s *Tasks) Return(ctx context.Context, p Post, token string) error {
	uid, ok := taskOf(token)
	if !ok {
		return holds(Task{}, token, time.Time{})
	}
	now := s.Now()
	change, err := s.Store.UpdateTask(ctx, p.target.Org, uid, 0, func(cur Current) (Change, error) {
		if cur.Task.Agent != p.target.ID {
			return Change{}, errs.ErrNotFound
		}
		return decideReturn(cur.Task, token, now, cur.Clock)
	})
	if err != nil {
		return stale(err)
	}
	s.publish(change)
	return nil
}
