package a2a

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/chain"
	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/task"
)

// chained returns the params of a send with metadata.
func chained(id, metadata string) string {
	return `{"id":"` + id + `","message":{"parts":[{"type":"text","text":"do"}]},"metadata":` + metadata + `}`
}

// chainOf returns the chain of a task that was sent.
func (a *answer) chainOf() chain.Chain {
	a.tb.Helper()
	a.state("submitted")
	var r struct {
		Result struct{ Metadata json.RawMessage }
	}
	if err := json.Unmarshal([]byte(a.Body), &r); err != nil {
		a.tb.Fatal(err)
	}
	if strings.Contains(string(r.Result.Metadata), chain.ParentKey) {
		a.tb.Errorf("the metadata has the parent, which may be a lease: %s", r.Result.Metadata)
	}
	c, err := chain.Parse(r.Result.Metadata)
	if err != nil {
		a.tb.Fatal(err)
	}
	return c
}

// working sends a task to an agent with a chain, and returns it when its worker has it.
func (w *world) working(agent, id, metadata string) (uid, lease string) {
	w.tb.Helper()
	w.rpc(w.caller("user:ada"), agent, "tasks/send", chained(id, metadata)).state("submitted")
	p := w.post(agent)
	lease = w.claim(p)
	rest := strings.TrimPrefix(lease, "lease-")
	uid, _, _ = strings.Cut(rest, "-")
	return uid, lease
}

func TestCallsOfAgentsAreChained(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bot := w.key("acme", "agent:bot", "svc:a2a:write", "svc:a2a:serve")
	uid, lease := w.working("bot", "t-1", `{"x":1}`)
	want := chain.Chain{Depth: 1, Agents: []string{"bot"}}
	for name, got := range map[string]*answer{
		"uid":    w.rpc(bot, "other", "tasks/send", chained("c-1", `{"parley.dev/parent":"`+uid+`"}`)),
		"lease":  w.rpc(bot, "other", "tasks/send", chained("c-2", `{"parley.dev/parent":"`+lease+`"}`)),
		"header": w.rpc(bot, "other", "tasks/send", hello("c-3"), "Parley-Parent-Task", uid),
	} {
		if diff := cmp.Diff(want, got.chainOf()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	rest := w.do(bot, "POST", "/a2a/other/message:send",
		`{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"a"}]},"configuration":{"returnImmediately":true}}`,
		"Parley-Parent-Task", uid, "A2A-Version", "1.0")
	if rest.Status != 200 || !strings.Contains(rest.Body, `"parley.dev/chain":{"depth":1,"agents":["bot"]}`) {
		t.Errorf("HTTP+JSON: %d %s", rest.Status, rest.Body)
	}
	// The worker of the next agent sees the chain.
	got, err := w.tasks.Claim(t.Context(), w.post("other"), dispatch.ClaimRequest{Worker: "w", Max: 1, Lease: 60e9, Capacity: 1})
	if err != nil || len(got.Assignments) != 1 || !strings.Contains(string(got.Assignments[0].Task.Metadata), chain.Key) {
		t.Errorf("claimed %+v, %v, want a task with a chain", got.Assignments, err)
	}
	// A finished task may still be the parent: results are often passed on after the report.
	w.report(w.post("bot"), lease, task.Report{State: task.Completed})
	w.rpc(bot, "other", "tasks/send", hello("c-4"), "Parley-Parent-Task", lease).chainOf()
	// The parent of a task that exists is not looked at.
	w.rpc(bot, "other", "tasks/send", hello("c-4"), "Parley-Parent-Task", "unknown").state("submitted")
}

func TestChainsAreNeverShortened(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bot := w.key("acme", "agent:bot", "svc:a2a:write", "svc:a2a:serve")
	uid, _ := w.working("bot", "t-1", `{"parley.dev/chain":{"depth":5,"agents":["a"],"via":["p-9"]}}`)
	got := w.rpc(bot, "other", "tasks/send", chained("c-1",
		`{"parley.dev/parent":"`+uid+`","parley.dev/chain":{"depth":0}}`)).chainOf()
	if diff := cmp.Diff(chain.Chain{Depth: 6, Agents: []string{"a", "bot"}}, got); diff != "" {
		t.Errorf("a lying chain (-want +got):\n%s", diff)
	}
	got = w.rpc(bot, "other", "tasks/send", chained("c-2",
		`{"parley.dev/parent":"`+uid+`","parley.dev/chain":{"depth":7,"agents":["z"]}}`)).chainOf()
	if diff := cmp.Diff(chain.Chain{Depth: 7, Agents: []string{"z"}}, got); diff != "" {
		t.Errorf("a deeper chain (-want +got):\n%s", diff)
	}
}

// A parent is a claim that the caller must be able to prove with its key.
func TestOnlyTheWorkersOfAnAgentCallForItsTasks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.orgs.Agent(agent.Agent{ID: "spy", Org: "globex", Name: "Spy"})
	uid, lease := w.working("bot", "t-1", `{}`)
	for name, c := range map[string]struct{ secret, parent string }{
		"another agent":                  {w.key("acme", "agent:other", "svc:a2a:write", "svc:a2a:serve"), uid},
		"an agent of another org":        {w.key("globex", "agent:spy", "svc:a2a:write", "svc:a2a:serve"), lease},
		"the sender of the task":         {w.caller("user:ada"), uid},
		"its own agent that cannot work": {w.key("acme", "agent:bot", "svc:a2a:write"), uid},
		"an unknown task":                {w.key("acme", "agent:bot", "svc:a2a:write", "svc:a2a:serve"), "nope"},
		"control characters":             {w.key("acme", "agent:bot", "svc:a2a:write", "svc:a2a:serve"), `\u0007`},
	} {
		params := chained("c-1", `{"parley.dev/parent":"`+c.parent+`"}`)
		w.rpc(c.secret, "echo", "tasks/send", params).fails(200, codeInvalidParams)
		if got := w.rpc(c.secret, "echo", "tasks/get", `{"id":"c-1"}`); !strings.Contains(got.Body, "-32001") {
			t.Errorf("%s: the task was sent: %s", name, got.Body)
		}
	}
	for _, metadata := range []string{`{"parley.dev/parent":7}`, `{"parley.dev/chain":[]}`, `{"parley.dev/chain":{"depth":-1}}`} {
		w.rpc(w.caller("user:ada"), "echo", "tasks/send", chained("c-1", metadata)).fails(200, codeInvalidParams)
	}
}

func TestChainsEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.caller("user:ada")
	for depth, refused := range map[int]bool{0: false, chain.DefaultDepth: false, chain.DefaultDepth + 1: true, 1 << 30: true} {
		id := fmt.Sprint("t-", depth)
		got := w.rpc(ada, "bot", "tasks/send", chained(id, fmt.Sprintf(`{"parley.dev/chain":{"depth":%d}}`, depth)))
		if !refused {
			got.state("submitted")
			continue
		}
		if r := got.fails(200, codeUnsupported); !strings.Contains(string(r.Error.Data), `"chain.too_deep"`) {
			t.Errorf("depth %d: got %s, want chain.too_deep", depth, got.Body)
		}
	}
	v1 := w.rpc(ada, "bot", "SendMessage", `{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"a"}]},
		"metadata":{"parley.dev/chain":{"depth":99}}}`)
	v1.fails(200, codeUnsupported)
	v1.contains(`"code":"chain.too_deep"`)
}

// The agents of an org that are not public must not become known by the chain of a task.
func TestChainsDoNotNamePrivateAgentsToOtherOrgs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.orgs.Agent(agent.Agent{ID: "front", Org: "globex", Name: "Front", Public: true})
	bot := w.key("acme", "agent:bot", "svc:a2a:write", "svc:a2a:serve")
	uid, _ := w.working("bot", "t-1", `{"parley.dev/chain":{"depth":3,"agents":["echo","other","front"]}}`)
	got := w.rpc(bot, "front", "tasks/send", hello("c-1"), "Parley-Parent-Task", uid).chainOf()
	if diff := cmp.Diff(chain.Chain{Depth: 4, Agents: []string{"echo", "private", "front", "private"}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
