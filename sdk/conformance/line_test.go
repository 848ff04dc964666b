package conformance

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/parley-dev/parley/sdk/client"
)

// slowLine: responses that arrive in small pieces are complete.
func slowLine(t *testing.T, s *scene) {
	s.inject(always(anything, trickle))
	s.hire(t, terms{concurrency: 2})
	file := client.File("slow.bin", "application/x-test", pattern(40_000))
	sent, grows := s.send(t, "file", file), s.send(t, "grow 3 0")
	var ids []string
	for i := range 4 {
		ids = append(ids, s.send(t, fmt.Sprintf("echo %d", i)))
	}
	checkFile(t, s.rests(t, sent, client.TaskCompleted), file)
	s.completes(t, grows, "1;2;3;")
	for i, id := range ids {
		s.completes(t, id, fmt.Sprint(i))
	}
	for _, id := range s.sent {
		s.executedOnce(t, id)
	}
}

// closingConnections: the server closes connections without announcing it, half of them after a
// response, and some when the next request is on its way.
func closingConnections(t *testing.T, s *scene) {
	s.inject(func(*transfer) *fault {
		return []*fault{snap, snap, sever, nil}[rand.N(4)]
	})
	s.hire(t, terms{concurrency: 4})
	for i := range 30 {
		s.send(t, fmt.Sprintf("echo %d", i))
	}
	for i, id := range s.sent {
		s.completes(t, id, fmt.Sprint(i))
		s.executedOnce(t, id)
	}
	if s.faults(anything) == 0 {
		t.Error("no connection was closed")
	}
}

// busyServer: a server that refuses requests for a while is asked again, not before it said.
func busyServer(t *testing.T, s *scene) {
	const after = time.Second
	full := refuse(http.StatusServiceUnavailable, "overloaded", after)
	slow := refuse(http.StatusTooManyRequests, "rate_limited", after)
	s.inject(either(first(results, full, slow), first(progress, slow, full), first(claims, full, slow)))
	s.hire(t, terms{})
	id := s.send(t, "grow 2 0")
	s.completes(t, id, "1;2;")
	s.executedOnce(t, id)
	for name, what := range map[string]operation{"claim": claims, "progress": progress, "result": results} {
		var last *transfer
		refused := 0
		for _, x := range s.seen(what) {
			if x.does&^what != 0 && what == claims {
				continue // a result that also claims
			}
			if last != nil && last.fault != "" {
				refused++
				if pause := x.at.Sub(last.at); pause < after-50*time.Millisecond {
					t.Errorf("%s: the next request came %v after a refusal, want at least %v", name, pause, after)
				}
			}
			last = x
		}
		if refused != 2 {
			t.Errorf("%s: %d requests were repeated after a refusal, want 2", name, refused)
		}
	}
}
