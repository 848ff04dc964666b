package web_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/task"
)

// An admin sees which orgs use the quota of an agent; other members see the quota only.
func TestAgentPageShowsWhoUsedTheQuota(t *testing.T) {
	t.Parallel()
	d := newDashboard(t)
	d.Agent(agent.Agent{
		ID: "priced", Org: "acme", Name: "Priced", Public: true, Quota: agent.Quota{Tasks: 7, Per: agent.Day},
	})
	ada, bob := d.signIn("acme", "ada", "Ada", true), d.signIn("acme", "bob", "Bob", false)
	const page = "/orgs/acme/agents/priced"
	if body := d.visit(ada, http.MethodGet, page, nil).Body.String(); !strings.Contains(body, "No other org has sent a task in this day.") {
		t.Errorf("got %s, want a quota that nobody used", body)
	}
	secret, _ := d.Key("globex", "user:gil", "svc:a2a:write")
	caller, err := d.Auth.Authenticate(t.Context(), secret)
	if err != nil {
		t.Fatal(err)
	}
	to, err := d.Tasks.Reach(t.Context(), caller, "priced")
	if err != nil {
		t.Fatal(err)
	}
	m := task.Message{Role: task.RoleUser, Parts: []task.Part{{Kind: task.TextPart, Text: "hello"}}}
	if _, err := d.Tasks.Tasks.Send(t.Context(), to, dispatch.SendRequest{Message: m}, 0); err != nil {
		t.Fatal(err)
	}
	if body := d.visit(ada, http.MethodGet, page, nil).Body.String(); !strings.Contains(body, `id="caller-globex"`) ||
		!strings.Contains(body, "1 used, 6 left") {
		t.Errorf("got %s, want globex with 1 used", body)
	}
	if body := d.visit(bob, http.MethodGet, page, nil).Body.String(); strings.Contains(body, "globex") ||
		!strings.Contains(body, "7 tasks per day for each other org") {
		t.Errorf("got %s, want the quota without callers", body)
	}
}
