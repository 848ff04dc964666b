package a2a

import (
	"fmt"
	"strings"
	"testing"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/relay"
)

// Callers of other orgs see what is left of an agent's quota, over every binding, and are refused
// beyond it.
func TestQuotaOfCallingOrgs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.orgs.Agent(agent.Agent{
		ID: "priced", Org: "acme", Name: "Priced", Public: true, Quota: agent.Quota{Tasks: 4, Per: agent.Day},
	})
	gil := w.key("globex", "user:gil", "svc:a2a:write")
	left := func(what string, a *answer, want int) {
		t.Helper()
		if a.Header.Get("RateLimit-Policy") != `"calls";q=4;w=86400` ||
			!strings.HasPrefix(a.Header.Get("RateLimit"), fmt.Sprintf(`"calls";r=%d;t=`, want)) {
			t.Errorf("%s: got %v, want %d left", what, a.Header, want)
		}
	}
	left("before any task", w.rpc(gil, "priced", "tasks/get", `{"id":"x"}`), 4)
	left("a task", w.rpc(gil, "priced", "tasks/send", hello("t-1")), 3)
	left("its repetition", w.rpc(gil, "priced", "tasks/send", hello("t-1")), 3)
	left("HTTP+JSON", w.do(gil, "POST", "/a2a/priced/message:send",
		`{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"a"}]},"configuration":{"returnImmediately":true}}`), 2)
	client := a2apb.NewA2AServiceClient(dial(t, w.h2c()))
	send := func() (metadata.MD, error) {
		var header metadata.MD
		_, err := client.SendMessage(as(t.Context(), gil), &a2apb.SendMessageRequest{
			Tenant:        "priced",
			Message:       &a2apb.Message{MessageId: "m", Role: a2apb.Role_ROLE_USER, Parts: []*a2apb.Part{{Content: &a2apb.Part_Text{Text: "a"}}}},
			Configuration: &a2apb.SendMessageConfiguration{ReturnImmediately: true},
		}, grpc.Header(&header))
		return header, err
	}
	header, err := send()
	if got := header.Get("ratelimit"); err != nil || len(got) != 1 || !strings.HasPrefix(got[0], `"calls";r=1;`) {
		t.Errorf("gRPC: got %v, %v, want 1 left", header, err)
	}
	w.rpc(gil, "priced", "tasks/send", hello("t-4"))
	full := w.rpc(gil, "priced", "tasks/send", hello("t-5"))
	left("beyond the quota", full, 0)
	if r := full.fails(429, codeUnsupported); !strings.Contains(string(r.Error.Data), `"quota.calls"`) ||
		full.Header.Get("Retry-After") == "" {
		t.Errorf("got %v %s, want quota.calls and Retry-After", full.Header, full.Body)
	}
	rest := w.do(gil, "POST", "/a2a/priced/message:send",
		`{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"a"}]},"configuration":{"returnImmediately":true}}`)
	if left("HTTP+JSON beyond the quota", rest, 0); rest.Status != 429 || rest.Header.Get("Retry-After") == "" {
		t.Errorf("got %d %v %s, want 429", rest.Status, rest.Header, rest.Body)
	}
	stream := w.rpc(gil, "priced", "tasks/sendSubscribe", hello("t-5"))
	left("a stream beyond the quota", stream, 0)
	stream.fails(429, codeUnsupported)
	if _, err := send(); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("gRPC beyond the quota: got %v, want RESOURCE_EXHAUSTED", err)
	}
	// A further message on a task is not a new one.
	w.rpc(gil, "priced", "tasks/send", strings.Replace(hello("t-1"), "hello", "more", 1)).state("submitted")
	// The agent's own org has no quota.
	own := w.rpc(w.caller("user:ada"), "priced", "tasks/send", hello("t-1"))
	if own.state("submitted"); own.Header.Get("RateLimit") != "" {
		t.Errorf("got %v, want no quota for the own org", own.Header)
	}
	w.do("", "GET", "/.well-known/agent.json", "").contains(`"quota":{"tasks":4,"per":"day"}`)
}

// Callers read the quota on the agent's card before they call, in every version and binding.
func TestCardsNameTheQuota(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ *httpx.Options, o *Options) { o.Platform = "p-1" })
	priced := agent.Agent{
		ID: "priced", Org: "acme", Name: "Priced", Public: true, Quota: agent.Quota{Tasks: 4, Per: agent.Day},
	}
	w.orgs.Agent(priced)
	const path = "/a2a/priced/.well-known/agent-card.json"
	const named = `{"uri":"https://parley.dev/extensions/quota/v1",` +
		`"description":"Each other org may send the agent 4 new tasks per day.","params":{"tasks":4,"per":"day"}}`
	gil := w.key("globex", "user:gil", "svc:a2a:write")
	for name, card := range map[string]*answer{
		"1.0":           w.do("", "GET", path, "", "A2A-Version", "1.0"),
		"0.3":           w.do("", "GET", path, "", "A2A-Version", "0.3"),
		"both":          w.do("", "GET", path, ""),
		"extended":      w.do(gil, "GET", "/a2a/priced/extendedAgentCard", ""),
		"extended, 0.3": w.rpc(gil, "priced", "agent/getAuthenticatedExtendedCard", "{}"),
	} {
		if !strings.Contains(card.Body, named) || !strings.Contains(card.Body, relay.Extension) {
			t.Errorf("%s: got %s, want the quota next to the platform", name, card.Body)
		}
	}
	card, err := a2apb.NewA2AServiceClient(dial(t, w.h2c())).GetExtendedAgentCard(
		as(t.Context(), gil), &a2apb.GetExtendedAgentCardRequest{Tenant: "priced"})
	if err != nil {
		t.Fatal(err)
	}
	extensions := card.GetCapabilities().GetExtensions()
	if n := len(extensions); n != 2 || extensions[1].GetParams().AsMap()["tasks"] != 4.0 {
		t.Errorf("gRPC: got %v, want a quota of 4", extensions)
	}

	// A change shows at once. Agents that other orgs cannot call, or may call at will, name none.
	for name, edit := range map[string]agent.Edit{
		"private":  {Public: new(bool)},
		"no quota": {Quota: new(agent.Quota)},
	} {
		priced.ID = strings.ReplaceAll(name, " ", "-")
		w.orgs.Agent(priced)
		w.orgs.EditAgent("acme", priced.ID, edit)
		card := w.do(w.caller("user:ada"), "GET", "/a2a/"+priced.ID+"/.well-known/agent-card.json", "").Body
		if !strings.Contains(card, relay.Extension) || strings.Contains(card, quotaExtension) {
			t.Errorf("%s: got %s, want no quota", name, card)
		}
	}
}
