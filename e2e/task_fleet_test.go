package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// taskFleet is senders and workers that go on through crashes of their servers, with a ledger of
// what was acknowledged.
type taskFleet struct {
	*taskOrg
	peers []string // keys of the senders

	mu    sync.Mutex
	bases []string // of the live servers; none while all are down
	tasks []*sentTask
	stale []string // leases that were left to expire
	acks  atomic.Int64
	// Counts of the workers' actions, to detect a run that tested nothing.
	done, asked, dropped, returned, refused atomic.Int64
}

// sentTask is what its sender knows of a task.
type sentTask struct {
	sender   int
	agent    string
	id       string
	acked    bool
	canceled bool // the cancel was acknowledged
	state    string
}

func newTaskFleet(t *testing.T, s *server, senders int) *taskFleet {
	t.Helper()
	return newTaskFleetIn(t, s, "fleet", senders)
}

func newTaskFleetIn(t *testing.T, s *server, org string, senders int) *taskFleet {
	t.Helper()
	f := &taskFleet{taskOrg: newTaskOrg(t, s, org), bases: []string{s.base}}
	for i := range senders {
		id := fmt.Sprintf("sender%d", i)
		s.cli(t, "service", "create", id, "--org", f.org)
		f.peers = append(f.peers, s.newKey(t, f.org, "service:"+id, "svc:a2a:write"))
	}
	return f
}

// serveOn sets the running servers.
func (f *taskFleet) serveOn(bases ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.bases = bases
}

// base picks one of the running servers; empty if there is none.
func (f *taskFleet) base(rng *rand.Rand) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.bases) == 0 {
		return ""
	}
	return f.bases[rng.IntN(len(f.bases))]
}

// note adds a task to the ledger before it is sent: with a lost response it may or may not exist.
func (f *taskFleet) note(sender int, agent string, rng *rand.Rand) *sentTask {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := &sentTask{sender: sender, agent: agent, id: fmt.Sprintf("t%d-%x", len(f.tasks), rng.Uint32())}
	f.tasks = append(f.tasks, s)
	return s
}

func (f *taskFleet) acknowledged() []*sentTask {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []*sentTask
	for _, s := range f.tasks {
		if s.acked {
			out = append(out, s)
		}
	}
	return out
}

// sendOn sends tasks as one sender until ctx ends or a response is missing.
func (f *taskFleet) sendOn(ctx context.Context, sender int, rng *rand.Rand) error {
	for ctx.Err() == nil {
		p := peer{base: f.base(rng), key: f.peers[sender]}
		if p.base == "" {
			return errDown
		}
		if err := f.sendOne(ctx, p, sender, rng); err != nil {
			return err
		}
	}
	return nil
}

var errDown = errors.New("no server is up")

func (f *taskFleet) sendOne(ctx context.Context, p peer, sender int, rng *rand.Rand) error {
	agent, say := f.agent, "do"
	switch n := rng.IntN(100); {
	case n < 50:
		agent = "echo"
	case n < 65:
		say = "ask"
	case n < 75:
		say = "long"
	}
	s := f.note(sender, agent, rng)
	var headers []string
	if rng.IntN(2) == 0 {
		headers = []string{"Prefer: wait=1"}
	}
	t, err := p.send(ctx, agent, s.id, say, headers...)
	if err != nil {
		return err
	}
	f.acks.Add(1)
	s.acked, s.state = true, t.Status.State
	switch n := rng.IntN(100); {
	case say == "long" && n < 80, n < 5:
		return f.cancel(ctx, p, s)
	case t.Status.State == "input-required":
		return f.answer(ctx, p, s)
	case n < 10:
		// A repeated send returns the same task in any state.
		if _, err := p.send(ctx, agent, s.id, say); err != nil && say != "ask" {
			return err
		}
	}
	return nil
}

// cancel cancels a task; one that was over already refuses.
func (f *taskFleet) cancel(ctx context.Context, p peer, s *sentTask) error {
	a, err := p.call(ctx, s.agent, "tasks/cancel", object{"id": s.id})
	switch {
	case err != nil:
		return err
	case a.Error == nil:
		s.canceled = true
	case a.Error.Code != -32002:
		return unexpected{fmt.Sprintf("cancel %s: %+v", s.id, a.Error)}
	}
	f.acks.Add(1)
	return nil
}

// answer sends an agent the input that it asked for.
func (f *taskFleet) answer(ctx context.Context, p peer, s *sentTask) error {
	a, err := p.call(ctx, s.agent, "tasks/send", object{"id": s.id, "message": text("the answer")})
	switch {
	case err != nil:
		return err
	case a.Error != nil && a.Error.Code != -32004: // over, by an earlier send whose response was lost
		return unexpected{fmt.Sprintf("answer %s: %+v", s.id, a.Error)}
	}
	f.acks.Add(1)
	return nil
}

// workOn works for the agent until ctx ends. After a lost connection the worker tries again until
// a server is up.
func (f *taskFleet) workOn(ctx context.Context, t *testing.T, name string, rng *rand.Rand) {
	pause := time.NewTicker(10 * time.Millisecond)
	defer pause.Stop()
	h := f.hand()
	for h.name = name; ctx.Err() == nil; {
		h.base = f.base(rng)
		err := errDown
		if h.base != "" {
			err = f.workOnce(ctx, h, rng)
		}
		if u := (unexpected{}); errors.As(err, &u) && ctx.Err() == nil {
			t.Errorf("worker %s: %v", name, u)
		}
		if err != nil {
			<-pause.C
		}
	}
}

func (f *taskFleet) workOnce(ctx context.Context, h hand, rng *rand.Rand) error {
	if lease := f.takeStale(rng); lease != "" {
		if err := f.tryStale(ctx, h, lease); err != nil {
			return err
		}
	}
	claimed, err := h.claim(ctx, 1+rng.IntN(3), 1, 1)
	if err != nil {
		return err
	}
	for _, w := range claimed {
		if err := f.work(ctx, h, w, rng); err != nil {
			return err
		}
	}
	return nil
}

func (f *taskFleet) work(ctx context.Context, h hand, w work, rng *rand.Rand) error {
	switch n := rng.IntN(100); {
	case n < 4:
		f.drop(w.Lease)
		return nil
	case n < 8:
		f.returned.Add(1)
		_, err := h.giveBack(ctx, w.Lease)
		return err
	case w.text() == "ask" && w.turns() == 1:
		f.asked.Add(1)
		_, _, err := h.report(ctx, w.Lease, object{"status": "input-required", "message": says("which?")})
		return err
	case w.text() == "long":
		return f.workLong(ctx, h, w)
	}
	if rng.IntN(2) == 0 {
		_, status, err := h.report(ctx, w.Lease, object{"status": "working", "artifacts": []object{artifact("part", "half")}})
		if err != nil || status != 200 {
			return err
		}
	}
	_, status, err := h.report(ctx, w.Lease,
		object{"status": "completed", "artifacts": []object{artifact("result", "done")}})
	if status == 200 {
		f.done.Add(1)
	}
	return err
}

// workLong keeps its lease until the sender cancels, or until it has waited long enough.
func (f *taskFleet) workLong(ctx context.Context, h hand, w work) error {
	beat := time.NewTicker(50 * time.Millisecond)
	defer beat.Stop()
	for range 5 {
		p, status, err := h.report(ctx, w.Lease, object{"extend_seconds": 1})
		if err != nil || status != 200 || p.Canceled {
			return err
		}
		<-beat.C
	}
	_, _, err := h.report(ctx, w.Lease, object{"status": "completed"})
	return err
}

// drop abandons a task like a worker that dies; the lease is kept for later.
func (f *taskFleet) drop(lease string) {
	f.dropped.Add(1)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stale = append(f.stale, lease)
}

// takeStale returns a lease that has probably expired: enough others were dropped after it. The
// response shows whether it has.
func (f *taskFleet) takeStale(rng *rand.Rand) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.stale) < 20 || rng.IntN(4) > 0 {
		return ""
	}
	lease := f.stale[0]
	f.stale = f.stale[1:]
	return lease
}

// tryStale reports under an expired lease. If it has not expired yet, the report extends nothing,
// and the lease is dropped again.
func (f *taskFleet) tryStale(ctx context.Context, h hand, lease string) error {
	p, status, err := h.report(ctx, lease, object{})
	if err != nil {
		return err
	}
	if status == 200 && !p.Canceled {
		f.mu.Lock()
		f.stale = append(f.stale, lease)
		f.mu.Unlock()
		return nil
	}
	for _, body := range []object{
		{"status": "completed", "artifacts": []object{artifact(staleName, "too late")}},
		{"artifacts": []object{artifact(staleName, "too late")}, "extend_seconds": 60},
	} {
		p, status, err := h.report(ctx, lease, body)
		if err != nil {
			return err
		}
		if status == 200 && !p.Canceled {
			return unexpected{"a report under the stale lease " + lease + " was taken"}
		}
		f.refused.Add(1)
	}
	status, err = h.giveBack(ctx, lease)
	if err == nil && status != 409 {
		err = unexpected{fmt.Sprintf("hand back the stale lease %s: %d", lease, status)}
	}
	return err
}

// tryAllStale tries every dropped lease that was not tried yet. Acknowledged tasks are over, so
// their leases are refused. A task whose response was lost may be with a worker that dropped it:
// its lease must expire.
func (f *taskFleet) tryAllStale(t *testing.T) {
	t.Helper()
	h := f.hand()
	h.base = f.bases[0]
	for _, lease := range f.stale {
		eventually(t, 30*time.Second, "the lease "+lease+" is over", func() bool {
			p, status, err := h.report(t.Context(), lease, object{})
			if err != nil {
				t.Fatal(err)
			}
			if status == 200 && terminal(p.State) && !p.Canceled {
				t.Fatalf("lease %s of a task that is %s is valid, want it refused", lease, p.State)
			}
			return status != 200 || p.Canceled
		})
		if err := f.tryStale(t.Context(), h, lease); err != nil {
			t.Error(err)
		}
	}
}

// staleName is the artifact of reports that must have no effect.
const staleName = "stale"
