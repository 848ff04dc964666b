package mcp

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/friction"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
	"github.com/parley-dev/parley/internal/task"
)

type object = map[string]any

func submission() object {
	return object{
		"title": "Retry webhooks", "category": "reliability", "problem": "They get lost.", "suggested_fix": "Retry.",
	}
}

func TestToolsAreDescribed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.session(w.member("acme", "user:ada"))
	res, err := s.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	tools := map[string]*sdk.Tool{}
	for _, tool := range res.Tools {
		tools[tool.Name] = tool
		if !strings.Contains(tool.Description, "svc:") || tool.Title == "" || tool.Annotations == nil ||
			tool.OutputSchema == nil {
			t.Errorf("%s: got %+v, want a title, its scopes, annotations and an output schema", tool.Name, tool)
		}
		if in := tool.InputSchema.(map[string]any); in["additionalProperties"] == nil {
			t.Errorf("%s: the input schema allows other properties", tool.Name)
		}
		if a := tool.Annotations; !a.ReadOnlyHint && !strings.Contains(strings.ToLower(tool.Description), "a repeat") {
			t.Errorf("%s: the description does not mention what a repeat does", tool.Name)
		}
	}
	want := []string{
		"cancel_task", "find_agent", "get_proposal", "get_task", "list_agents", "list_events", "list_proposals", "report_friction",
		"send_task", "submit_proposal",
		"vote_on_proposal", "withdraw_vote",
	}
	var got []string
	for name := range tools {
		got = append(got, name)
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, name := range []string{"get_proposal", "get_task", "list_agents", "list_events", "list_proposals"} {
		if !tools[name].Annotations.ReadOnlyHint {
			t.Errorf("%s: ReadOnlyHint = false, want true", name)
		}
	}
	raw, _ := json.Marshal(tools["submit_proposal"].InputSchema)
	var schema struct {
		Required   []string
		Properties map[string]struct {
			Type      string
			MaxLength int
			Enum      []string
		}
	}
	if err := json.Unmarshal(raw, &schema); err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	if len(schema.Properties) != 5 || schema.Properties["title"].MaxLength != proposal.MaxTitle ||
		len(schema.Properties["category"].Enum) != len(proposal.Categories) ||
		schema.Properties["priority"].Type != "string" ||
		!slices.Equal(schema.Required, []string{"title", "category", "problem", "suggested_fix"}) {
		t.Errorf("schema of submit_proposal = %s, want the domain's limits", raw)
	}
	raw, _ = json.Marshal(tools["report_friction"].InputSchema)
	if !strings.Contains(string(raw), `"maxLength":4096`) || friction.MaxEvidence != 4096 {
		t.Errorf("schema of report_friction = %s, want the domain's limits", raw)
	}
}

func TestProposalTools(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada, eve := w.session(w.member("acme", "user:ada")), w.session(w.member("globex", "user:eve"))
	p := call[record](w, ada, "submit_proposal", submission())
	if !proposal.ValidID(p.ID) || p.Status != "open" || p.Priority != "normal" || p.SubmittedBy != "user:ada" ||
		p.MyVote != nil {
		t.Errorf("got %+v, want an open proposal of user:ada", p)
	}
	if got := call[record](w, ada, "get_proposal", object{"id": p.ID}); cmp.Diff(p, got) != "" {
		t.Errorf("get_proposal (-want +got):\n%s", cmp.Diff(p, got))
	}
	v := call[voteOut](w, ada, "vote_on_proposal", object{"id": p.ID, "vote": "for"})
	if v.VotesFor != 1 || v.Replaced {
		t.Errorf("got %+v, want one vote for", v)
	}
	v = call[voteOut](w, ada, "vote_on_proposal", object{"id": p.ID, "vote": "against", "comment": "No."})
	if v.VotesAgainst != 1 || v.VotesFor != 0 || !v.Replaced {
		t.Errorf("got %+v, want the vote replaced", v)
	}
	if v := call[voteOut](w, ada, "withdraw_vote", object{"id": p.ID}); v.VotesAgainst != 0 || v.Vote != nil {
		t.Errorf("got %+v, want no votes", v)
	}
	if f := w.fail(ada, "withdraw_vote", object{"id": p.ID}); f.Code != "resource.not_found" || f.RequestID == "" {
		t.Errorf("got %+v, want resource.not_found", f)
	}
	for range 2 {
		call[record](w, ada, "submit_proposal", submission())
	}
	list := call[listOut](w, ada, "list_proposals", object{"limit": 2, "q": "webh", "sort": "oldest", "status": "all"})
	if len(list.Proposals) != 2 || list.Total != 3 || list.Proposals[0].ID != p.ID || list.NextCursor == nil {
		t.Fatalf("got %+v, want 2 of 3 proposals and a next page", list)
	}
	list = call[listOut](w, ada, "list_proposals", object{
		"limit": 2, "q": "webh", "sort": "oldest", "status": "all", "cursor": *list.NextCursor,
	})
	if len(list.Proposals) != 1 || list.NextCursor != nil {
		t.Errorf("got %+v, want the last proposal", list)
	}
	// The org is always the caller's.
	if list := call[listOut](w, eve, "list_proposals", nil); list.Total != 0 || list.Proposals == nil {
		t.Errorf("list of another org = %+v, want none", list)
	}
	for _, name := range []string{"get_proposal", "withdraw_vote"} {
		if f := w.fail(eve, name, object{"id": p.ID}); f.Code != "resource.not_found" {
			t.Errorf("%s: got %+v, want resource.not_found", name, f)
		}
	}
}

func TestArgumentsAreRefusedAsTheAPIDoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.session(w.member("acme", "user:ada"))
	with := func(base object, name string, v any) object {
		out := object{}
		for k, v := range base {
			out[k] = v
		}
		out[name] = v
		return out
	}
	report := object{"fingerprint": "f", "title": "t", "category": "process", "problem": "p"}
	for _, c := range []struct {
		tool string
		args object
		at   []string
	}{
		{"submit_proposal", object{}, []string{"/title", "/category", "/problem", "/suggested_fix"}},
		{"submit_proposal", with(submission(), "category", "x"), []string{"/category"}},
		{"submit_proposal", with(submission(), "status", "draft"), []string{"/status"}},
		{"submit_proposal", with(submission(), "org", "globex"), []string{"/org"}},
		{"submit_proposal", with(submission(), "title", 7), []string{"/title"}},
		{"submit_proposal", with(submission(), "title", nil), []string{"/title"}},
		{"submit_proposal", with(submission(), "priority", ""), []string{"/priority"}},
		{"submit_proposal", with(submission(), "title", strings.Repeat("x", proposal.MaxTitle+1)), []string{"/title"}},
		{"submit_proposal", with(submission(), "problem", "\x00"), []string{"/problem"}},
		{"list_proposals", object{"limit": 101}, []string{"/limit"}},
		{"list_proposals", object{"limit": 0}, []string{"/limit"}},
		{"list_proposals", object{"status": "x"}, []string{"/status"}},
		{"list_proposals", object{"page": 2}, []string{"/page"}},
		{"list_proposals", object{"cursor": "x"}, []string{"/cursor"}},
		{"vote_on_proposal", object{"id": "prop-1", "vote": "maybe"}, []string{"/vote"}},
		{"list_agents", object{"org": "globex"}, []string{"/org"}},
		{"report_friction", with(report, "fingerprint", "Not One"), []string{"/fingerprint"}},
		{"report_friction", with(report, "evidence", strings.Repeat("e", friction.MaxEvidence+1)), []string{"/evidence"}},
		{"send_task", object{"agent": "fixer"}, []string{"/message"}},
		{"send_task", object{"agent": "fixer", "message": " "}, []string{"/message"}},
		{
			"send_task",
			object{"agent": "fixer", "message": "x", "parts": []any{object{"type": "text", "text": "x"}}},
			[]string{"/parts"},
		},
		{"send_task", object{"agent": "fixer", "message": "x", "wait_seconds": 61}, []string{"/wait_seconds"}},
		{"send_task", object{"agent": "fixer", "message": "x", "wait_seconds": 9223372037}, []string{"/wait_seconds"}},
		{"send_task", object{"agent": "fixer", "message": "x", "task_id": strings.Repeat("x", task.MaxID+1)}, []string{"/task_id"}},
		{"send_task", object{"agent": "fixer", "parts": []any{object{"type": "film"}}}, []string{"/parts/0/type"}},
		{
			"send_task",
			object{"agent": "fixer", "parts": []any{object{"type": "file", "bytes": "%"}}},
			[]string{"/parts/0"},
		},
		{
			"send_task",
			object{"agent": "fixer", "parts": []any{object{"type": "file", "url": "x:y", "media_type": "\n"}}},
			[]string{"/parts/0/media_type"},
		},
		{
			"send_task",
			object{"agent": "fixer", "parts": []any{object{"type": "text", "text": "x", "x": 1}}},
			[]string{"/parts"},
		},
	} {
		f := w.fail(s, c.tool, c.args)
		if diff := cmp.Diff(c.at, f.at); diff != "" || f.Code != "request.invalid" || f.text == "" {
			t.Errorf("%s %v: code = %s, want request.invalid (-want +got): %s", c.tool, c.args, f.Code, diff)
		}
	}
	if f := w.fail(s, "submit_proposal", json.RawMessage(`{"title":"a","title":"b"}`)); f.Code != "request.malformed" {
		t.Errorf("a member twice: got %+v, want request.malformed", f)
	}
	if list := call[listOut](w, s, "list_proposals", nil); list.Total != 0 {
		t.Error("refused calls stored a proposal, want none")
	}
	if _, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "no_such_tool"}); err == nil {
		t.Error("unknown tool: err = nil, want an error")
	}
}

func TestARestrictedKeyListsItsAgentsOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	only := w.session(w.key("acme", "service:partner", identity.A2AWrite, "agent:other"))
	if a := call[agentsOut](w, only, "list_agents", nil); a.Total != 0 || len(a.Agents) != 0 {
		t.Errorf("agents = %+v, want none", a)
	}
	both := w.session(w.key("acme", "service:partner", identity.A2AWrite, "agent:other", "agent:fixer"))
	if a := call[agentsOut](w, both, "list_agents", nil); a.Total != 1 || a.Agents[0].ID != "fixer" {
		t.Errorf("agents = %+v, want fixer only", a)
	}
}

func TestToolErrorsNameTheScope(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	read := w.session(w.key("acme", "user:ada", identity.TasksRead))
	write := w.session(w.key("acme", "user:ada", identity.TasksWrite))
	service := w.session(w.member("acme", "service:ci"))
	only := w.session(w.key("acme", "user:ada", identity.A2AWrite, "agent:other"))
	report := object{"fingerprint": "f", "title": "t", "category": "process", "problem": "p"}
	for _, c := range []struct {
		s           *sdk.ClientSession
		tool        string
		args        object
		code, scope string
	}{
		{read, "submit_proposal", submission(), "auth.scope_missing", "svc:tasks:write"},
		// The scope is checked before the arguments.
		{read, "submit_proposal", object{"x": 1}, "auth.scope_missing", "svc:tasks:write"},
		{read, "vote_on_proposal", object{"id": "prop-1", "vote": "for"}, "auth.scope_missing", "svc:tasks:write"},
		{read, "withdraw_vote", object{"id": "prop-1"}, "auth.scope_missing", "svc:tasks:write"},
		{read, "report_friction", report, "auth.scope_missing", "svc:tasks:write"},
		{read, "send_task", object{"agent": "fixer", "message": "x"}, "auth.scope_missing", "svc:a2a:write"},
		{read, "get_task", object{"agent": "fixer", "task_id": "x"}, "auth.scope_missing", "svc:a2a:write"},
		{read, "cancel_task", object{"agent": "fixer", "task_id": "x"}, "auth.scope_missing", "svc:a2a:write"},
		{write, "list_proposals", nil, "auth.scope_missing", "svc:tasks:read"},
		{write, "get_proposal", object{"id": "prop-1"}, "auth.scope_missing", "svc:tasks:read"},
		{write, "list_agents", nil, "auth.scope_missing", "svc:tasks:read svc:a2a:write svc:admin:admin"},
		{service, "submit_proposal", submission(), "auth.not_a_member", ""},
		{service, "vote_on_proposal", object{"id": "prop-1", "vote": "for"}, "auth.not_a_member", ""},
		{service, "report_friction", report, "auth.not_a_member", ""},
		{only, "send_task", object{"agent": "fixer", "message": "x"}, "auth.agent_out_of_scope", "agent:fixer"},
	} {
		f := w.fail(c.s, c.tool, c.args)
		if f.Code != c.code || f.Scope != c.scope {
			t.Errorf("%s: got %+v, want %s %s", c.tool, f, c.code, c.scope)
		}
		for _, s := range strings.Fields(c.scope) {
			if !strings.Contains(f.text, s) {
				t.Errorf("%s: message = %q, want %s in it", c.tool, f.text, s)
			}
		}
	}
}

func TestTaskTools(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.orgs.Agent(agent.Agent{ID: "echo", Org: "acme", Name: "Echo"})
	w.tasks.Host(dispatch.Target{ID: "echo", Org: "acme"}, dispatch.Echo{}, dispatch.Hosting{})
	ada, bob := w.session(w.member("acme", "user:ada")), w.session(w.member("acme", "user:bob"))
	done := call[taskOut](w, ada, "send_task", object{"agent": "echo", "message": "Are you there?"})
	if done.State != "completed" || !done.Final || len(done.Artifacts) != 1 ||
		done.Artifacts[0].Parts[0].Text != "Are you there?" {
		t.Errorf("got %+v, want a completed echo", done)
	}
	got := call[taskOut](w, ada, "get_task", object{"agent": "echo", "task_id": done.TaskID})
	if diff := cmp.Diff(done, got); diff != "" {
		t.Errorf("get_task (-want +got):\n%s", diff)
	}
	parts := []any{
		object{"type": "text", "text": "x"},
		object{"type": "data", "data": object{"n": 1.0}},
		object{"type": "file", "name": "a.bin", "bytes": "AP8="},
	}
	rich := call[taskOut](w, ada, "send_task", object{"agent": "echo", "parts": parts})
	if len(rich.Artifacts) != 1 || len(rich.Artifacts[0].Parts) != 3 || rich.Artifacts[0].Parts[2].Bytes != "AP8=" {
		t.Errorf("got %+v, want an artifact with 3 parts", rich)
	}
	// The fixer has no workers: the call returns at once, and a repeat returns the same task.
	args := object{"agent": "fixer", "message": "Fix it.", "task_id": "job-1", "wait_seconds": 60}
	waiting := call[taskOut](w, ada, "send_task", args)
	again := call[taskOut](w, ada, "send_task", args)
	if waiting.State != "submitted" || waiting.Final || again.TaskID != "job-1" || cmp.Diff(waiting, again) != "" {
		t.Errorf("got %+v and %+v, want the same submitted task", waiting, again)
	}
	if f := w.fail(bob, "get_task", object{"agent": "fixer", "task_id": "job-1"}); f.Code != "resource.not_found" {
		t.Errorf("got %+v, want resource.not_found", f)
	}
	got = call[taskOut](w, ada, "cancel_task", object{"agent": "fixer", "task_id": "job-1"})
	if got.State != "canceled" {
		t.Errorf("state = %s, want canceled", got.State)
	}
	f := w.fail(ada, "cancel_task", object{"agent": "fixer", "task_id": "job-1"})
	if f.Code != task.CodeNotCancelable {
		t.Errorf("got %+v, want %s", f, task.CodeNotCancelable)
	}
	agents := call[agentsOut](w, ada, "list_agents", nil)
	if agents.Total != 2 || agents.Agents[1].ID != "fixer" || agents.Agents[1].Status != "offline" ||
		!agents.Agents[1].Reachable {
		t.Errorf("got %+v, want fixer, offline and reachable", agents)
	}
	eve := w.session(w.member("globex", "user:eve"))
	if f := w.fail(eve, "send_task", object{"agent": "fixer", "message": "x"}); f.Code != "resource.not_found" {
		t.Errorf("got %+v, want resource.not_found", f)
	}
}

// silent is an agent that never finishes.
type silent struct{}

func (silent) Run(ctx context.Context, _ dispatch.Assignment, _ *dispatch.Work) error {
	<-ctx.Done()
	return ctx.Err()
}

// A wait for a task ends when the key is no longer valid.
func TestAWaitEndsWithTheKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(h *httpx.Options, _ *Options) { h.Recheck = 10 * time.Millisecond })
	w.tasks.Host(dispatch.Target{ID: "fixer", Org: "acme"}, silent{}, dispatch.Hosting{})
	ada := w.session(w.member("acme", "user:ada"))
	start := time.Now()
	got := call[taskOut](w, ada, "send_task", object{"agent": "fixer", "message": "x", "wait_seconds": 1})
	if got.State != "working" || time.Since(start) < time.Second {
		t.Errorf("got %+v after %s, want working after a second", got, time.Since(start))
	}
	keys, err := w.operator.Keys(t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(100*time.Millisecond, func() {
		for _, k := range keys {
			if err := w.operator.RevokeKey(context.Background(), "acme", k.ID); err != nil {
				t.Error(err)
			}
		}
		if err := w.auth.Refresh(context.Background()); err != nil {
			t.Error(err)
		}
	})
	f := w.fail(ada, "send_task", object{"agent": "fixer", "message": "x", "wait_seconds": 60})
	if !strings.HasPrefix(f.Code, "auth.") {
		t.Errorf("got %+v, want an auth error", f)
	}
}

func TestFrictionTool(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada, fixer := w.session(w.member("acme", "user:ada")), w.session(w.member("acme", "agent:fixer"))
	report := object{
		"fingerprint": "registry:timeout", "title": "It times out", "category": "reliability",
		"problem": "Pulls fail.", "evidence": "504",
	}
	call[frictionOut](w, ada, "report_friction", report)
	report["occurrence"] = "run-1"
	call[frictionOut](w, ada, "report_friction", report)
	if o := call[frictionOut](w, ada, "report_friction", report); o.Counted || o.Count != 2 {
		t.Errorf("got %+v, want 2 reports and not counted", o)
	}
	o := call[frictionOut](w, fixer, "report_friction", report)
	if !o.Filed || o.ProposalID == nil {
		t.Fatalf("got %+v, want a filed proposal", o)
	}
	p := call[record](w, ada, "get_proposal", object{"id": *o.ProposalID})
	if p.SubmittedBy != "agent:fixer" || !strings.Contains(p.Problem, "504") {
		t.Errorf("got %+v, want the evidence, by agent:fixer", p)
	}
}

// A voter has one vote through both transports.
func TestOneVoteThroughBothInterfaces(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, second := w.member("acme", "user:ada"), w.member("acme", "user:ada") // two keys of one person
	s := w.session(first)
	p := call[record](w, s, "submit_proposal", submission())
	vote := func() {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
			w.url+"/api/v1/orgs/acme/proposals/"+p.ID+"/vote", strings.NewReader(`{"vote":"for"}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+second)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode/100 != 2 {
			t.Fatalf("status = %s, want 2xx", res.Status)
		}
	}
	vote()
	v := call[voteOut](w, s, "vote_on_proposal", object{"id": p.ID, "vote": "against"})
	if !v.Replaced || v.VotesFor != 0 || v.VotesAgainst != 1 {
		t.Errorf("got %+v, want the vote replaced", v)
	}
	vote()
	got := call[record](w, s, "get_proposal", object{"id": p.ID})
	if got.VotesFor != 1 || got.VotesAgainst != 0 || *got.MyVote != "for" {
		t.Errorf("got %+v, want one vote for", got)
	}
}
