package dispatch

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-dev/parley/internal/task"
)

// Runner is an agent that runs inside this process. It gets the same assignments as a worker
// and reports in the same way.
type Runner interface {
	// Run works on one task. ctx ends when the task is canceled, the lease is lost, the agent
	// is no longer hosted or the server stops. An error fails the task, except for ErrHandBack
	// and ErrLost.
	Run(ctx context.Context, a Assignment, w *Work) error
}

// Hosting is how an agent runs inside this process. The zero value has the defaults.
type Hosting struct {
	// Lease is the length of leases; 0 means hostLease. The tasks of a lost node wait until
	// it expires.
	Lease time.Duration
	// Shared limits the tasks of several agents together; may be nil.
	Shared *SharedSlots
	// Ended is called on this node when a task of the agent has ended for any reason, before the
	// caller who ended it has a response. It must not block; may be nil.
	Ended func(task.Ref)
}

// hosts are the agents that run in this process.
type hosts struct {
	mu sync.RWMutex
	m  map[task.AgentKey]*host

	ctx     context.Context // of run; its end stops all work; nil before run
	serving sync.WaitGroup
}

// host is one agent that runs in this process.
type host struct {
	s      *Workers
	target Target
	name   string // worker name in its leases
	runner Runner
	o      Hosting
	used   atomic.Int32    // slots
	limit  atomic.Int32    // of slots; 0: the agent does not take tasks and is offline
	jobs   chan Assignment // to idle goroutines
	wake   chan struct{}   // buffered
	behind atomic.Bool     // tasks may wait in the queue
	work   sync.WaitGroup

	ctx  context.Context // its end stops the work; not the context of a request
	stop context.CancelFunc
}

const (
	// hostLease is short, because the tasks of a lost node wait until it expires.
	hostLease = 10 * time.Second
	// HostCapacity is how many tasks one agent may work on at once in this process.
	HostCapacity = 256
)

// hostName returns the worker name of agents that run in this process.
func (b *board) hostName() string { return task.HostPrefix + b.node }

func newHosts() *hosts { return &hosts{m: map[task.AgentKey]*host{}} }

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

// Host runs an agent inside this process, from the start of Run until Unhost. It replaces the
// runner that the agent had before.
func (s *Workers) Host(target Target, runner Runner, o Hosting) {
	if o.Lease == 0 {
		o.Lease = hostLease
	}
	ctx, stop := context.WithCancel(context.Background())
	one := &host{
		s: s, target: target, name: s.board.hostName(), runner: runner, o: o,
		jobs: make(chan Assignment), wake: make(chan struct{}, 1), ctx: ctx, stop: stop,
	}
	one.limit.Store(HostCapacity)
	one.behind.Store(true) // tasks may have arrived while no server ran
	h := s.board.hosts
	h.mu.Lock()
	defer h.mu.Unlock()
	if old := h.m[target.Key()]; old != nil {
		old.stop()
	}
	h.m[target.Key()] = one
	if h.ctx != nil && h.ctx.Err() == nil {
		h.serve(one)
	}
}

// Unhost stops running an agent inside this process. Its tasks go back to the queue.
func (s *Workers) Unhost(agent task.AgentKey) {
	h := s.board.hosts
	h.mu.Lock()
	defer h.mu.Unlock()
	if one := h.m[agent]; one != nil {
		one.stop()
		delete(h.m, agent)
	}
}

// Limit sets how many tasks an agent that runs in this process works on at once, up to
// HostCapacity. With 0 it takes no task and is offline. Tasks that it works on are not stopped.
func (s *Workers) Limit(agent task.AgentKey, most int) {
	if one := s.board.hosts.get(agent); one != nil {
		one.limit.Store(int32(min(most, HostCapacity)))
		one.lookAgain()
	}
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

// ended tells the agent of a task, if it runs here, that the task has ended.
func (h *hosts) ended(t *task.Task) {
	if one := h.get(task.AgentKey{Org: t.Org, ID: t.Agent}); one != nil && one.o.Ended != nil {
		one.o.Ended(t.Ref())
	}
}

// run runs the agents of this process until ctx ends, then waits for their work.
func (h *hosts) run(ctx context.Context) {
	h.mu.Lock()
	h.ctx = ctx
	for _, one := range h.m {
		h.serve(one)
	}
	h.mu.Unlock()
	<-ctx.Done()
	h.mu.Lock() // no agent is added from now on
	for _, one := range h.m {
		one.stop()
	}
	h.mu.Unlock()
	h.serving.Wait()
}

func (h *hosts) serve(one *host) { h.serving.Go(one.serve) }

func (h *host) acquire() bool {
	for {
		used := h.used.Load()
		if used >= h.limit.Load() || h.ctx.Err() != nil {
			return false
		}
		if h.used.CompareAndSwap(used, used+1) {
			break
		}
	}
	if !h.o.Shared.take(h.target.Org) {
		h.used.Add(-1)
		return false
	}
	return true
}

func (h *host) release() {
	h.free()
	if h.behind.Load() {
		h.nudge()
	}
}

func (h *host) free() {
	h.o.Shared.give(h.target.Org)
	h.used.Add(-1)
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
func (h *host) serve() {
	see := time.NewTicker(seeEvery)
	defer see.Stop()
	w := Worker{Org: h.target.Org, Agent: h.target.ID, Name: h.name, Capacity: HostCapacity}
	defer h.forget(w)
	defer h.work.Wait()
	present := false
	for {
		if h.limit.Load() > 0 {
			present = true
			h.try(h.s.see(h.ctx, w))
		} else if present {
			present = false
			h.forget(w)
		}
		h.try(h.catchUp(h.ctx))
		select {
		case <-h.ctx.Done():
			return
		case <-h.wake:
		case <-see.C:
		}
	}
}

func (h *host) try(err error) {
	if err != nil && h.ctx.Err() == nil {
		h.s.board.onError(err)
	}
}

// forget records that the agent does not run here any more, unless another runner has replaced
// this one.
func (h *host) forget(w Worker) {
	if one := h.s.board.hosts.get(h.target.Key()); one != nil && one != h {
		return
	}
	done, cancel := context.WithTimeout(context.WithoutCancel(h.ctx), 5*time.Second)
	defer cancel()
	h.s.seen.forget(w)
	if err := h.s.store.Forget(done, w); err != nil {
		h.s.board.onError(err)
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
			return nil // release and Limit nudge
		}
		h.behind.Store(false)
		claimed, err := h.s.claimTasks(ctx, h.target.Org, h.target.ID, h.name, Batch{free, maxClaimTasks}, h.o.Lease)
		for _, a := range claimed {
			h.start(a)
		}
		for range free - len(claimed) {
			h.free()
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
		case <-h.ctx.Done():
			return
		}
	}
}

func (h *host) one(a Assignment) {
	defer h.work.Done()
	defer h.release()
	h.do(a)
}

// SharedSlots limit how many tasks several agents that run in this process work on at once: all
// together, and those of each org. A nil SharedSlots has no limit.
type SharedSlots struct {
	all, org int

	mu   sync.Mutex
	used map[string]int // by org
	sum  int
}

// NewSharedSlots returns SharedSlots with the limits.
func NewSharedSlots(all, org int) *SharedSlots {
	return &SharedSlots{all: all, org: org, used: map[string]int{}}
}

func (s *SharedSlots) take(org string) bool {
	if s == nil {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sum >= s.all || s.used[org] >= s.org {
		return false
	}
	s.sum++
	s.used[org]++
	return true
}

func (s *SharedSlots) give(org string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sum--
	if s.used[org]--; s.used[org] == 0 {
		delete(s.used, org)
	}
}
