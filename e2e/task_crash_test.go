package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

// TestTaskCrash kills the server at random moments while tasks are sent, worked on, continued and
// canceled, and starts it again on the same data. Every acknowledged task must then end exactly
// once.
func TestTaskCrash(t *testing.T) {
	t.Parallel()
	rounds := fromEnv(t, "PARLEY_CRASH_ROUNDS", 3)
	eachEngine(t, func(t *testing.T, e engine) {
		t.Parallel()
		const senders, workers = 12, 8
		seed := uint64(time.Now().UnixNano())
		t.Logf("seed %d", seed)
		rng := rand.New(rand.NewPCG(seed, 0))
		s := serve(t, e, calm...)
		f := newTaskFleet(t, s, senders)
		stop := f.hire(t, workers, rng)
		for range rounds {
			f.crashAfter(t, s, 300+rng.Int64N(1500), rng)
			e.settle(t)
			s = serve(t, e, calm...)
			f.serveOn(s.base)
			f.stillThere(t)
			if t.Failed() {
				return
			}
		}
		f.finish(t)
		stop()
		f.tryAllStale(t)
		f.checkStreams(t, s.base)
		s.Kill()
		e.settle(t)
		f.checkLog(t, e)
		t.Logf("%s: %d rounds, %d tasks acknowledged: %v; "+
			"workers completed %d, asked %d, dropped %d, handed back %d; %d stale reports refused", e.name, rounds,
			len(f.acknowledged()), f.ends(), f.done.Load(), f.asked.Load(), f.dropped.Load(), f.returned.Load(),
			f.refused.Load())
		if f.done.Load() == 0 || f.asked.Load() == 0 || f.dropped.Load() == 0 || f.refused.Load() == 0 ||
			f.returned.Load() == 0 {
			t.Error("got a kind of outcome that never happened, want each at least once")
		}
	})
}

// hire starts workers that run until the returned function is called.
func (f *taskFleet) hire(t *testing.T, workers int, rng *rand.Rand) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for i := range workers {
		own := rand.New(rand.NewPCG(rng.Uint64(), 0))
		wg.Go(func() { f.workOn(ctx, t, fmt.Sprintf("hand%d", i), own) })
	}
	stop = func() { cancel(); wg.Wait() }
	t.Cleanup(stop)
	return stop
}

// crashAfter runs the senders and kills the server after the given number of responses.
func (f *taskFleet) crashAfter(t *testing.T, s *server, answers int64, rng *rand.Rand) {
	t.Helper()
	f.sendAll(t, rng, func() {
		f.awaitAcks(t, answers)
		f.serveOn()
		s.Kill()
	})
}

// sendAll runs every sender until it loses its server or meanwhile returns.
func (f *taskFleet) sendAll(t *testing.T, rng *rand.Rand, meanwhile func()) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	for sender := range f.peers {
		own := rand.New(rand.NewPCG(rng.Uint64(), 0))
		wg.Go(func() {
			err := f.sendOn(ctx, sender, own)
			if u := (unexpected{}); errors.As(err, &u) {
				t.Errorf("sender %d: %v", sender, u)
			}
		})
	}
	meanwhile()
	cancel()
	wg.Wait()
	taskClient.CloseIdleConnections()
}

// each runs fn for every acknowledged task, several at once, as its sender on a live server.
func (f *taskFleet) each(t *testing.T, fn func(p peer, s *sentTask) error) {
	t.Helper()
	work := make(chan *sentTask)
	var wg sync.WaitGroup
	for i := range 8 {
		rng := rand.New(rand.NewPCG(uint64(i), 0))
		wg.Go(func() {
			for s := range work {
				if err := fn(peer{base: f.base(rng), key: f.peers[s.sender]}, s); err != nil {
					t.Errorf("task %s for %s: %v", s.id, s.agent, err)
				}
			}
		})
	}
	for _, s := range f.acknowledged() {
		work <- s
	}
	close(work)
	wg.Wait()
}

// stillThere checks that nothing acknowledged is lost, and that no final state changed.
func (f *taskFleet) stillThere(t *testing.T) {
	t.Helper()
	f.each(t, func(p peer, s *sentTask) error {
		got, err := p.get(t.Context(), s.agent, s.id)
		if err != nil {
			return err
		}
		return s.see(got.Status.State)
	})
}

// see compares a state with the known one.
func (s *sentTask) see(state string) error {
	if terminal(s.state) && state != s.state {
		return fmt.Errorf("was %s and is %s", s.state, state)
	}
	if s.canceled && state != "canceled" {
		return fmt.Errorf("was canceled and is %s", state)
	}
	s.state = state
	return nil
}

// finish replies to agents until every acknowledged task has ended. The limit has room for the
// leases of an agent inside a killed server, 30 s each.
func (f *taskFleet) finish(t *testing.T) {
	t.Helper()
	eventually(t, 3*time.Minute, "the end of every acknowledged task", func() bool {
		open := 0
		var mu sync.Mutex
		f.each(t, func(p peer, s *sentTask) error {
			if terminal(s.state) {
				return nil
			}
			got, err := p.get(t.Context(), s.agent, s.id)
			if err != nil {
				return err
			}
			if err := s.see(got.Status.State); err != nil || terminal(s.state) {
				return err
			}
			mu.Lock()
			open++
			mu.Unlock()
			if s.state == "input-required" {
				return f.answer(t.Context(), p, s)
			}
			return nil
		})
		return open == 0 || t.Failed()
	})
	if t.Failed() {
		t.FailNow() // the stream of a task that has not ended would not end either
	}
}

// ends counts the states of the acknowledged tasks.
func (f *taskFleet) ends() map[string]int {
	out := map[string]int{}
	for _, s := range f.acknowledged() {
		out[s.state]++
	}
	return out
}
