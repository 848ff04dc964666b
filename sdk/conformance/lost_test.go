package conformance

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/task"
)

// lostClaim: the tasks of a claim whose response is lost are executed after their lease.
func lostClaim(t *testing.T, s *scene) {
	var lost atomic.Bool
	s.inject(always(claims, &fault{"lose tasks", func(x *transfer) {
		res := x.forward()
		if res != nil && bytes.Contains(res.body, []byte(`"lease-`)) && lost.CompareAndSwap(false, true) {
			panic(http.ErrAbortHandler)
		}
		x.answer(res)
	}}))
	d := s.hire(t, terms{lease: 2 * time.Second})
	id := s.send(t, "echo found")
	s.completes(t, id, "found")
	s.leases(t, id, task.LeaseExpired, task.LeaseDone)
	s.startedTimes(t, id, 1)
	if e := d.await(t, "start", 1); e.Attempt != 2 {
		t.Errorf("attempt %d, want 2", e.Attempt)
	}
}

// lostResults: a result whose request or response is lost is reported again, and accepted once. Tasks
// that the same response would have delivered are executed after their lease.
func lostResults(t *testing.T, s *scene) {
	s.inject(first(results, sever, lose, sever, lose))
	d := s.hire(t, terms{concurrency: 3, lease: 3 * time.Second})
	var ids []string
	for i := range 12 {
		ids = append(ids, s.send(t, fmt.Sprintf("echo %d", i)))
	}
	for i, id := range ids {
		s.completes(t, id, fmt.Sprint(i))
		s.startedTimes(t, id, 1)
	}
	if n := s.faults(results); n != 4 {
		t.Errorf("%d requests or responses were lost, want 4", n)
	}
	if n := d.count(t, "interrupted", ""); n != 0 {
		t.Errorf("%d handlers were interrupted, want none", n)
	}
}

// lostChunks: an artifact that grows while responses are lost is complete and has no chunk twice.
// Status messages keep their order.
func lostChunks(t *testing.T, s *scene) {
	s.inject(every(2, progress, lose))
	s.hire(t, terms{concurrency: 2})
	grows, says := s.send(t, "grow 8 20"), s.send(t, "status 20 a b c d")
	s.completes(t, grows, "1;2;3;4;5;6;7;8;")
	s.completes(t, says, "done")
	s.executedOnce(t, grows)
	s.executedOnce(t, says)
	var words []string
	for _, e := range s.records(t, s.agent)[says].log {
		if e.Kind == task.StatusEvent && e.State == task.Working && e.Lease == "" && e.Message != nil {
			words = append(words, e.Message.Text())
		}
	}
	if words = slices.Compact(words); !slices.Equal(words, []string{"a", "b", "c", "d"}) {
		t.Errorf("the status messages are %q, want a, b, c, d", words)
	}
	if n := s.faults(progress); n < 6 {
		t.Errorf("%d responses were lost, want at least 6", n)
	}
}

// lostHeartbeats: a worker that misses the responses to some heartbeats keeps its lease.
func lostHeartbeats(t *testing.T, s *scene) {
	s.inject(every(2, beats, lose))
	s.hire(t, terms{lease: 3 * time.Second})
	id := s.send(t, "sleep 4500 rested")
	s.completes(t, id, "rested")
	s.executedOnce(t, id)
	if n := s.faults(beats); n < 2 {
		t.Errorf("%d responses to heartbeats were lost, want at least 2", n)
	}
}
