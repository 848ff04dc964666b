package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/oklog/ulid/v2"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/followup"
	"github.com/parley-dev/parley/internal/friction"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
	"github.com/parley-dev/parley/internal/rest"
	"github.com/parley-dev/parley/internal/store"
	"github.com/parley-dev/parley/internal/task"
)

// world is a server with both interfaces on a real SQLite file and a real port.
type world struct {
	*testing.T
	url    string
	store  *store.Store
	auth   *identity.Authenticator
	admins *identity.Admins
	agents *agent.Registry
	tasks  *task.Tasks
	logs   *bytes.Buffer
}

type directory struct{ agents *agent.Registry }

func (d directory) Target(ctx context.Context, id string) (task.Target, error) {
	a, err := d.agents.Find(ctx, id)
	if err == nil && a.Disabled {
		err = errs.ErrNotFound
	}
	return task.Target{ID: a.ID, Org: a.Org, Public: a.Public}, err
}

func newID(prefix string) string { return prefix + strings.ToLower(ulid.Make().String()) }

func utcNow() time.Time { return time.Now().UTC() }

func newWorld(t *testing.T, edit ...func(*httpx.Options, *Options)) *world {
	t.Helper()
	st, err := store.Open(t.Context(), store.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	w := &world{T: t, store: st, admins: identity.NewAdmins(st, utcNow, newID), agents: agent.NewRegistry(st, utcNow), logs: &bytes.Buffer{}}
	w.tasks = task.New(task.Options{Store: st, Directory: directory{w.agents}, Now: utcNow, NewID: newID, Node: "node-1"})
	t.Cleanup(w.tasks.Stop)
	w.auth = identity.NewAuthenticator(st, utcNow)
	ho := httpx.Options{Authenticator: w.auth, Logger: slog.New(slog.NewTextHandler(w.logs, nil))}
	o := Options{
		Proposals: proposal.New(st, utcNow, newID), Frictions: friction.New(st, utcNow, newID, proposal.Check), Agents: w.agents, Tasks: w.tasks,
	}
	for _, e := range edit {
		e(&ho, &o)
	}
	rt := httpx.NewRouter(ho)
	Mount(rt, o)
	rest.Mount(rt, rest.Options{Proposals: o.Proposals, Followups: followup.New(st, utcNow, newID, nil), Frictions: o.Frictions, Agents: w.agents, Tasks: w.tasks})
	srv := httptest.NewServer(rt)
	t.Cleanup(srv.Close)
	w.url = srv.URL
	for _, org := range []string{"acme", "globex"} {
		if _, err := w.admins.CreateOrg(t.Context(), org, ""); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.agents.Create(t.Context(), agent.Agent{ID: "fixer", Org: "acme", Name: "Fixer", Skills: []string{"fixing"}}); err != nil {
		t.Fatal(err)
	}
	return w
}

// key makes the principal if need be, and a key with the scopes.
func (w *world) key(org, ref string, scopes ...identity.Scope) string {
	w.Helper()
	p, err := identity.ParseRef(org, ref)
	if err != nil {
		w.Fatal(err)
	}
	if _, err := w.store.Member(w.Context(), p); err != nil {
		if _, err := w.admins.CreateMember(w.Context(), p, "", false); err != nil {
			w.Fatal(err)
		}
	}
	names := make([]string, len(scopes))
	for i, s := range scopes {
		names[i] = string(s)
	}
	_, secret, err := w.admins.CreateKey(w.Context(), identity.KeyRequest{Principal: p, Scopes: names})
	if err != nil {
		w.Fatal(err)
	}
	return secret
}

func (w *world) member(org, ref string) string {
	return w.key(org, ref, identity.TasksRead, identity.TasksWrite, identity.A2AWrite)
}

// session connects the SDK's own client.
func (w *world) session(key string) *sdk.ClientSession {
	w.Helper()
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	s, err := client.Connect(w.Context(), &sdk.StreamableClientTransport{
		Endpoint: w.url + Path, HTTPClient: &http.Client{Transport: &bearer{key: key, base: http.DefaultTransport}}, MaxRetries: -1,
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
		w.Fatalf("%s: %v", name, err)
	}
	if res.IsError {
		w.Fatalf("%s: %s", name, texts(res))
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
		w.Errorf("%s: the text %q is not the structured content", name, texts(res))
	}
	return out
}

// failure is what a tool error says.
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
		w.Fatalf("%s: %v", name, err)
	}
	if !res.IsError || len(res.Content) != 2 || res.StructuredContent != nil {
		w.Fatalf("%s: no tool error: %s", name, texts(res))
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
