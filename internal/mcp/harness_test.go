package mcp

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/event"
	"github.com/parley-dev/parley/internal/followup"
	"github.com/parley-dev/parley/internal/friction"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/orgtest"
	"github.com/parley-dev/parley/internal/proposal"
	"github.com/parley-dev/parley/internal/rest"
	"github.com/parley-dev/parley/internal/store"
)

// world is a server with both transports on a real SQLite file and a real port.
type world struct {
	*testing.T
	url      string
	store    *store.Store
	auth     *identity.Authenticator
	operator *identity.Operator
	tasks    *dispatch.Service
	logs     *orgtest.Log
	orgs     *orgtest.World
}

var (
	newID  = orgtest.NewID
	utcNow = orgtest.Now
)

func newWorld(t *testing.T, edit ...func(*httpx.Options, *Options)) *world {
	t.Helper()
	w := orgtest.New(t)
	w.Agent(agent.Agent{ID: "fixer", Org: "acme", Name: "Fixer", Skills: []string{"fixing"}})
	ho := w.Router()
	o := Options{
		Proposals: proposal.New(w.Store.Proposals(), utcNow, newID),
		Frictions: friction.New(w.Store.Friction(), utcNow, newID, proposal.Check),
		Agents:    w.Agents, Catalogue: w.Catalogue, Tasks: w.Tasks.Tasks, Workers: w.Tasks.Workers,
		Events: event.NewService(event.Options{
			Store: w.Store.Events(), Now: utcNow, Stopping: make(chan struct{}), OnError: func(err error) { t.Error(err) },
		}),
	}
	for _, e := range edit {
		e(&ho, &o)
	}
	rt := httpx.NewRouter(ho)
	Mount(rt, o)
	rest.Mount(rt, rest.Options{
		Proposals: o.Proposals, Followups: followup.New(w.Store.Followups(), w.Store.Identity(), utcNow, newID, nil),
		Frictions: o.Frictions, Agents: w.Agents, Catalogue: w.Catalogue, Tasks: w.Tasks.Tasks, Workers: w.Tasks.Workers,
	})
	srv := httptest.NewServer(rt)
	t.Cleanup(srv.Close)
	return &world{
		T: t, url: srv.URL, store: w.Store, auth: w.Auth, operator: w.Operator, tasks: w.Tasks, logs: w.Logs, orgs: w,
	}
}

// key makes the principal if necessary, and a key with the scopes.
func (w *world) key(org, ref string, scopes ...identity.Scope) string {
	w.Helper()
	secret, _ := w.orgs.Key(org, ref, scopes...)
	return secret
}

func (w *world) member(org, ref string) string {
	return w.key(org, ref, identity.TasksRead, identity.TasksWrite, identity.A2AWrite)
}

// session connects the SDK's client.
func (w *world) session(key string) *sdk.ClientSession {
	w.Helper()
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	s, err := client.Connect(w.Context(), &sdk.StreamableClientTransport{
		Endpoint: w.url + Path, MaxRetries: -1,
		HTTPClient: &http.Client{Transport: remoteClient(w, w.url, key).Transport()},
	}, nil)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = s.Close() })
	return s
}

// call calls a tool that must succeed, and decodes its structured content.
func call[Out any](w *world, s *sdk.ClientSession, name string, args any) (out Out) {
	w.Helper()
	res, err := s.CallTool(w.Context(), &sdk.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		w.Fatalf("%s: err = %v, want nil", name, err)
	}
	if res.IsError {
		w.Fatalf("%s: got the tool error %s, want a result", name, texts(res))
	}
	raw, err := json.Marshal(res.StructuredContent)
	if err != nil {
		w.Fatal(err)
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		w.Fatalf("%s: %v in %s", name, err, raw)
	}
	var a, b any
	if json.Unmarshal(raw, &a) != nil || json.Unmarshal([]byte(texts(res)), &b) != nil {
		w.Errorf("%s: text = %q, want the structured content", name, texts(res))
	}
	return out
}

// failure is the content of a tool error.
type failure struct {
	text  string
	Code  string
	Scope string
	Errors,
	Allowed []any
	RequestID string `json:"request_id"`
	at        []string
}

// fail calls a tool that must fail with a tool error.
func (w *world) fail(s *sdk.ClientSession, name string, args any) (f failure) {
	w.Helper()
	res, err := s.CallTool(w.Context(), &sdk.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		w.Fatalf("%s: err = %v, want nil", name, err)
	}
	if !res.IsError || len(res.Content) != 2 || res.StructuredContent != nil {
		w.Fatalf("%s: got %s, want a tool error", name, texts(res))
	}
	f.text = res.Content[0].(*sdk.TextContent).Text
	if err := json.Unmarshal([]byte(res.Content[1].(*sdk.TextContent).Text), &f); err != nil {
		w.Fatal(err)
	}
	for _, e := range f.Errors {
		p, _ := e.(map[string]any)["pointer"].(string)
		f.at = append(f.at, p)
	}
	return f
}

func texts(res *sdk.CallToolResult) string {
	var b strings.Builder
	for _, c := range res.Content {
		if t, ok := c.(*sdk.TextContent); ok {
			b.WriteString(t.Text)
		}
	}
	return b.String()
}
