package dispatch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/task"
	"github.com/parley-dev/parley/internal/trace"
)

// Runner is an agent that runs inside this process. It gets the same assignments as a worker
// and reports in the same way.
type Runner interface {
	// Run works on one task. ctx ends when the task is canceled, the lease is lost or the
	// server stops. An error fails the task.
	Run(ctx context.Context, a Assignment, report func(context.Context, task.Report) error) error
}

// hosts are the agents that run in this process.
type hosts struct {
	mu sync.RWMutex
	m  map[task.AgentKey]*host

	ctx context.Context // of run; its end stops all work
}

// host is one agent that runs in this process.
type host struct {
	s      *Workers
	target Target
	name   string // worker name in its leases
	runner Runner
	slots  chan struct{}
	jobs   chan Assignment // to idle goroutines
	wake   chan struct{}   // buffered
	behind atomic.Bool     // tasks may wait in the queue
	work   sync.WaitGroup
}

const (
	// hostLease is short, because the tasks of a lost node wait until it expires.
	hostLease    = 10 * time.Second
	hostCapacity = 256
	// hostPrefix begins the worker names of agents that run in a server.
	hostPrefix = "server:"
)

// hostName returns the worker name of agents that run in this process.
func (b *board) hostName() string { return hostPrefix + b.node }

func newHosts() *hosts { return &hosts{m: map[task.AgentKey]*host{}, ctx: context.Background()} }

func (h *hosts) get(agent task.AgentKey) *host {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.m[agent]
}

// take reserves a slot of an agent that runs in this process. slot is nil if none is free, or
// if the agent does not run here; hosted distinguishes the two.
func (h *hosts) take(agent task.AgentKey) (slot *host, hosted bool) {
	one := h.get(agent)
	if one == nil || !one.acquire() {
		return nil, one != nil
	}
	return one, true
}

// Host runs an agent inside this process. Call it before Run.
func (s *Workers) Host(target Target, runner Runner) {
	h := &host{
		s: s, target: target, name: s.board.hostName(), runner: runner,
		slots: make(chan struct{}, hostCapacity), jobs: make(chan Assignment), wake: make(chan struct{}, 1),
	}
	h.behind.Store(true) // tasks may have arrived while no server ran
	s.board.hosts.mu.Lock()
	defer s.board.hosts.mu.Unlock()
	s.board.hosts.m[target.Key()] = h
}

func (h *hosts) all() []*host {
	h.mu.RLock()
	defer h.mu.RUnlock()
	out := make([]*host, 0, len(h.m))
	for _, one := range h.m {
		out = append(out, one)
	}
	return out
}

func (h *hosts) backlog(agent task.AgentKey) {
	if one := h.get(agent); one != nil {
		one.lookAgain()
	}
}

func (h *hosts) backlogAll() {
	for _, one := range h.all() {
		one.lookAgain()
	}
}

// run runs the agents of this process until ctx ends, then waits for their work.
func (h *hosts) run(ctx context.Context) {
	h.mu.Lock()
	h.ctx = ctx
	h.mu.Unlock()
	var wg sync.WaitGroup
	for _, one := range h.all() {
		wg.Go(func() { one.serve(ctx) })
	}
	wg.Wait()
}

func (h *hosts) context() context.Context {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.ctx
}

func (h *host) acquire() bool {
	select {
	case h.slots <- struct{}{}:
		return true
	default:
		return false
	}
}

func (h *host) release() {
	<-h.slots
	if h.behind.Load() {
		h.nudge()
	}
}

func (h *host) lookAgain() {
	h.behind.Store(true)
	h.nudge()
}

func (h *host) nudge() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// serve claims tasks from the queue while slots are free, and records that the agent is
// present.
func (h *host) serve(ctx context.Context) {
	see := time.NewTicker(seeEvery)
	defer see.Stop()
	w := Worker{Org: h.target.Org, Agent: h.target.ID, Name: h.name, Capacity: hostCapacity}
	for {
		if err := h.s.see(ctx, w); err != nil && ctx.Err() == nil {
			h.s.board.onError(err)
		}
		if err := h.catchUp(ctx); err != nil && ctx.Err() == nil {
			h.s.board.onError(err)
		}
		select {
		case <-ctx.Done():
			h.work.Wait()
			done, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			defer cancel()
			if err := h.s.store.Forget(done, w); err != nil {
				h.s.board.onError(err)
			}
			return
		case <-h.wake:
		case <-see.C:
		}
	}
}

// catchUp claims waiting tasks while slots are free.
func (h *host) catchUp(ctx context.Context) error {
	for h.behind.Load() {
		free := 0
		for free < MaxClaim && h.acquire() {
			free++
		}
		if free == 0 {
			return nil // release nudges
		}
		h.behind.Store(false)
		claimed, err := h.s.claimTasks(ctx, h.target.Org, h.target.ID, h.name, Batch{free, maxClaimTasks}, hostLease)
		for _, a := range claimed {
			h.start(a)
		}
		for range free - len(claimed) {
			<-h.slots
		}
		if err != nil {
			h.behind.Store(true)
			return err
		}
		if len(claimed) == free {
			h.behind.Store(true) // there may be more
		}
	}
	return nil
}

// start works on one task, which holds its slot until it ends. Goroutines are reused: a new
// one would have to grow its stack for every task.
func (h *host) start(a Assignment) {
	h.work.Add(1)
	select {
	case h.jobs <- a:
	default:
		go h.worker(a)
	}
}

func (h *host) worker(a Assignment) {
	for {
		h.one(a)
		select {
		case a = <-h.jobs:
		case <-h.s.board.hosts.context().Done():
			return
		}
	}
}

func (h *host) one(a Assignment) {
	defer h.work.Done()
	defer h.release()
	h.do(a)
}

func (h *host) do(a Assignment) {
	s := h.s
	ctx, cancel := context.WithCancelCause(s.board.hosts.context())
	defer cancel(nil)
	ctx, span := s.board.startRun(ctx, &a)
	defer span.End()
	uid, token := a.Task.UID, a.Lease.Token
	s.board.running.add(uid, token, cancel)
	defer s.board.running.remove(uid, token)
	report := func(ctx context.Context, r task.Report) error {
		ctx = context.WithoutCancel(ctx)
		err := s.finish(ctx, a.Task, r)
		if !errors.Is(err, ErrChanged) {
			return err
		}
		p, err := s.report(ctx, h.target.Org, h.target.ID, uid, token, r)
		if err == nil && p.Canceled {
			err = errCanceled
		}
		if err != nil && errs.As(err).Code == task.CodeStaleLease {
			cancel(err)
		}
		return err
	}
	beat := keepLease(ctx, report)
	defer beat.Stop()
	err := runSafely(ctx, h.runner, a, report)
	switch {
	case context.Cause(ctx) != nil && s.board.hosts.context().Err() == nil:
		return // canceled, or the lease is lost: nothing to report
	case s.board.hosts.context().Err() != nil && err != nil:
		// The server stops during the work: another node takes the task.
		if err := s.giveBack(context.WithoutCancel(ctx), h.target.Org, h.target.ID, token); err != nil {
			s.board.onError(err)
		}
	case err != nil:
		failed := task.Report{State: task.Failed, Message: task.Says(err.Error())}
		if err := report(ctx, failed); err != nil && !errors.Is(err, errCanceled) {
			s.board.onError(err)
		}
	}
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

var errCanceled = errors.New("the task was canceled")

// keepLease extends the lease of long work until the timer is stopped.
func keepLease(ctx context.Context, report func(context.Context, task.Report) error) *time.Timer {
	var t *time.Timer
	t = time.AfterFunc(time.Hour, func() {
		if ctx.Err() == nil && report(ctx, task.Report{Extend: hostLease}) == nil {
			t.Reset(hostLease / 3)
		}
	})
	t.Reset(hostLease / 3) // after t is assigned, which the function uses
	return t
}

// runSafely turns a panic of an agent into a failed task.
func runSafely(
	ctx context.Context, r Runner, a Assignment, report func(context.Context, task.Report) error,
) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the agent panicked: %v", p)
		}
	}()
	return r.Run(ctx, a, report)
}
