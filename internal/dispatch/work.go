package dispatch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/task"
	"github.com/parley-dev/parley/internal/trace"
)

// Errors by which a Runner ends its work on a task without failing it.
var (
	// ErrHandBack puts the task back into the queue. It costs no attempt.
	ErrHandBack = errors.New("the task goes back to the queue")
	// ErrLost counts as a lost worker: the task goes back to the queue, or fails after its last
	// attempt.
	ErrLost = errors.New("the work on the task is lost")

	errCanceled = errors.New("the task was canceled")
)

// HandBackAfter is an ErrHandBack that keeps the task out of the queue for a while, so that other
// tasks go first.
func HandBackAfter(wait time.Duration, why string) error {
	return &handBackLater{wait, why}
}

type handBackLater struct {
	wait time.Duration
	why  string
}

func (e *handBackLater) Error() string { return ErrHandBack.Error() + ": " + e.why }
func (e *handBackLater) Unwrap() error { return ErrHandBack }

// after returns how long the task stays out of the queue.
func (e *handBackLater) after() time.Duration {
	if e == nil {
		return 0
	}
	return e.wait
}

// LostAfter is an ErrLost that tells the sender why, in a sentence without its period. The next
// attempt starts after wait at the earliest.
func LostAfter(wait time.Duration, why string) error { return &lostError{wait, why} }

type lostError struct {
	wait time.Duration
	why  string
}

func (e *lostError) Error() string { return e.why }
func (e *lostError) Unwrap() error { return ErrLost }

// Work is the lease of a Runner on one task. Its methods are safe for concurrent use.
type Work struct {
	s      *Workers
	agent  Target
	known  task.Task // as of the claim
	cancel context.CancelCauseFunc
	news   chan struct{} // buffered

	mu      sync.Mutex
	written bool           // the row may have changed since the claim
	turns   []task.Message // received by a heartbeat
}

// Report writes a report. Progress has the messages of the sender since the claim or the last
// report. An error means that nothing was written. If the lease is over, the context of Run ends,
// too.
func (w *Work) Report(ctx context.Context, r task.Report) (Progress, error) {
	ctx = context.WithoutCancel(ctx)
	p, err := w.write(ctx, r)
	switch {
	case err != nil && errs.As(err).Code == task.CodeStaleLease:
		w.cancel(err)
	case err == nil && p.Canceled:
		err = errCanceled
		w.cancel(err)
	}
	if p.More {
		w.tell()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		p.Turns, w.turns = append(w.turns, p.Turns...), nil
	}
	return p, err
}

// write prefers Finish, which needs no look at the row, as long as nothing else was written.
func (w *Work) write(ctx context.Context, r task.Report) (Progress, error) {
	w.mu.Lock()
	first := !w.written
	w.written = true
	w.mu.Unlock()
	if first {
		err := w.s.finish(ctx, w.known, r)
		if !errors.Is(err, ErrChanged) {
			return Progress{State: r.State}, err
		}
	}
	return w.s.report(ctx, w.agent.Org, w.agent.ID, w.known.UID, w.known.Lease.Token, r)
}

// News receives a value after the sender has sent a message. Report returns it.
func (w *Work) News() <-chan struct{} { return w.news }

// Load returns the task as it is stored, with its messages and artifacts.
func (w *Work) Load(ctx context.Context) (task.Task, error) {
	return w.s.board.load(ctx, w.known.Org, w.known.UID, task.All)
}

func (w *Work) tell() {
	select {
	case w.news <- struct{}{}:
	default:
	}
}

// extend extends the lease. Messages of the sender that the response has are kept for Report.
func (w *Work) extend(ctx context.Context, by time.Duration) error {
	p, err := w.Report(ctx, task.Report{Extend: by})
	if err == nil && len(p.Turns) > 0 {
		w.mu.Lock()
		w.turns = append(p.Turns, w.turns...)
		w.mu.Unlock()
		w.tell()
	}
	return err
}

// keep extends the lease of long work until the timer is stopped.
func (w *Work) keep(ctx context.Context, length time.Duration) *time.Timer {
	var t *time.Timer
	t = time.AfterFunc(time.Hour, func() {
		if ctx.Err() == nil && w.extend(ctx, length) == nil {
			t.Reset(length / 3)
		}
	})
	t.Reset(length / 3) // after t is assigned, which the function uses
	return t
}

// do runs the agent on one task.
func (h *host) do(a Assignment) {
	s := h.s
	ctx, cancel := context.WithCancelCause(h.ctx)
	defer cancel(nil)
	ctx, span := s.board.startRun(ctx, &a)
	defer span.End()
	w := &Work{s: s, agent: h.target, known: a.Task, cancel: cancel, news: make(chan struct{}, 1)}
	uid, token := a.Task.UID, a.Lease.Token
	s.board.running.add(uid, token, w)
	defer s.board.running.remove(uid, token)
	beat := w.keep(ctx, h.o.Lease)
	defer beat.Stop()
	err := runSafely(ctx, h.runner, a, w)
	stopped, over := h.ctx.Err() != nil, context.Cause(ctx) != nil
	ctx = context.WithoutCancel(ctx)
	switch {
	case err == nil, over && !stopped:
		return // done; or canceled, or the lease is lost: nothing to report
	case stopped:
		err = s.giveBack(ctx, h.target.Org, h.target.ID, token, 0)
	case errors.Is(err, ErrHandBack):
		later, _ := errors.AsType[*handBackLater](err)
		err = s.giveBack(ctx, h.target.Org, h.target.ID, token, later.after())
	case errors.Is(err, ErrLost):
		err = s.lose(ctx, h.target, token, err)
	default:
		_, err = w.Report(ctx, task.Report{State: task.Failed, Message: task.Says(err.Error())})
	}
	if err != nil && !errors.Is(err, errCanceled) && errs.As(err).Code != task.CodeStaleLease {
		s.board.onError(err)
	}
}

// lose ends a lease as if its worker were lost.
func (s *Workers) lose(ctx context.Context, agent Target, token string, lost error) error {
	uid, ok := taskOf(token)
	if !ok {
		return task.ErrStaleLease
	}
	why, ok := errors.AsType[*lostError](lost)
	if !ok {
		why = &lostError{why: "The worker was lost"}
	}
	now := s.board.now()
	change, err := s.board.write.Update(ctx, agent.Org, uid, 0, func(cur task.Current) (task.Change, error) {
		return task.DecideLost(cur.Task, token, why.why, why.wait, now, cur.Clock)
	})
	if err == nil {
		s.board.publish(change)
	}
	return stale(err)
}

// startRun starts the span of an agent's work in this process.
func (b *board) startRun(ctx context.Context, a *Assignment) (context.Context, trace.Span) {
	if b.tracer == nil {
		return ctx, trace.Span{}
	}
	return b.tracer.StartIn(ctx, trace.FromString(a.Task.Trace), trace.Internal, "task.run",
		trace.String("parley.org", a.Task.Org), trace.String("parley.agent", a.Task.Agent),
		trace.String("parley.task", a.Task.UID), trace.Int("parley.attempt", a.Number))
}

// finish writes a report that ends the lease without reading the row again: usually the row
// has not changed since the claim. It returns ErrChanged if the row has changed, or if the
// report does not end the lease.
func (s *Workers) finish(ctx context.Context, known task.Task, r task.Report) error {
	if r.State == "" || r.State == task.Working {
		return ErrChanged
	}
	now := s.board.now()
	// Finish checks whether the lease is live; it may have been extended.
	change, err := task.DecideReport(known, known.Lease.Token, r, s.board.limits, now, time.Time{})
	if err != nil {
		return err
	}
	if err := s.board.write.Finish(ctx, known, change); err != nil {
		return err
	}
	s.board.publish(change)
	return nil
}

// runSafely turns a panic of an agent into a failed task.
func runSafely(ctx context.Context, r Runner, a Assignment, w *Work) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the agent panicked: %v", p)
		}
	}()
	return r.Run(ctx, a, w)
}
