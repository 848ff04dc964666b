package rest

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/identity"
)

// The policy of an agent applies to tasks whose sender gives none, and its workers see it.
func TestPoliciesOfAgents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.admin("acme", "user:ada")
	var a Agent
	w.do(ada, "POST", agents, `{"id":"scout","name":"Scout","policy":{"timeout_seconds":60}}`, "Idempotency-Key", "k1").
		want(201).into(&a)
	if diff := cmp.Diff(&AgentPolicy{TimeoutSeconds: 60}, a.Policy); diff != "" {
		t.Errorf("policy (-want +got):\n%s", diff)
	}
	w.do(ada, "POST", agents, `{"id":"scout","name":"Scout","policy":{"timeout_seconds":61}}`, "Idempotency-Key", "k1").want(422)
	w.do(ada, "PATCH", agents+"/fixer", `{"policy":{"timeout_seconds":3600,"retry":{"backoff_seconds":5}}}`,
		"Idempotency-Key", "k2").want(200).into(&a)
	want := &AgentPolicy{
		TimeoutSeconds: 3600,
		Retry:          &RetryPolicy{MaxAttempts: 3, BackoffSeconds: 5, On: []string{"lost", "failed"}},
	}
	if diff := cmp.Diff(want, a.Policy); diff != "" {
		t.Errorf("policy (-want +got):\n%s", diff)
	}
	a = Agent{}
	w.do(ada, "GET", agents+"/fixer", "").want(200).into(&a)
	if diff := cmp.Diff(want, a.Policy); diff != "" {
		t.Errorf("policy (-want +got):\n%s", diff)
	}
	sent := w.send("ada", "t-1", "hello")
	var claimed struct {
		Tasks []struct {
			Lease       string
			MaxAttempts int `json:"max_attempts"`
			Deadline    time.Time
		}
	}
	w.do(w.worker(), "POST", claim, `{}`).want(200).into(&claimed)
	if got := claimed.Tasks[0]; got.MaxAttempts != 3 || !got.Deadline.Equal(sent.CreatedAt.Add(time.Hour).Truncate(time.Microsecond)) {
		t.Errorf("got %+v, want 3 attempts and an hour from %s", got, sent.CreatedAt)
	}
	var p WorkProgress
	w.do(w.worker(), "POST", "/api/v1/agents/fixer/leases/"+claimed.Tasks[0].Lease, `{"status":"failed"}`).want(200).into(&p)
	if p.State != "working" || p.LeaseExpiresAt != nil {
		t.Errorf("got %+v, want that the task waits for its next attempt", p)
	}
	var shown OrgTask
	w.do(ada, "GET", "/api/v1/orgs/acme/a2a/tasks/"+sent.UID, "").want(200).into(&shown)
	if shown.Attempt != 2 || shown.Attempts != 3 || shown.Deadline == nil {
		t.Errorf("got %+v, want attempt 2 of 3 and a deadline", shown)
	}
	w.do(ada, "PATCH", agents+"/fixer", `{"policy":null}`, "Idempotency-Key", "k3").want(200)
	a = Agent{}
	w.do(ada, "GET", agents+"/fixer", "").want(200).into(&a)
	if a.Policy != nil {
		t.Errorf("got %+v, want no policy", a.Policy)
	}
	for body, path := range map[string]string{
		`{"policy":{"timeout_seconds":0}}`:                       "/policy/timeout_seconds",
		`{"policy":{"deadline":"2027-01-01T00:00:00Z"}}`:         "/policy/deadline",
		`{"policy":{"retry":{"max_attempts":11}}}`:               "/policy/retry/max_attempts",
		`{"policy":{"retry":{"on":["often"]}}}`:                  "/policy/retry/on/0",
		`{"policy":{"retry":{"on":[]}}}`:                         "/policy/retry/on",
		`{"policy":{"timeout":5}}`:                               "/policy/timeout",
		`{"policy":"fast"}`:                                      "/policy",
		`{"policy":{"retry":{"backoff_seconds":3601}},"name":5}`: "/policy/retry/backoff_seconds",
	} {
		res := w.do(ada, "PATCH", agents+"/fixer", body).want(422)
		if !strings.Contains(res.Body, `"`+path+`"`) {
			t.Errorf("%s: got %s, want a mistake at %s", body, res.Body, path)
		}
	}
}

func TestReruns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.key("acme", "user:ada", identity.A2AWrite)
	rerun := func(id string) string { return "/api/v1/agents/fixer/tasks/" + id + "/rerun" }
	w.send("ada", "a/b c", "hello")
	if p := w.do(ada, "POST", rerun("a%2Fb%20c"), "").want(409).problem(); p.Code != "task.not_rerunnable" {
		t.Errorf("got %+v, want task.not_rerunnable", p)
	}
	lease := w.claim(w.worker(), `{}`).Tasks[0].Lease
	w.do(w.worker(), "POST", "/api/v1/agents/fixer/leases/"+lease, `{"status":"failed"}`).want(200)

	res := w.do(ada, "POST", rerun("a%2Fb%20c"), "", "Idempotency-Key", "k").want(201)
	var first, again OrgTask
	res.into(&first)
	if first.ID != "a/b c.2" || first.State != "submitted" || first.Sender != "acme/user:ada" ||
		res.Header.Get("Location") != "/a2a/fixer/tasks/a%2Fb%20c.2" {
		t.Errorf("got %+v at %s, want a/b c.2 of ada", first, res.Header.Get("Location"))
	}
	res = w.do(ada, "POST", rerun("a%2Fb%20c"), "", "Idempotency-Key", "k").want(201)
	if res.into(&again); again.UID != first.UID || res.Header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("got %+v, %v, want %s again", again, res.Header, first.UID)
	}
	w.do(ada, "POST", rerun("a%2Fb%20c"), "").want(201).into(&again)
	if again.ID != "a/b c.3" {
		t.Errorf("got %s, want a/b c.3", again.ID)
	}

	w.do("", "POST", rerun("a%2Fb%20c"), "").want(401)
	w.do(w.key("acme", "user:ada", identity.TasksRead), "POST", rerun("a%2Fb%20c"), "").want(403)
	w.do(w.key("acme", "user:ada", identity.A2AWrite, "agent:other"), "POST", rerun("a%2Fb%20c"), "").want(403)
	w.do(w.key("acme", "user:bob", identity.A2AWrite), "POST", rerun("a%2Fb%20c"), "").want(404)
	w.do(ada, "POST", rerun("unknown"), "").want(404)
	w.do(ada, "POST", rerun(strings.Repeat("x", 300)), "").want(404)
	w.do(ada, "POST", "/api/v1/agents/nobody/tasks/x/rerun", "").want(404)

	admin := w.admin("acme", "user:eve")
	var list OrgTaskList
	w.do(admin, "GET", "/api/v1/orgs/acme/a2a/tasks?state=failed", "").want(200).into(&list)
	orgRerun := "/api/v1/orgs/acme/a2a/tasks/" + list.Tasks[0].UID + "/rerun"
	w.do(admin, "POST", orgRerun, "").want(201).into(&again)
	if again.ID != "a/b c.4" || again.Sender != "acme/user:ada" {
		t.Errorf("got %+v, want a/b c.4 of ada", again)
	}
	w.do(w.admin("globex", "user:eve"), "POST", "/api/v1/orgs/globex/a2a/tasks/"+list.Tasks[0].UID+"/rerun", "").want(404)
}
