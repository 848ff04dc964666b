package rest

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/task"
)

// send sends a task to an agent as the principal of a key.
func (w *world) sendTask(secret, agent, id string) {
	w.tb.Helper()
	ctx := context.Background()
	caller, err := w.auth.Authenticate(ctx, secret)
	if err != nil {
		w.tb.Fatal(err)
	}
	to, err := w.tasks.Reach(ctx, caller, agent)
	if err != nil {
		w.tb.Fatal(err)
	}
	m := task.Message{Role: task.RoleUser, Parts: []task.Part{{Kind: task.TextPart, Text: "hello"}}}
	if _, err := w.tasks.Tasks.Send(ctx, to, dispatch.SendRequest{ID: id, Message: m}, 0); err != nil {
		w.tb.Fatal(err)
	}
}

func TestCatalogue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada, gil := w.admin("acme", "user:ada"), w.admin("globex", "user:gil")
	const theirs = "/api/v1/orgs/globex/agents"
	w.do(gil, "POST", theirs, `{"id":"tariffs","name":"Zölle","description":"Knows customs.","public":true,
		"skills":["customs"],"quota":{"tasks":5,"per":"day"},"provider":{"organization":"Globex","url":"https://globex.example"}}`).want(201)
	w.do(gil, "POST", theirs, `{"id":"vault","name":"Customs vault"}`).want(201)
	w.do(ada, "POST", agents, `{"id":"scout","name":"Scout","description":"Finds customs."}`).want(201)
	w.sendTask(ada, "tariffs", "t-1")

	var found FoundAgents
	res := w.do(ada, "GET", "/api/v1/agents?q=CUST", "").want(200)
	res.into(&found)
	if len(found.Agents) != 2 {
		t.Fatalf("got %s, want two agents", res.Body)
	}
	resets := found.Agents[0].Quota.ResetsAt
	acme := "acme"
	want := FoundAgents{Agents: []FoundAgent{
		{
			ID: "tariffs", Name: "Zölle", Description: "Knows customs.", Skills: []string{"customs"}, Public: true, Status: "offline",
			URL: "/a2a/tariffs", CardURL: "/a2a/tariffs/.well-known/agent-card.json",
			Provider: &AgentProvider{"Globex", "https://globex.example"},
			Quota:    &QuotaUsage{Tasks: 5, Per: "day", Used: 1, Left: 4, ResetsAt: resets},
		},
		{
			ID: "scout", Org: &acme, Name: "Scout", Description: "Finds customs.", Skills: []string{}, Status: "offline",
			URL: "/a2a/scout", CardURL: "/a2a/scout/.well-known/agent-card.json",
		},
	}}
	if diff := cmp.Diff(want, found); diff != "" || !strings.HasSuffix(resets, "T00:00:00.000000Z") {
		t.Errorf("resets at %s, mismatch (-want +got):\n%s", resets, diff)
	}

	// Pages follow the Link header, and next_cursor says the same.
	var ids []string
	for next := "/api/v1/agents?limit=1"; next != ""; {
		res := w.do(ada, "GET", next, "").want(200)
		res.into(&found)
		ids = append(ids, found.Agents[0].ID)
		next = ""
		for _, l := range res.Header["Link"] {
			if target, ok := strings.CutSuffix(l, `>; rel="next"`); ok {
				next = strings.TrimPrefix(target, "<")
			}
		}
		if (next != "") != (found.NextCursor != nil) ||
			next != "" && !strings.Contains(next, "cursor="+url.QueryEscape(*found.NextCursor)) {
			t.Errorf("next_cursor and Link disagree: %v, %q", found.NextCursor, next)
		}
	}
	if diff := cmp.Diff([]string{"fixer", "scout", "tariffs"}, ids); diff != "" {
		t.Errorf("pages (-want +got):\n%s", diff)
	}
	for query, want := range map[string][]string{
		"skill=customs": {"tariffs"}, "presence=offline&q=scout": {"scout"}, "presence=busy": {}, "org=acme": {"fixer", "scout"},
		"org=globex": {},
	} {
		w.do(ada, "GET", "/api/v1/agents?"+query, "").want(200).into(&found)
		got := []string{}
		for _, a := range found.Agents {
			got = append(got, a.ID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", query, got, want)
		}
	}
	for query, place := range map[string]string{
		"q=%25": "query:q", "skill=%C3%A9": "query:skill", "presence=asleep": "query:presence", "limit=0": "query:limit",
		"cursor=x": "query:cursor", "page=2": "query:page",
	} {
		p := w.do(ada, "GET", "/api/v1/agents?"+query, "").want(422).problem()
		if !slices.Contains(at(p), place) {
			t.Errorf("%s: got %v, want %s", query, at(p), place)
		}
	}
	w.do("", "GET", "/api/v1/agents", "").want(401)
	w.do(w.key("acme", "service:x", identity.TasksWrite), "GET", "/api/v1/agents", "").want(403)
	w.do(w.key("acme", "service:x", identity.TasksRead, "agent:tariffs"), "GET", "/api/v1/agents", "").want(200).into(&found)
	if len(found.Agents) != 1 || found.Agents[0].ID != "tariffs" {
		t.Errorf("a restricted key finds %+v, want tariffs", found.Agents)
	}
}

func TestUsageOfQuotas(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada, gil := w.admin("acme", "user:ada"), w.admin("globex", "user:gil")
	const theirs = "/api/v1/orgs/globex/agents"
	var a Agent
	w.do(gil, "POST", theirs, `{"id":"tariffs","name":"T","public":true}`).want(201).into(&a)
	if a.Quota != nil {
		t.Errorf("got %+v, want no quota", a.Quota)
	}
	w.do(gil, "PATCH", theirs+"/tariffs", `{"quota":{"tasks":3,"per":"hour"}}`).want(200).into(&a)
	if diff := cmp.Diff(&AgentQuota{3, "hour"}, a.Quota); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var used UsageList
	w.do(ada, "GET", "/api/v1/me/usage", "").want(200).into(&used)
	if len(used.Usage) != 0 {
		t.Errorf("before any call: %+v, want none", used)
	}
	w.sendTask(ada, "tariffs", "t-1")
	w.sendTask(ada, "tariffs", "t-2")
	w.do(ada, "GET", "/api/v1/me/usage", "").want(200).into(&used)
	if len(used.Usage) != 1 || used.Usage[0].Agent != "tariffs" || used.Usage[0].Used != 2 || used.Usage[0].Left != 1 {
		t.Errorf("got %+v, want 2 of 3 used", used)
	}
	w.do(w.key("acme", "service:x", identity.A2AWrite, "agent:fixer"), "GET", "/api/v1/me/usage", "").want(200).into(&used)
	if len(used.Usage) != 0 {
		t.Errorf("a key that does not reach the agent sees %+v", used)
	}
	w.do(w.key("acme", "service:x", identity.TasksRead), "GET", "/api/v1/me/usage", "").want(403)
	var callers AgentCallers
	w.do(gil, "GET", theirs+"/tariffs/usage", "").want(200).into(&callers)
	if callers.Quota == nil || len(callers.Callers) != 1 || callers.Callers[0].Org != "acme" || callers.Callers[0].Used != 2 {
		t.Errorf("got %+v, want acme with 2", callers)
	}
	w.do(ada, "GET", "/api/v1/orgs/acme/agents/tariffs/usage", "").want(404)
	w.do(gil, "PATCH", theirs+"/tariffs", `{"quota":null}`).want(200).into(&a)
	body := w.do(gil, "GET", theirs+"/tariffs", "").want(200).Body
	if strings.Contains(body, `"quota"`) {
		t.Errorf("got %s, want no quota", body)
	}
	for body, want := range map[string]string{
		`{"quota":{}}`: "/quota/tasks", `{"quota":{"tasks":0,"per":"day"}}`: "/quota/tasks", `{"quota":{"tasks":1,"per":"week"}}`: "/quota/per",
		`{"quota":{"tasks":"1","per":"day"}}`: "/quota/tasks", `{"quota":7}`: "/quota",
	} {
		if p := w.do(gil, "PATCH", theirs+"/tariffs", body).want(422).problem(); !slices.Contains(at(p), want) {
			t.Errorf("%s: got %v, want %s", body, at(p), want)
		}
	}
}
