package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/mcp"
)

// stranger is a key of the org globex with every right that an org can give.
func (s *Server) stranger(t *testing.T) string {
	t.Helper()
	op := identity.NewOperator(s.store.IdentityStores(), Now, newIDs(Now).next)
	if _, err := op.CreateOrg(t.Context(), "globex", ""); err != nil {
		t.Fatal(err)
	}
	p := identity.Principal{Org: "globex", Kind: identity.Service, ID: "probe"}
	if _, err := op.CreateMember(t.Context(), p, "", false); err != nil {
		t.Fatal(err)
	}
	scopes := []string{"agent:*"}
	for _, scope := range identity.AllScopes {
		scopes = append(scopes, string(scope))
	}
	_, secret, err := op.CreateKey(t.Context(), identity.KeyRequest{Principal: p, Scopes: scopes})
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

// varying is what differs between any two responses; presence changes with time.
var varying = regexp.MustCompile(`"signature":"[^"]+"|[0-9a-hjkmnp-tv-z]{26}|\d{4}-\d\d-\d\dT[\d:.]+Z|[A-Z2-7]{12}-[0-9a-z]+|` +
	`"(prefix|secret)":"[^"]*"|"status":"(available|busy|offline)"`)

// No response to another org differs between an id that only a private agent has and one
// that no agent has.
func TestPrivateAgentsAreInvisibleToOtherOrgs(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it waits for agents that never answer: 'make test' runs it")
	}
	s := running(t)
	key := s.stranger(t)
	for id, disabled := range map[string]bool{"private": false, "retired": true} {
		a := agent.Agent{ID: id, Org: "main", Name: "Private", Skills: []string{"x"}}
		if _, err := agent.NewOperator(s.agents).Create(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		body := `{"jsonrpc":"2.0","id":1,"method":"tasks/send","params":{"id":"t-1",` +
			`"message":{"role":"user","parts":[{"type":"text","text":"x"}]}}}`
		if res, answer := send(t, "POST", s.URL()+"/a2a/"+id, s.First().Secret, body, ""); res.StatusCode != 200 ||
			strings.Contains(answer, `"error"`) {
			t.Fatal(res.Status, answer)
		}
		if res, answer := send(t, "PATCH", s.URL()+"/api/v1/orgs/main/agents/"+id, s.First().Secret,
			fmt.Sprintf(`{"disabled":%t}`, disabled), ""); res.StatusCode != 200 {
			t.Fatal(res.Status, answer)
		}
	}

	type probe struct {
		name string
		ask  func(id string) string
	}
	var probes []probe
	over := func(key, method, path, body string) {
		probes = append(probes, probe{fmt.Sprintf("%s %s %.60s", method, path, body), func(id string) string {
			res, answer := send(t, method, s.URL()+strings.ReplaceAll(path, "ID", id), key,
				strings.ReplaceAll(body, "ID", id), "")
			return fmt.Sprintln(res.StatusCode, res.Header.Get("Content-Type"), res.Header.Get("Location"), answer)
		}})
	}
	rpc := func(method, params string) {
		over(key, "POST", "/a2a/ID", `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`+params+`}`)
	}
	session := s.tools(t, key)
	tool := func(name string, args map[string]any) {
		probes = append(probes, probe{name, func(id string) string {
			args["agent"] = id
			res, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: args})
			text, _ := json.Marshal(res)
			return fmt.Sprintln(err, string(text))
		}})
	}
	_, addr, _ := strings.Cut(s.URL(), "://")
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	proto, bearing := a2apb.NewA2AServiceClient(conn),
		metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+key)
	everywhere := func() {
		for _, key := range []string{"", key} {
			over(key, "GET", "/a2a/ID", "")
			over(key, "GET", "/a2a/ID/.well-known/agent-card.json", "")
			over(key, "GET", "/.well-known/agent.json", "")
			over(key, "GET", "/.well-known/agent.json?after=ID", "")
		}
		message := `"message":{"role":"user","parts":[{"type":"text","text":"x"}]}`
		rpc("tasks/get", `{"id":"t-1"}`)
		rpc("tasks/send", `{"id":"t-2",`+message+`}`)
		rpc("tasks/cancel", `{"id":"t-1"}`)
		rpc("tasks/resubscribe", `{"id":"t-1"}`)
		rpc("ListTasks", `{}`)
		rpc("message/send", `{`+message+`}`)
		rpc("agent/getAuthenticatedExtendedCard", `{}`)
		rpc("tasks/pushNotificationConfig/list", `{"id":"t-1"}`)
		over(key, "GET", "/a2a/ID/v1/tasks/t-1", "")
		over(key, "POST", "/api/v1/agents/ID/claim", `{"worker":"w","lease_seconds":3600}`)
		over(key, "POST", "/api/v1/agents/ID/leases/lease-x-y", `{}`)
		over(key, "GET", "/api/v1/orgs/globex/agents", "")
		over(key, "GET", "/api/v1/orgs/globex/agents/ID", "")
		over(key, "GET", "/api/v1/orgs/main/agents/ID", "")
		over(key, "GET", "/api/v1/orgs/globex/a2a/tasks?agent=ID", "")
		over(key, "POST", "/api/v1/orgs/globex/keys", `{"principal":"service:probe","scopes":["svc:a2a:write","agent:ID"]}`)
		over(key, "POST", "/api/v1/orgs/globex/clients",
			`{"name":"C","redirect_uris":["http://127.0.0.1/cb"],"scopes":["agent:ID"]}`)
		over(key, "POST", "/api/v1/orgs/globex/followups", `{"title":"T","assignee":"agent:ID"}`)
		tool("send_task", map[string]any{"message": "x", "wait_seconds": 0})
		tool("get_task", map[string]any{"task_id": "t-1"})
		tool("cancel_task", map[string]any{"task_id": "t-1"})
		probes = append(probes, probe{"gRPC", func(id string) string {
			_, sent := proto.SendMessage(bearing, &a2apb.SendMessageRequest{Tenant: id, Message: &a2apb.Message{
				MessageId: "m-1", Role: a2apb.Role_ROLE_USER, Parts: []*a2apb.Part{{Content: &a2apb.Part_Text{Text: "hello"}}},
			}})
			_, got := proto.GetTask(bearing, &a2apb.GetTaskRequest{Tenant: id, Id: "t-1"})
			return fmt.Sprintln(status.Convert(sent).Proto(), status.Convert(got).Proto())
		}})
	}
	everywhere()
	over(key, "PATCH", "/api/v1/orgs/globex/agents/ID", `{"public":true}`)
	over(key, "POST", "/api/v1/orgs/globex/agents", `{"id":"ID","name":"N"}`)
	over(key, "POST", "/api/v1/orgs/globex/agents", `{"id":"ID","name":"N"}`)
	everywhere()
	over(key, "PATCH", "/api/v1/orgs/globex/agents/ID", `{"public":true}`)
	everywhere()
	over(key, "PATCH", "/api/v1/orgs/globex/agents/ID", `{"public":false,"disabled":true}`)
	everywhere()

	compare := func(probes []probe, ids ...string) {
		for i, p := range probes {
			var first string
			for n, id := range ids {
				// What the probe of one id changed must not show in that of another.
				got := p.ask(id)
				for _, known := range ids {
					got = strings.ReplaceAll(got, known, "ID")
				}
				if got = varying.ReplaceAllString(got, "_"); n == 0 {
					first = got
				} else if got != first {
					t.Errorf("probe %d, %s: an id that nobody has differs from %s:\n%s", i, p.name, id, cmp.Diff(first, got))
				}
			}
		}
	}
	lists := regexp.MustCompile(`agents \z|well-known/agent\.json`)
	var single []probe
	for _, p := range probes {
		if !lists.MatchString(p.name) { // these show the other ids, too
			single = append(single, p)
		}
	}
	compare(single, "neither", "private", "retired")

	// Created as public ones at once.
	for _, id := range []string{"privat2", "neithe2"} {
		if id == "privat2" {
			if _, err := agent.NewOperator(s.agents).Create(t.Context(),
				agent.Agent{ID: id, Org: "main", Name: "Private"}); err != nil {
				t.Fatal(err)
			}
		}
		if res, body := send(t, "POST", s.URL()+"/api/v1/orgs/globex/agents", key, `{"id":"`+id+`","name":"N","public":true}`,
			""); res.StatusCode != http.StatusCreated {
			t.Error(res.Status, body)
		}
	}
	// No list of another org has the private ones, whatever it has of its own.
	for _, path := range []string{"/.well-known/agent.json", "/api/v1/orgs/globex/agents"} {
		if _, body := send(t, "GET", s.URL()+path, key, "", ""); strings.Contains(body, "Private") {
			t.Errorf("%s shows a private agent: %s", path, body)
		}
	}
}

// tools connects to the tools.
func (s *Server) tools(t *testing.T, key string) *sdk.ClientSession {
	t.Helper()
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{
		Endpoint: s.URL() + mcp.Path, HTTPClient: &http.Client{Transport: withKey(key)}, MaxRetries: -1,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session
}

type withKey string

func (k withKey) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(k))
	return http.DefaultTransport.RoundTrip(r)
}

// A follow-up is never sent to another org, even if the org's own assignee is no
// registered agent and a public agent elsewhere has its id.
func TestFollowUpsStayInTheirOrg(t *testing.T) {
	t.Parallel()
	s := running(t)
	key := s.stranger(t)
	if _, err := agent.NewOperator(s.agents).Create(t.Context(),
		agent.Agent{ID: "ghost", Org: "globex", Name: "Ghost", Public: true}); err != nil {
		t.Fatal(err)
	}
	op := identity.NewOperator(s.store.IdentityStores(), Now, newIDs(Now).next)
	if _, err := op.CreateMember(t.Context(), identity.Principal{Org: "main", Kind: identity.Agent, ID: "ghost"}, "",
		false); err != nil {
		t.Fatal(err)
	}
	if res, body := send(t, "POST", s.URL()+"/api/v1/orgs/main/followups", s.First().Secret,
		`{"title":"Secret","assignee":"agent:ghost"}`, ""); res.StatusCode != 404 {
		t.Error(res.Status, body)
	}
	if _, body := send(t, "GET", s.URL()+"/api/v1/orgs/globex/a2a/tasks", key, "", ""); !strings.Contains(body, `"tasks":[]`) {
		t.Error(body)
	}
}
