package dispatch

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/budget"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/task"
	"github.com/parley-dev/parley/internal/text"
)

// Limits of a claim.
const (
	MaxClaim    = 100
	MaxWait     = 60 * time.Second
	MaxCapacity = 10_000
)

// ClaimRequest is a request for tasks.
type ClaimRequest struct {
	Worker   string
	Max      int
	Wait     time.Duration
	Lease    time.Duration
	Capacity int
	Ack      []string // ids of direct messages that were received
	// Waiting is called whenever Claim begins to wait; may be nil.
	Waiting func()
}

// MaxAck limits how many messages one claim acknowledges.
const MaxAck = 1000

// Validate reports every field that is out of range or malformed.
func (r *ClaimRequest) Validate() error {
	var out []errs.Field
	within := func(name string, n, low, high int64) {
		if n < low || n > high {
			out = append(out, errs.NewField(name, fmt.Sprintf("must be an integer from %d to %d", low, high)))
		}
	}
	within("max", int64(r.Max), 0, MaxClaim)
	within("wait", int64(r.Wait/time.Second), 0, int64(MaxWait/time.Second))
	within("lease", int64(r.Lease/time.Second), int64(task.MinLease/time.Second), int64(task.MaxLease/time.Second))
	within("capacity", int64(r.Capacity), 1, MaxCapacity)
	if problem := (text.Rule{Form: text.Plain, MaxBytes: MaxWorker}).Check(r.Worker); problem != "" {
		out = append(out, errs.NewField("worker", problem))
	}
	if len(r.Ack) > MaxAck {
		out = append(out, errs.NewField("ack", fmt.Sprintf("must have at most %d entries", MaxAck)))
	}
	for i, id := range r.Ack {
		if task.BadID(id) {
			out = append(out, errs.Field{Path: errs.At("ack", i), Message: task.IDRule})
		}
	}
	if len(out) > 0 {
		return errs.InvalidFields(out...)
	}
	return nil
}

// MaxWorker limits the name of a worker, in bytes.
const MaxWorker = 128

// Assignment is a task that a worker has claimed.
type Assignment struct {
	Task   task.Task // with its history
	Lease  task.Lease
	Number int // of the attempt, starting at 1
}

// Claim is the response to a claim.
type Claim struct {
	Assignments []Assignment
	Messages    []DirectMessage
}

// Claim waits for tasks and claims them. The wait ends with ctx. The caller must call Return
// for assignments that do not reach the worker.
func (s *Workers) Claim(ctx context.Context, p Post, r ClaimRequest) (Claim, error) {
	// A claim that has begun is completed even if ctx ends: a client that closed its sending
	// side may still read the response.
	wait := ctx
	ctx = context.WithoutCancel(ctx)
	if err := p.check(); err != nil {
		return Claim{}, err
	}
	queue := p.target.Key()
	worker := Worker{Org: p.target.Org, Agent: p.target.ID, Name: r.Worker, Capacity: r.Capacity}
	if err := s.beginClaim(ctx, worker, r.Ack); err != nil {
		return Claim{}, err
	}
	timer := time.NewTimer(r.Wait)
	defer timer.Stop()
	var alive <-chan time.Time
	if r.Wait > seeWaiting { // else the next claim comes before the worker is considered gone
		ticker := time.NewTicker(seeWaiting)
		defer ticker.Stop()
		alive = ticker.C
	}
	for {
		changed := s.board.queues.wait(queue)
		claim, err := s.claimNow(ctx, p, r)
		if err != nil || len(claim.Assignments)+len(claim.Messages) > 0 || r.Wait <= 0 {
			return claim, err
		}
		if wait.Err() != nil {
			return Claim{}, wait.Err()
		}
		var seat *seat
		var served chan *task.Task // nil for a worker that wants messages only
		if r.Max > 0 {
			seat = s.board.desk.sit(queue, r.Worker, r.Lease)
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
		case <-alive:
			if err := s.see(ctx, worker); err != nil {
				s.board.onError(err) // the next claim tries again
			}
		case <-timer.C:
			over = true
		case <-s.board.stopping.Done():
			over = true
		case <-wait.Done():
			over = true
		}
		if seat != nil && !s.board.desk.leave(seat) {
			if t := <-seat.served; t != nil {
				return s.served(ctx, t)
			}
		}
		if over {
			return Claim{}, wait.Err()
		}
	}
}

// beginClaim acknowledges messages and records that the worker is alive.
func (s *Workers) beginClaim(ctx context.Context, w Worker, ack []string) error {
	if strings.HasPrefix(w.Name, task.HostPrefix) {
		return errs.InvalidFields(errs.NewField("worker", "must not start with "+task.HostPrefix))
	}
	if len(ack) > 0 {
		if err := s.mailbox.Ack(ctx, w.Org, w.Agent, ack); err != nil {
			return err
		}
	}
	return s.see(ctx, w)
}

// served returns the claim for a task that a send handed over.
func (s *Workers) served(ctx context.Context, t *task.Task) (Claim, error) {
	c := Claim{Assignments: []Assignment{assignment(*t)}}
	return c, budget.From(ctx).Take(ctx, t.Size)
}

// claimNow claims what is there, without waiting.
func (s *Workers) claimNow(ctx context.Context, p Post, r ClaimRequest) (Claim, error) {
	org, agent := p.target.Org, p.target.ID
	var out Claim
	var err error
	if out.Messages, err = s.messages(ctx, org, agent); err != nil || r.Max <= 0 {
		return out, err
	}
	out.Assignments, err = s.claimTasks(ctx, org, agent, r.Worker, Batch{r.Max, maxClaimTasks}, r.Lease)
	return out, err
}

// messages returns the agent's direct messages that are not acknowledged.
func (s *Workers) messages(ctx context.Context, org, agent string) ([]DirectMessage, error) {
	list, err := s.mailbox.List(ctx, org, agent, Batch{MaxClaim, maxClaimMessages})
	if err != nil {
		return nil, err
	}
	size := int64(0)
	for i := range list {
		size += list[i].Message.Size()
	}
	return list, budget.From(ctx).Take(ctx, size)
}

// Limits of the response to one claim, in bytes. The rest is left for the next claim.
const (
	maxClaimMessages = 1 << 20
	maxClaimTasks    = 4 << 20 // or a single task
)

func (s *Workers) claimTasks(
	ctx context.Context, org, agent, worker string, b Batch, length time.Duration,
) ([]Assignment, error) {
	changes, err := s.queue.Claim(ctx, org, agent, b, s.decideClaim(worker, length))
	if err != nil {
		return nil, err
	}
	return s.assign(ctx, org, agent, changes)
}

// decideClaim returns the decision of a claim.
func (s *Workers) decideClaim(worker string, length time.Duration) Decision {
	now := s.board.now()
	return func(cur task.Current) (task.Change, error) {
		return task.DecideClaim(cur.Task, s.board.newLease(cur.Task.UID, worker, cur.Clock.Add(length)), now)
	}
}

// assign publishes claimed tasks and returns them with their history. If one cannot be read, all go
// back to the queue, and cost no attempt.
func (s *Workers) assign(ctx context.Context, org, agent string, changes []task.Change) ([]Assignment, error) {
	var out []Assignment
	for _, c := range changes {
		s.board.publish(c)
		t, err := s.whole(ctx, c)
		if err != nil {
			for _, c := range changes {
				_ = s.giveBack(context.WithoutCancel(ctx), org, agent, c.Task.Lease.Token, 0)
			}
			return nil, err
		}
		out = append(out, assignment(t))
	}
	return out, nil
}

// whole returns a claimed task with its history.
func (s *Workers) whole(ctx context.Context, c task.Change) (task.Task, error) {
	if len(c.Task.History) > 0 { // the claim has read it
		return c.Task, budget.From(ctx).Take(ctx, c.Task.Footprint())
	}
	t, err := s.board.load(ctx, c.Task.Org, c.Task.UID, task.Content{History: true})
	if err == nil && t.Seq > c.Task.Seq {
		// The assignment includes messages that were sent meanwhile; do not deliver them again.
		_, err = s.board.write.Update(ctx, t.Org, t.UID, 0, func(cur task.Current) (task.Change, error) {
			return task.DecideSeen(cur.Task, c.Task.Lease.Token, t.Seq)
		})
	}
	t.Lease = c.Task.Lease
	return t, err
}

func assignment(t task.Task) Assignment {
	return Assignment{Task: t, Lease: t.Lease, Number: t.Attempts + 1}
}
