package e2e

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestSameAgentIDInTwoOrgs: two orgs have a private agent with the same id, workers and senders
// with the same names and tasks with the same ids, at the same time and on several nodes. Neither
// gets anything of the other.
func TestSameAgentIDInTwoOrgs(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		s := serve(t, engine{"sqlite", []string{"--data", t.TempDir()}}, "--rate-limit", "0")
		testSameAgentID(t, []*server{s})
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		_, nodes := threeNodes(t)
		testSameAgentID(t, nodes)
	})
}

func testSameAgentID(t *testing.T, nodes []*server) {
	const tasks, messages, workers = 40, 10, 3
	orgs := []string{"east", "west"}
	ctx, done := context.WithCancel(t.Context())
	defer done()
	var working, sending sync.WaitGroup
	var mu sync.Mutex
	got := map[string][]string{} // direct messages by org
	for i, org := range orgs {
		s := nodes[0]
		s.cli(t, "org", "create", org)
		s.cli(t, "agent", "create", "bot", "--org", org, "--name", "Bot of "+org)
		s.cli(t, "service", "create", "partner", "--org", org)
		worker := s.newKey(t, org, "agent:bot", "svc:a2a:serve")
		sender := s.newKey(t, org, "service:partner", "svc:a2a:write", "agent:bot")
		for n := range workers {
			h := hand{base: nodes[n%len(nodes)].base, key: worker, agent: "bot", name: fmt.Sprint("w", n)}
			working.Go(func() {
				for ctx.Err() == nil {
					found, err := h.serveOnce(ctx, org)
					if err != nil && ctx.Err() == nil {
						t.Errorf("%s's worker: %v", org, err)
						return
					}
					mu.Lock()
					got[org] = append(got[org], found...)
					mu.Unlock()
				}
			})
		}
		for n := range tasks {
			// Sent on one node, read on another.
			to, from := peer{nodes[(n+i)%len(nodes)].base, sender}, peer{nodes[(n+i+1)%len(nodes)].base, sender}
			sending.Go(func() { sendSame(t, to, from, org, n) })
		}
		for n := range messages {
			to := peer{nodes[n%len(nodes)].base, sender}
			sending.Go(func() {
				a, err := to.call(ctx, "bot", "message/send", object{"message": text(fmt.Sprintf("%s %02d", org, n))})
				if err != nil || a.Error != nil {
					t.Errorf("message: got %+v, %v; want no error", a.Error, err)
				}
			})
		}
	}
	sending.Wait()
	eventually(t, soon, "all messages to arrive", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(got["east"]) >= messages && len(got["west"]) >= messages
	})
	done()
	working.Wait()
	for org, list := range got {
		slices.Sort(list)
		for n, m := range slices.Compact(list) { // a message is delivered again until it is acknowledged
			if want := fmt.Sprintf("%s %02d", org, n); m != want {
				t.Errorf("a worker of %s got the message %q; want %q", org, m, want)
			}
		}
	}
}

// serveOnce does the waiting work in the name of the org, and returns the direct messages that
// arrived.
func (h hand) serveOnce(ctx context.Context, org string) (found []string, err error) {
	var out struct {
		Tasks    []work
		Messages []struct {
			ID      string
			Message struct{ Parts []struct{ Text string } }
		}
	}
	status, err := h.do(ctx, http.MethodPost, "/claim", object{
		"worker": h.name, "max": 5, "wait_seconds": 5, "lease_seconds": 60, "capacity": 5,
	}, &out)
	if err != nil || status != http.StatusOK {
		return nil, fmt.Errorf("claim: %d, %w", status, err)
	}
	var ids []string
	for _, m := range out.Messages {
		found, ids = append(found, m.Message.Parts[0].Text), append(ids, m.ID)
	}
	if len(ids) > 0 {
		status, err := h.do(ctx, http.MethodPost, "/claim", object{"worker": h.name, "max": 0, "wait_seconds": 0, "ack": ids},
			nil)
		if err != nil || status != http.StatusOK {
			return found, fmt.Errorf("acknowledge: %d, %w", status, err)
		}
	}
	for _, w := range out.Tasks {
		if !strings.HasPrefix(w.text(), org+" ") {
			return found, fmt.Errorf("got the task %q", w.text())
		}
		body := object{"status": "completed", "artifacts": []object{artifact("out", "done by "+org+": "+w.text())}}
		if _, status, err := h.report(ctx, w.Lease, body); err != nil || status != http.StatusOK {
			return found, fmt.Errorf("report: %d, %w", status, err)
		}
	}
	return found, nil
}

// sendSame sends a task, follows it to its end on another node and reads it.
func sendSame(t *testing.T, to, from peer, org string, n int) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	id, say := fmt.Sprintf("t-%d", n), fmt.Sprintf("%s %d", org, n)
	if _, err := to.send(ctx, "bot", id, say); err != nil {
		t.Errorf("%s: %v", say, err)
		return
	}
	events, err := from.whole(ctx, "bot", id)
	if err != nil || len(events) == 0 {
		t.Errorf("%s: got %d events, %v; want some", say, len(events), err)
		return
	}
	all := strings.Join(datas(events), "\n")
	if last := events[len(events)-1]; last.state != "completed" || !strings.Contains(all, "done by "+org+": "+say) {
		t.Errorf("%s: got\n%s\nwant it completed with the result of %s", say, all, org)
	}
}

// TestPublicNamesAreFew: an org can take only a few public ids from others, and prevents no
// private agents with these ids.
func TestPublicNamesAreFew(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, e engine) {
		t.Parallel()
		s := serve(t, e, "--rate-limit", "0", "--max-public-agents", "20")
		keys := map[string]string{}
		for _, org := range []string{"mallory", "honest"} {
			s.cli(t, "org", "create", org)
			s.cli(t, "service", "create", "crm", "--org", org)
			keys[org] = s.newKey(t, org, "service:crm", "svc:admin:admin", "svc:a2a:write")
		}
		create := func(org string, n int, public bool) (int, string) {
			var problem struct{ Code string }
			url := s.base + "/api/v1/orgs/" + org + "/agents"
			body := object{"id": fmt.Sprint("bot", n), "name": "Bot", "public": public}
			status := must(api(t.Context(), http.MethodPost, url, keys[org], body, &problem))(t)
			return status, problem.Code
		}
		for n := range 25 {
			status, code := create("mallory", n, true)
			if n < 20 && status != 201 || n >= 20 && (status != 409 || code != "quota.public_agents") {
				t.Errorf("public id %d: got %d %s, want 201 up to 20, then 409 quota.public_agents", n, status, code)
			}
		}
		honest := peer{s.base, keys["honest"]}
		for n := range 25 {
			if n < 20 {
				if status, code := create("honest", n, true); status != 409 || code != "agent.public_id_taken" {
					t.Errorf("public id of another org: got %d %s, want 409 agent.public_id_taken", status, code)
				}
			}
			if status, code := create("honest", n, n >= 20); status != 201 {
				t.Errorf("id %d: got %d %s, want 201", n, status, code)
			}
			if _, err := honest.send(t.Context(), fmt.Sprint("bot", n), "t-1", "hello"); err != nil {
				t.Error(err)
			}
		}
		var list struct{ Tasks []object }
		for org, want := range map[string]int{"honest": 25, "mallory": 0} {
			must(api(t.Context(), http.MethodGet, s.base+"/api/v1/orgs/"+org+"/a2a/tasks?limit=100", keys[org], nil, &list))(t)
			if len(list.Tasks) != want {
				t.Errorf("%s has %d tasks; want %d", org, len(list.Tasks), want)
			}
		}
		// The operator releases an id.
		s.cli(t, "agent", "release", "bot0", "--org", "mallory")
		bot0 := s.base + "/api/v1/orgs/honest/agents/bot0"
		if status := must(api(t.Context(), http.MethodPatch, bot0, keys["honest"], object{"public": true},
			nil))(t); status != 200 {
			t.Errorf("released id: status = %d, want 200", status)
		}
	})
}
