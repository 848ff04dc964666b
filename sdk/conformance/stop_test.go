package conformance

import (
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/task"
	"github.com/parley-dev/parley/sdk/client"
)

// handBack: a worker that stops interrupts its handlers and hands their tasks back at once, so that
// another worker executes them as the same attempt.
func handBack(t *testing.T, s *scene) {
	stops := s.hire(t, terms{concurrency: 2})
	for range 3 {
		s.send(t, "listen")
	}
	stops.await(t, "start", 2)
	began := time.Now()
	stops.stop(t)
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("the worker took %v to stop", took)
	}
	for _, e := range stops.events(t) {
		if e.Event == "interrupted" && e.Reason != "stopping" {
			t.Errorf("a handler was interrupted with the reason %q, want \"stopping\"", e.Reason)
		}
	}
	if n := stops.count(t, "interrupted", ""); n != 2 {
		t.Errorf("%d handlers were interrupted, want 2", n)
	}
	returned := 0
	for _, r := range s.records(t, s.agent) {
		if len(r.attempts) > 0 && r.attempts[0].Ended == task.LeaseReturned {
			returned++
		}
	}
	if returned != 2 {
		t.Errorf("%d tasks were handed back, want 2", returned)
	}
	for _, id := range s.sent {
		s.say(t, id, "go on")
	}
	second := s.hire(t, terms{concurrency: 3})
	for _, id := range s.sent {
		s.completes(t, id, "go on")
	}
	for _, e := range second.events(t) {
		if e.Event == "start" && e.Attempt != 1 {
			t.Errorf("%s is executed as attempt %d, want 1", e.Task, e.Attempt)
		}
	}
}

// grace: a worker that stops lets its handlers finish for a while, and takes no further task.
func grace(t *testing.T, s *scene) {
	stops := s.hire(t, terms{grace: 20 * time.Second})
	finishes := s.send(t, "sleep 1000 finished")
	stops.await(t, "start", 1)
	waits := s.send(t, "echo later")
	stops.stop(t)
	s.hire(t, terms{})
	s.completes(t, finishes, "finished")
	s.executedOnce(t, finishes)
	s.completes(t, waits, "later")
	if n := stops.count(t, "start", ""); n != 1 {
		t.Errorf("the worker that stopped started %d handlers, want 1", n)
	}
}

// questionAcrossWorkers: a question whose report needs three attempts is asked once. The reply is
// processed by another worker.
func questionAcrossWorkers(t *testing.T, s *scene) {
	s.inject(first(results, sever, lose))
	asks := s.hire(t, terms{})
	id := s.send(t, "ask Which one?")
	if got := s.rests(t, id, client.TaskInputRequired).Status.Message.Text(); got != "Which one?" {
		t.Errorf("the question is %q, want %q", got, "Which one?")
	}
	await(t, "the third report", asks.ended, func() bool { return len(s.seen(results)) >= 3 })
	asks.stop(t)
	s.say(t, id, "the blue one")
	s.hire(t, terms{})
	s.completes(t, id, "the blue one")
	s.leases(t, id, task.LeaseDone, task.LeaseDone)
	s.startedTimes(t, id, 2)
}

// questionAgain: a worker that could not report its question in time asks it again in the second
// attempt. The platform's message about the lost worker is not a reply.
func questionAgain(t *testing.T, s *scene) {
	s.inject(always(results|beats, sever))
	s.hire(t, terms{lease: 2 * time.Second})
	id := s.send(t, "ask Still there?")
	s.expires(t, id)
	s.inject(nil)
	if got := s.rests(t, id, client.TaskInputRequired).Status.Message.Text(); got != "Still there?" {
		t.Errorf("the question is %q, want %q", got, "Still there?")
	}
	s.say(t, id, "yes")
	s.completes(t, id, "yes")
	s.leases(t, id, task.LeaseExpired, task.LeaseDone, task.LeaseDone)
}
