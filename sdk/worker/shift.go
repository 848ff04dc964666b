package worker

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/parley-dev/parley/sdk/client"
)

// shift is one run of a worker.
type shift struct {
	*Worker
	handle   Handler
	work     context.Context // of all handlers
	stop     context.CancelCauseFunc
	slots    chan struct{} // has a value for each running handler
	freed    chan struct{} // a slot may be free
	inbox    *queue[DirectMessage]
	mail     mail
	outbox   outbox
	handlers sync.WaitGroup

	mu       sync.Mutex
	holds    map[*hold]bool
	leaving  map[*hold]bool // those whose result is being sent: their slots are given to new tasks
	asked    int            // tasks that requests in flight ask for
	stopping bool           // no more tasks are taken
}

func newShift(ctx context.Context, w *Worker, handle Handler) *shift {
	s := &shift{
		Worker: w, handle: handle, freed: make(chan struct{}, 1), slots: make(chan struct{}, w.capacity),
		inbox: newQueue[DirectMessage](), holds: map[*hold]bool{}, leaving: map[*hold]bool{},
		outbox: outbox{wake: make(chan struct{}, 1)},
	}
	// Handlers outlive ctx by the grace period.
	s.work, s.stop = context.WithCancelCause(context.WithoutCancel(ctx))
	return s
}

func (s *shift) run(ctx context.Context) error {
	defer s.stop(nil)
	s.handlers.Go(s.readMessages)
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		s.sendResults()
	}()
	s.log.Info("working", "agent", s.agent, "worker", s.name, "capacity", s.capacity, "server", s.api.URL())
	err := s.claimLoop(ctx)
	s.mu.Lock()
	s.stopping = true
	s.mu.Unlock()
	s.inbox.close()
	if err != nil {
		s.log.Error("the server refused this worker", "agent", s.agent, "error", err)
	}
	s.drain()
	s.outbox.close()
	<-sent
	s.confirm()
	s.log.Info("stopped", "agent", s.agent, "worker", s.name)
	return err
}

// drain lets handlers finish, then ends their contexts, then stops waiting.
func (s *shift) drain() {
	done := make(chan struct{})
	go func() {
		s.handlers.Wait()
		close(done)
	}()
	select {
	case <-done:
		return
	case <-time.After(s.grace):
	}
	s.stop(ErrStopping)
	select {
	case <-done:
		return
	case <-time.After(stuckAfter):
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for h := range s.holds {
		s.log.Error("a handler ignores the end of its context; its task goes back to the queue", "task", h.task)
		h.handBack()
	}
}

// confirm acknowledges the last direct messages.
func (s *shift) confirm() {
	if len(s.mail.unacknowledged()) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.work), reportTimeout)
	defer cancel()
	if _, err := s.leases.Claim(ctx, s.request(0, 0), once); err != nil {
		s.log.Warn("could not acknowledge direct messages; they will be delivered again", "error", err)
	}
}

func (s *shift) readMessages() {
	for {
		m, ok := s.inbox.take(s.work)
		switch {
		case !ok:
			return
		case s.onMessage == nil:
			s.log.Warn("dropped a direct message: Config.OnMessage is not set",
				"agent", s.agent, "message", m.ID, "from", m.From)
		default:
			_ = s.protect(func() error { // logs a panic
				s.onMessage(s.work, m)
				return nil
			}, "message", m.ID)
		}
	}
}

var errPanic = errors.New("the agent failed in an unexpected way")

// protect turns a panic into an error and logs it.
func (s *shift) protect(f func() error, what, id string) (err error) {
	defer func() {
		if r := recover(); r != nil {
			s.log.Error("a handler panicked",
				"agent", s.agent, what, id, "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
			err = errPanic
		}
	}()
	return f()
}

// begin starts the handler of a task. If a handler that has reported its result still runs, the
// task waits for its slot.
func (s *shift) begin(a client.ClaimedTask) {
	ctx, end := context.WithCancelCause(client.WithTrace(s.work, a.Trace))
	expire := context.CancelFunc(func() {})
	if !a.Deadline.IsZero() {
		ctx, expire = context.WithDeadlineCause(ctx, s.localTime(&a), ErrOverdue)
	}
	h := &hold{
		Worker: s.Worker, shift: s, task: a.ID, token: a.Lease, end: end,
		expires: time.Now().Add(s.lease), turns: newQueue[Message](), seen: a.Seen,
	}
	s.mu.Lock()
	if s.stopping {
		s.mu.Unlock()
		expire()
		end(nil)
		h.handBack()
		return
	}
	s.holds[h] = true
	s.handlers.Add(1)
	s.mu.Unlock()
	s.log.Debug("claimed", "agent", s.agent, "task", a.ID, "attempt", a.Attempt)
	go func() {
		defer s.handlers.Done()
		defer s.forget(h)
		defer end(nil)
		defer expire()
		// Heartbeats would fill the trace of a long task.
		go h.beat(client.WithTrace(ctx, client.Trace{}))
		t := &Task{
			ID: a.ID, ContextID: a.ContextID, Sender: a.Sender, Attempt: a.Attempt,
			MaxAttempts: a.MaxAttempts, Deadline: a.Deadline,
			Message: a.Message, History: a.History, SenderTaskID: a.SenderTaskID,
			AcceptedOutputModes: a.AcceptedOutputModes, Trace: a.Trace, hold: h, done: ctx.Done(),
		}
		if string(a.Metadata) != "null" {
			t.Metadata = a.Metadata
		}
		select {
		case s.slots <- struct{}{}:
		case <-ctx.Done():
			s.giveUp(ctx, h)
			return
		}
		err := s.protect(func() error { return s.handle(ctx, t) }, "task", a.ID)
		<-s.slots
		s.settle(ctx, t, err)
	}()
}

// localTime returns the deadline of a task by this machine's clock, which need not be that of the
// server. The lease tells the time of the server.
func (s *shift) localTime(a *client.ClaimedTask) time.Time {
	if a.LeaseExpiresAt.IsZero() {
		return a.Deadline
	}
	return time.Now().Add(a.Deadline.Sub(a.LeaseExpiresAt.Add(-s.lease)))
}

// giveUp ends a task whose handler was stopped. A task that is overdue is not handed back: the server
// ends it.
func (s *shift) giveUp(ctx context.Context, h *hold) {
	if errors.Is(context.Cause(ctx), ErrOverdue) {
		s.log.Warn("the deadline of a task has passed", "agent", s.agent, "task", h.task)
		return
	}
	h.handBack()
}

// settle ends a task whose handler returned without ending it. If the result cannot be sent, the task
// fails.
func (s *shift) settle(ctx context.Context, t *Task, err error) {
	h := t.hold
	if h.ended() != nil {
		return
	}
	if ctx.Err() != nil { // the handler's result may be incomplete
		s.giveUp(ctx, h)
		return
	}
	// The report is worth trying while the lease lasts, even if the worker begins to stop.
	last, cancel := context.WithDeadline(context.WithoutCancel(ctx), h.expiry())
	defer cancel()
	if err == nil {
		err = t.Complete(last)
	} else {
		err = t.Fail(last, err.Error())
	}
	if err == nil || errors.Is(err, ErrCanceled) {
		return
	}
	s.log.Error("could not report the result of a task", "agent", s.agent, "task", t.ID, "error", err)
	if h.ended() != nil {
		return
	}
	if err := t.Fail(last, "the result could not be sent: "+err.Error()); err != nil {
		s.log.Error("could not report the failure of a task", "agent", s.agent, "task", t.ID, "error", err)
	}
}

func (s *shift) forget(h *hold) {
	s.mu.Lock()
	delete(s.holds, h)
	delete(s.leaving, h)
	s.mu.Unlock()
	s.signalFree()
}

// signalFree wakes the claims: a slot may be free.
func (s *shift) signalFree() {
	select {
	case s.freed <- struct{}{}:
	default:
	}
}

// free returns how many more tasks can be taken.
func (s *shift) free() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.room()
}

func (s *shift) room() int { return s.capacity - (len(s.holds) - len(s.leaving)) - s.asked }

// reserve takes the free slots for a request that asks for tasks, at most maxClaim.
func (s *shift) reserve() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return 0
	}
	n := max(0, min(s.room(), maxClaim))
	s.asked += n
	return n
}

// release gives the slots of a request back.
func (s *shift) release(n int) {
	s.mu.Lock()
	s.asked -= n
	s.mu.Unlock()
	s.signalFree()
}
