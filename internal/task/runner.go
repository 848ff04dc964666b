package task

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-dev/parley/internal/errs"
)

// place is where a new task can be worked on at once: a worker that waits on this
// node, or a free slot of an agent that runs in it. A nil place is none.
type place struct {
	worker string
	length time.Duration
	seat   *seat
	local  *local
}

// place reserves one, if there is any.
func (s *Tasks) place(agent AgentKey) *place {
	if l := s.runners.get(agent); l != nil {
		if l.acquire() {
			return &place{worker: s.worker(), length: localLease, local: l}
		}
		return nil
	}
	if seat := s.desk.take(agent); seat != nil {
		return &place{worker: seat.lease.Worker, length: seat.length, seat: seat}
	}
	return nil
}

func (p *place) leaseLength() time.Duration {
	if p == nil {
		return 0
	}
	return p.length
}

// free gives the place up.
func (p *place) free() {
	switch {
	case p == nil:
	case p.seat != nil:
		p.seat.serve(nil)
	default:
		p.local.release()
	}
}

// start begins the work.
func (p *place) start(t Task) {
	switch {
	case p == nil:
	case p.seat != nil:
		p.seat.serve(&t)
	default:
		p.local.start(assignment(t))
	}
}

// runners are the agents that run in this process.
type runners struct {
	s  *Tasks
	mu sync.RWMutex
	m  map[AgentKey]*local

	ctx context.Context // of Run; ends all work at shutdown
}

// local is one agent that runs in this process.
type local struct {
	s      *Tasks
	target Target
	runner Runner
	slots  chan struct{}
	jobs   chan Assignment // to a goroutine that has nothing to do
	wake   chan struct{}   // buffered
	behind atomic.Bool     // something may wait in the queue
	work   sync.WaitGroup
}

const (
	// localLease bounds how long the work of a node that was lost waits.
	localLease    = 10 * time.Second
	localCapacity = 256
	// localPrefix marks the workers that are servers themselves.
	localPrefix = "server:"
)

// worker is the name under which agents of this process hold leases.
func (s *Tasks) worker() string { return localPrefix + s.Node }

// takeOver returns to the queue what a former server held when it ended. It is for
// the one server of a store: where there are others, the leases may be theirs.
func (s *Tasks) takeOver(ctx context.Context) error {
	for {
		now := s.Now()
		changes, err := s.Store.LeasesOf(ctx, localPrefix, maxExpired, func(cur Current) (Change, error) {
			if cur.Task.Lease.Worker == s.worker() {
				return Change{Task: cur.Task}, nil // this server's own: requests may have come already
			}
			return decideReturn(cur.Task, cur.Task.Lease.Token, now, time.Time{})
		})
		for _, c := range changes {
			s.publish(c)
		}
		if err != nil || len(changes) < maxExpired {
			return err
		}
	}
}

func newRunners(s *Tasks) *runners {
	return &runners{s: s, m: map[AgentKey]*local{}, ctx: context.Background()}
}

func (r *runners) get(agent AgentKey) *local {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.m[agent]
}

// Host runs an agent inside this process. Call it before Run.
func (s *Tasks) Host(target Target, runner Runner) {
	l := &local{s: s, target: target, runner: runner, slots: make(chan struct{}, localCapacity), jobs: make(chan Assignment), wake: make(chan struct{}, 1)}
	l.behind.Store(true) // what waited while no server ran
	s.runners.mu.Lock()
	defer s.runners.mu.Unlock()
	s.runners.m[target.Key()] = l
}

func (r *runners) all() []*local {
	r.mu.RLock()
	defer r.mu.RUnlock()
	out := make([]*local, 0, len(r.m))
	for _, l := range r.m {
		out = append(out, l)
	}
	return out
}

func (r *runners) backlog(agent AgentKey) {
	if l := r.get(agent); l != nil {
		l.lookAgain()
	}
}

func (r *runners) backlogAll() {
	for _, l := range r.all() {
		l.lookAgain()
	}
}

// run serves the agents of this process until ctx ends, then waits for what they
// are doing.
func (r *runners) run(ctx context.Context) {
	r.mu.Lock()
	r.ctx = ctx
	r.mu.Unlock()
	var wg sync.WaitGroup
	for _, l := range r.all() {
		wg.Go(func() { l.serve(ctx) })
	}
	wg.Wait()
}

func (r *runners) context() context.Context {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.ctx
}

func (l *local) acquire() bool {
	select {
	case l.slots <- struct{}{}:
		return true
	default:
		return false
	}
}

func (l *local) release() {
	<-l.slots
	if l.behind.Load() {
		l.nudge()
	}
}

func (l *local) lookAgain() {
	l.behind.Store(true)
	l.nudge()
}

func (l *local) nudge() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// serve takes what waits in the queue whenever there may be something and a slot
// is free, and keeps the agent present.
func (l *local) serve(ctx context.Context) {
	see := time.NewTicker(seeEvery)
	defer see.Stop()
	w := Worker{Org: l.target.Org, Agent: l.target.ID, Name: l.s.worker(), Capacity: localCapacity}
	for {
		if err := l.s.see(ctx, w); err != nil && ctx.Err() == nil {
			l.s.OnError(err)
		}
		if err := l.catchUp(ctx); err != nil && ctx.Err() == nil {
			l.s.OnError(err)
		}
		select {
		case <-ctx.Done():
			l.work.Wait()
			done, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			defer cancel()
			if err := l.s.Store.ForgetWorker(done, w); err != nil {
				l.s.OnError(err)
			}
			return
		case <-l.wake:
		case <-see.C:
		}
	}
}

// catchUp claims what waits, as long as slots are free.
func (l *local) catchUp(ctx context.Context) error {
	for l.behind.Load() {
		free := 0
		for free < MaxClaim && l.acquire() {
			free++
		}
		if free == 0 {
			return nil // a release nudges
		}
		l.behind.Store(false)
		claimed, err := l.s.claimTasks(ctx, l.target.Org, l.target.ID, l.s.worker(), Batch{free, maxClaimTasks}, localLease)
		for _, a := range claimed {
			l.start(a)
		}
		for range free - len(claimed) {
			<-l.slots
		}
		if err != nil {
			l.behind.Store(true)
			return err
		}
		if len(claimed) == free {
			l.behind.Store(true) // there may be more
		}
	}
	return nil
}

// start works on one task; the slot is held until it is over. Goroutines are kept
// for the next task: a new one would grow its stack anew for every task.
func (l *local) start(a Assignment) {
	l.work.Add(1)
	select {
	case l.jobs <- a:
	default:
		go l.worker(a)
	}
}

func (l *local) worker(a Assignment) {
	for {
		l.one(a)
		select {
		case a = <-l.jobs:
		case <-l.s.runners.context().Done():
			return
		}
	}
}

func (l *local) one(a Assignment) {
	defer l.work.Done()
	defer l.release()
	l.do(a)
}

func (l *local) do(a Assignment) {
	s := l.s
	ctx, cancel := context.WithCancelCause(s.runners.context())
	defer cancel(nil)
	uid, token := a.Task.UID, a.Lease.Token
	s.running.add(uid, token, cancel)
	defer s.running.remove(uid, token)
	report := func(ctx context.Context, r Report) error {
		ctx = context.WithoutCancel(ctx)
		err := s.finish(ctx, a.Task, r)
		if !errors.Is(err, ErrChanged) {
			return err
		}
		p, err := s.report(ctx, l.target.Org, l.target.ID, uid, token, r)
		if err == nil && p.Canceled {
			err = errCanceled
		}
		if err != nil && errs.As(err).Code == CodeStaleLease {
			cancel(err)
		}
		return err
	}
	beat := keepLease(ctx, report)
	defer beat.Stop()
	err := runSafely(ctx, l.runner, a, report)
	switch {
	case context.Cause(ctx) != nil && s.runners.context().Err() == nil:
		return // canceled, or the lease is lost: there is nothing to say
	case s.runners.context().Err() != nil && err != nil:
		// The server stops in the middle: another one shall take it.
		if err := s.Return(context.WithoutCancel(ctx), Post{l.target}, token); err != nil {
			s.OnError(err)
		}
	case err != nil:
		if err := report(ctx, Report{State: Failed, Message: says(err.Error())}); err != nil && !errors.Is(err, errCanceled) {
			s.OnError(err)
		}
	}
}

// finish writes a report that ends the lease without reading the row again: most
// work is done in one go, and then the row is still the one that was assigned.
// ErrChanged: it is not, or the report is of another sort.
func (s *Tasks) finish(ctx context.Context, known Task, r Report) error {
	if r.State == "" || r.State == Working {
		return ErrChanged
	}
	now := s.Now()
	// The store tests whether the lease is live; it may have been extended since.
	change, err := decideReport(known, known.Lease.Token, r, s.Limits, now, time.Time{})
	if err != nil {
		return err
	}
	if err := s.Store.FinishTask(ctx, known, change); err != nil {
		return err
	}
	s.publish(change)
	return nil
}

var errCanceled = errors.New("the task was canceled")

// keepLease extends the lease of work that takes long. A short piece of work
// never gets to it.
func keepLease(ctx context.Context, report func(context.Context, Report) error) *time.Timer {
	var t *time.Timer
	t = time.AfterFunc(time.Hour, func() {
		if ctx.Err() == nil && report(ctx, Report{Extend: localLease}) == nil {
			t.Reset(localLease / 3)
		}
	})
	t.Reset(localLease / 3) // only now, when t is set
	return t
}

// runSafely turns a panic of an agent into a failed task.
func runSafely(ctx context.Context, r Runner, a Assignment, report func(context.Context, Report) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the agent panicked: %v", p)
		}
	}()
	return r.Run(ctx, a, report)
}

// running knows what the agents of this process work on, and under which lease, to
// stop them.
type running struct {
	mu sync.Mutex
	m  map[string]job // by uid
}

type job struct {
	lease  string
	cancel context.CancelCauseFunc
}

func newRunning() *running { return &running{m: map[string]job{}} }

func (r *running) add(uid, lease string, cancel context.CancelCauseFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.m[uid] = job{lease, cancel}
}

// remove forgets the work, unless a later lease has taken its place.
func (r *running) remove(uid, lease string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.m[uid].lease == lease {
		delete(r.m, uid)
	}
}

// of returns the lease under which a task is worked on here; empty: it is not.
func (r *running) of(uid string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.m[uid].lease
}

// stop ends the work under a lease that is over.
func (r *running) stop(uid, lease string) {
	r.mu.Lock()
	j := r.m[uid]
	r.mu.Unlock()
	if j.cancel != nil && j.lease == lease {
		j.cancel(errCanceled)
	}
}

// checkRunning stops work on a task whose lease another node has ended.
func (s *Tasks) checkRunning(ctx context.Context, org, uid string) {
	lease := s.running.of(uid)
	if lease == "" {
		return
	}
	t, err := s.Store.TaskRow(ctx, org, uid)
	if err == nil && (t.Lease.Token != lease || !t.Lease.Live()) {
		s.running.stop(uid, lease)
	}
}
