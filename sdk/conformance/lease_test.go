package conformance

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/task"
	"github.com/parley-dev/parley/sdk/client"
)

// leaseHangs: requests hang until the lease has expired.
func leaseHangs(t *testing.T, s *scene) {
	release := make(chan struct{})
	leaseLost(t, s, hang(release), func() { close(release) })
}

// leaseUnreachable: connections break until the lease has expired.
func leaseUnreachable(t *testing.T, s *scene) { leaseLost(t, s, sever, func() {}) }

// leaseLost: a worker that cannot reach the server interrupts the handler when its lease ends, and
// reports nothing under it. Another worker completes the task. Then the first one goes on.
func leaseLost(t *testing.T, s *scene, f *fault, release func()) {
	const lease = 2 * time.Second
	cut := s.hire(t, terms{lease: lease})
	id := s.send(t, "listen")
	cut.await(t, "start", 1)
	began := time.Now()
	s.inject(always(anything, f))
	e := cut.await(t, "interrupted", 1)
	over := time.Now()
	if took := over.Sub(began); e.Reason != "lease-lost" || took > lease+10*time.Second {
		t.Errorf("interrupted with the reason %q after %v, want \"lease-lost\" at the end of the lease of %v",
			e.Reason, took, lease)
	}
	s.expires(t, id)
	second := s.hire(t, terms{direct: true})
	if e := second.await(t, "start", 1); e.Attempt != 2 {
		t.Errorf("attempt %d, want 2", e.Attempt)
	}
	s.say(t, id, "carry on")
	s.completes(t, id, "carry on")
	second.stop(t)
	release()
	s.inject(nil)
	s.completes(t, s.send(t, "echo back"), "back")
	s.leases(t, id, task.LeaseExpired, task.LeaseDone)
	lost := s.seen(results | progress | beats)[0].leases[0]
	for _, x := range s.seen(results | progress | beats) {
		if x.leases[0] == lost && x.at.After(over) {
			t.Errorf("the worker used the lost lease %v after it had interrupted the handler", x.at.Sub(over))
		}
	}
}

// reportHangs: a report that hangs does not keep the handler from being interrupted when its lease
// ends.
func reportHangs(t *testing.T, s *scene) {
	const lease = 2 * time.Second
	release := make(chan struct{})
	s.inject(always(progress|beats, hang(release)))
	cut := s.hire(t, terms{lease: lease})
	id := s.send(t, "status 0 a b")
	await(t, "the report", cut.ended, func() bool { return s.faults(progress) > 0 })
	began := time.Now()
	e := cut.await(t, "interrupted", 1)
	if took := time.Since(began); e.Reason != "lease-lost" || took > lease+10*time.Second {
		t.Errorf("interrupted with the reason %q after %v, want \"lease-lost\" at the end of the lease of %v",
			e.Reason, took, lease)
	}
	s.inject(nil)
	close(release)
	s.completes(t, id, "done")
}

// held keeps a request back until the channel is closed, and then carries it out.
func held(until <-chan struct{}) *fault {
	return &fault{"held", func(x *transfer) {
		select {
		case <-until:
		case <-x.r.Context().Done():
		}
		x.answer(x.forward())
	}}
}

// pretend answers heartbeats in place of the server: the lease is fine, and the sender has sent these
// messages.
func pretend(texts ...string) *fault {
	return &fault{"pretend", func(x *transfer) {
		messages := []client.Message{}
		for _, text := range texts {
			messages = append(messages, client.Message{Role: client.RoleUser, ID: text, Parts: []client.Part{client.Text(text)}})
		}
		x.w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(x.w).Encode(client.WorkProgress{
			State: client.TaskWorking, LeaseExpiresAt: time.Now().Add(time.Minute), Messages: messages, Seen: 1,
		})
	}}
}

// refusedReport: a worker does not notice that its lease has expired and another worker has
// completed the task. Its result is refused and changes nothing, and the worker goes on.
func refusedReport(t *testing.T, s *scene) {
	s.inject(always(beats, pretend()))
	late := s.hire(t, terms{lease: 2 * time.Second})
	id := s.send(t, "listen")
	late.await(t, "start", 1)
	s.expires(t, id)
	second := s.hire(t, terms{direct: true})
	second.await(t, "start", 1)
	s.say(t, id, "in time")
	s.completes(t, id, "in time")
	second.stop(t)
	s.inject(first(beats, pretend("too late")))
	s.completes(t, s.send(t, "echo next"), "next")
	s.completes(t, id, "in time")
	s.leases(t, id, task.LeaseExpired, task.LeaseDone)
	if n := len(s.seen(results)); n < 2 {
		t.Errorf("the first worker reported %d results, want 2, one of them late", n)
	}
}

// lateCancel: a result arrives after the sender has canceled the task. It changes nothing, and the
// worker goes on.
func lateCancel(t *testing.T, s *scene) {
	release := make(chan struct{})
	s.inject(either(first(results, held(release)), always(beats, sever))) // the worker must not notice
	d := s.hire(t, terms{lease: 2 * patience})                            // only the response frees the slot
	id := s.send(t, "echo late")
	await(t, "the result", d.ended, func() bool { return s.faults(results) > 0 })
	if _, err := s.admin.Agent(s.agent).Cancel(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	s.inject(nil)
	close(release)
	s.completes(t, s.send(t, "echo next"), "next")
	if got := s.rests(t, id, client.TaskCanceled); got.Text() != "" {
		t.Errorf("the canceled task has the artifact %q", got.Text())
	}
	s.startedTimes(t, id, 1)
}

// workerKilled: the second attempt of a task replaces the artifact of a worker that was killed.
func workerKilled(t *testing.T, s *scene) {
	d := s.hire(t, terms{lease: 2 * time.Second})
	id := s.send(t, "grow 6 150")
	await(t, "two chunks", d.ended, func() bool { return len(s.task(t, id).Text()) >= len("1;2;") })
	d.kill()
	s.hire(t, terms{})
	s.completes(t, id, "1;2;3;4;5;6;")
	s.leases(t, id, task.LeaseExpired, task.LeaseDone)
}
