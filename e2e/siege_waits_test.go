package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestSiegeBlockingSends has 64 callers of one key wait for the results of 400 KB messages. While
// they wait they hold neither memory nor a decoding slot, so all of them are admitted and get
// their task when its agent is done.
func TestSiegeBlockingSends(t *testing.T) {
	frontSiege(t, func(t *testing.T, s *siege) {
		h := s.prey.hand()
		if _, err := h.claim(t.Context(), 1, 0, 60); err != nil { // makes the agent present, else no send would wait
			t.Fatal(err)
		}
		round := 0
		keepOn(func() {
			round++
			s.blockingSends(t, h, fmt.Sprint("m", round, "-"))
		})
	})
}

// blockingSends has callers wait for messages, and does their work. The message ids begin with
// prefix.
func (s *siege) blockingSends(t *testing.T, h hand, prefix string) {
	t.Helper()
	const callers = 64
	var wg sync.WaitGroup
	var ended atomic.Int64
	for i := range callers {
		wg.Go(func() {
			defer ended.Add(1)
			message := object{
				"messageId": fmt.Sprint(prefix, i), "role": "ROLE_USER",
				"parts": []object{{"text": strings.Repeat("x", 400_000)}},
			}
			send := func() (rpcAnswer, error) {
				return s.attacker.call(t.Context(), s.prey.agent, "SendMessage", object{"message": message}, "A2A-Version: 1.0")
			}
			a, err := send()
			for err == nil && a.status == http.StatusServiceUnavailable { // a slow machine may not admit all in time
				time.Sleep(time.Second) // as Retry-After asks
				a, err = send()
			}
			if err != nil || a.status != http.StatusOK || a.Error != nil ||
				!bytes.Contains(a.Result, []byte("TASK_STATE_COMPLETED")) {
				t.Errorf("caller %d: got %d %+v %.200s %v, want a completed task", i, a.status, a.Error, a.Result, err)
			}
		})
	}
	// Rendering the metrics takes as much time as a small request: more polls would be
	// part of the attack.
	poll(t, 250*time.Millisecond, soon, "all callers wait", func() bool {
		return ended.Load() > 0 || s.metric(t, "parley_http_waits") == callers
	})
	if n := s.metric(t, "parley_request_memory_bytes"); n > 1<<20 || ended.Load() > 0 {
		t.Errorf("waiting callers hold %d bytes and %d ended, want at most 1 MiB and 0", n, ended.Load())
	}
	for done := 0; done < callers && !t.Failed(); {
		works, err := h.claim(t.Context(), 100, 5, 60)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range works {
			if _, _, err := h.report(t.Context(), w.Lease, object{"status": "completed"}); err != nil {
				t.Fatal(err)
			}
			done++
		}
	}
	wg.Wait()
}

// TestSiegeReports has a worker of the attacker's own agent request all messages of a large task
// again and again, with many concurrent reports.
func TestSiegeReports(t *testing.T) {
	eachSiege(t, func(t *testing.T, s *siege) {
		o := &taskOrg{server: s.server, org: "mallory", agent: "bot-mallory"}
		s.cli(t, "agent", "create", o.agent, "--org", "mallory", "--name", "Bot")
		o.worker = s.newKey(t, "mallory", "agent:"+o.agent, "svc:a2a:serve")
		must(s.attacker.send(t.Context(), o.agent, "big", "hello"))(t)
		lease := o.hand().take(t, 600).Lease
		for i := range 4 {
			must(s.attacker.send(t.Context(), o.agent, "big", fmt.Sprint(largest, i)))(t)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(siegeSize(6, 60))*time.Second) // all arrive at once
		defer cancel()
		var whole atomic.Int64
		keepOn(func() {
			var wg sync.WaitGroup
			for range siegeSize(64, 128) {
				wg.Go(func() {
					res, err := post(ctx, s.base+"/api/v1/agents/"+o.agent+"/leases/"+lease, o.worker, object{"seen": 1})
					if err != nil {
						if ctx.Err() == nil {
							t.Error(err)
						}
						return
					}
					defer func() { _ = res.Body.Close() }()
					n, _ := io.Copy(io.Discard, res.Body)
					if mustShed(t, res); n > int64(4*len(largest)) {
						whole.Add(1)
					}
				})
			}
			wg.Wait()
		})
		if whole.Load() == 0 {
			t.Error("no report returned all messages, want at least one")
		}
	})
}
