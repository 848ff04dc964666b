package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/pgtest"
)

// limited sends a task with a policy, which is a JSON object.
func (p peer) limited(t *testing.T, agent, id, policy string) {
	t.Helper()
	must(p.task(t.Context(), agent, "tasks/send", object{
		"id": id, "message": text("go"), "metadata": object{"parley.dev/policy": json.RawMessage(policy)},
	}))(t)
}

// ends waits until a task is over, and checks its state and what its status says.
func (p peer) ends(t *testing.T, agent, id, state, says string) {
	t.Helper()
	var got rpcAnswer
	eventually(t, time.Minute, id+" is over", func() bool {
		view := must(p.get(t.Context(), agent, id))(t)
		got = must(p.call(t.Context(), agent, "tasks/get", object{"id": id}))(t)
		return terminal(view.Status.State)
	})
	if view := must(p.get(t.Context(), agent, id))(t); view.Status.State != state || !strings.Contains(string(got.Result), says) {
		t.Errorf("%s is %s: %s; want %s and %q", id, view.Status.State, got.Result, state, says)
	}
}

// TestTaskDeadlines: a task fails at its deadline whatever it waits for, also if the server is killed
// around it; and attempts that fail are repeated, also after a restart.
func TestTaskDeadlines(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, e engine) {
		t.Parallel()
		s := serve(t, e, calm...)
		o := newTaskOrg(t, s, "limits")
		s.cli(t, "agent", "create", "nobody", "--org", o.org, "--name", "No worker", "--timeout", "4s")
		p, h := o.peer(), o.hand()
		ctx := t.Context()
		const four = `{"timeout_seconds":4}`
		p.limited(t, o.agent, "leased", four)
		leased := h.take(t, 600)
		p.limited(t, o.agent, "asking", four)
		asking := h.take(t, 600)
		if _, _, err := h.report(ctx, asking.Lease, object{"status": "input-required", "message": says("which?")}); err != nil {
			t.Fatal(err)
		}
		p.limited(t, o.agent, "retried", `{"retry":{"max_attempts":2,"backoff_seconds":2}}`)
		retried := h.take(t, 600)
		got, _, err := h.report(ctx, retried.Lease, object{"status": "failed", "message": says("no disk space")})
		if err != nil || got.State != "working" {
			t.Fatalf("a failure with a retry: %+v, %v; want working", got, err)
		}
		p.limited(t, o.agent, "queued", four)
		must(p.send(ctx, "nobody", "offline", "go"))(t)

		s.Kill() // while all of them wait
		e.settle(t)
		s = serve(t, e, calm...)
		p.base, h.base = s.base, s.base
		p.ends(t, o.agent, "leased", "failed", "passed while a worker was working on it")
		p.ends(t, o.agent, "asking", "failed", "passed while it waited for its sender")
		p.ends(t, o.agent, "queued", "failed", "passed while it waited for a worker")
		p.ends(t, "nobody", "offline", "failed", "passed while it waited for a worker")
		if _, status, err := h.report(ctx, leased.Lease, object{"status": "completed"}); err != nil || status != http.StatusConflict {
			t.Errorf("a result after the deadline: %d, %v; want 409", status, err)
		}
		second := h.take(t, 600)
		if second.ID != retried.ID || second.Attempt != 2 {
			t.Errorf("claimed %+v; want attempt 2 of %s", second, retried.ID)
		}
		if _, _, err := h.report(ctx, second.Lease, object{"status": "failed", "message": says("again")}); err != nil {
			t.Fatal(err)
		}
		p.ends(t, o.agent, "retried", "failed", "again")
		rerun(t, p, o.agent, "retried", h)
	})
}

// rerun sends a failed task again, many times at once, with two idempotency keys.
func rerun(t *testing.T, p peer, agent, id string, h hand) {
	t.Helper()
	url := p.base + "/api/v1/agents/" + agent + "/tasks/" + id + "/rerun"
	var mu sync.Mutex
	made := map[string]map[string]bool{}
	var wg sync.WaitGroup
	for i := range 8 {
		key := fmt.Sprint("key-", i%2)
		wg.Go(func() {
			res, err := post(t.Context(), url, p.key, nil, "Idempotency-Key: "+key)
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = res.Body.Close() }()
			var got struct{ ID string }
			if err := json.NewDecoder(res.Body).Decode(&got); err != nil || res.StatusCode != http.StatusCreated {
				t.Errorf("rerun: %d, %v; want 201", res.StatusCode, err)
			}
			mu.Lock()
			defer mu.Unlock()
			if made[key] == nil {
				made[key] = map[string]bool{}
			}
			made[key][got.ID] = true
		})
	}
	wg.Wait()
	if len(made["key-0"]) != 1 || len(made["key-1"]) != 1 || !made["key-0"][id+".2"] && !made["key-1"][id+".2"] {
		t.Errorf("two keys made %v; want %s.2 and %s.3", made, id, id)
	}
	for range 2 {
		w := h.take(t, 600)
		if _, _, err := h.report(t.Context(), w.Lease, object{"status": "completed"}); err != nil {
			t.Error(err)
		}
	}
	p.ends(t, agent, id+".2", "completed", `"parley.dev/rerun_of":"`+id+`"`)
	res, err := post(t.Context(), p.base+"/api/v1/agents/"+agent+"/tasks/"+id+".2/rerun", p.key, nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusConflict {
		t.Errorf("rerun of a completed task: %d; want 409", res.StatusCode)
	}
}

// TestTaskDeadlineNodes: of two nodes on one PostgreSQL, one fails an overdue task, once.
func TestTaskDeadlineNodes(t *testing.T) {
	t.Parallel()
	e := engine{"postgres", []string{"--database", pgtest.URL(t)}}
	nodes := []*server{serve(t, e.as(t, "node0"), calm...), serve(t, e.as(t, "node1"), calm...)}
	o := newTaskOrg(t, nodes[0], "overdue")
	p := o.peer()
	const tasks = 50
	for i := range tasks {
		p.limited(t, o.agent, fmt.Sprint("t", i), `{"timeout_seconds":2}`)
	}
	p.base = nodes[1].base
	for i := range tasks {
		id := fmt.Sprint("t", i)
		p.ends(t, o.agent, id, "failed", "passed while it waited for a worker")
		ends := 0
		for _, ev := range must(p.whole(t.Context(), o.agent, id))(t) {
			if terminal(ev.state) {
				ends++
			}
		}
		if ends != 1 {
			t.Errorf("%s ended %d times; want once", id, ends)
		}
	}
}
