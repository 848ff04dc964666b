package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/followup"
	"github.com/parley-dev/parley/internal/friction"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/oauth"
	"github.com/parley-dev/parley/internal/proposal"
	"github.com/parley-dev/parley/internal/store"
	"github.com/parley-dev/parley/internal/task"
)

// world is a whole server on a real SQLite file, without a network.
type world struct {
	tb      testing.TB
	handler http.Handler
	store   *store.Store
	admins  *identity.Admins
	auth    *identity.Authenticator
	agents  *agent.Registry
	tasks   *task.Tasks
	logs    *bytes.Buffer
}

// directory shows the registry to the task service.
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

func newWorld(tb testing.TB, edit ...func(*httpx.Options, *Options)) *world {
	tb.Helper()
	ctx := context.Background()
	st, err := store.Open(ctx, store.Options{Dir: tb.TempDir()})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = st.Close() })
	w := &world{
		tb: tb, store: st, admins: identity.NewAdmins(st, utcNow, newID), auth: identity.NewAuthenticator(st, utcNow),
		logs: &bytes.Buffer{},
	}
	w.agents = agent.NewRegistry(st, utcNow)
	w.tasks = task.New(task.Options{Store: st, Directory: directory{w.agents}, Now: utcNow, NewID: newID, Node: "node-1"})
	ho := httpx.Options{Authenticator: w.auth, Logger: slog.New(slog.NewTextHandler(w.logs, nil))}
	ro := Options{Proposals: proposal.New(st, utcNow, newID), Followups: followup.New(st, utcNow, newID, nil), Agents: w.agents, Tasks: w.tasks, Manager: identity.NewManager(st, w.agents, utcNow, newID)}
	ro.Clients = oauth.New(st, w.agents, utcNow, newID, oauth.Lifetimes{})
	ro.Frictions = friction.New(st, utcNow, newID, proposal.Check)
	for _, e := range edit {
		e(&ho, &ro)
	}
	rt := httpx.NewRouter(ho)
	Mount(rt, ro)
	w.handler = rt
	for _, org := range []string{"acme", "globex"} {
		if _, err := w.admins.CreateOrg(ctx, org, ""); err != nil {
			tb.Fatal(err)
		}
	}
	if _, err := w.agents.Create(ctx, agent.Agent{ID: "fixer", Org: "acme"}); err != nil {
		tb.Fatal(err)
	}
	return w
}

// key makes the principal if need be, and a key with the scopes.
func (w *world) key(org, ref string, scopes ...identity.Scope) string {
	w.tb.Helper()
	ctx := context.Background()
	p, err := identity.ParseRef(org, ref)
	if err != nil {
		w.tb.Fatal(err)
	}
	if _, err := w.store.Member(ctx, p); err != nil {
		if _, err := w.admins.CreateMember(ctx, p, "", false); err != nil {
			w.tb.Fatal(err)
		}
	}
	names := make([]string, len(scopes))
	for i, s := range scopes {
		names[i] = string(s)
	}
	_, secret, err := w.admins.CreateKey(ctx, identity.KeyRequest{Principal: p, Scopes: names})
	if err != nil {
		w.tb.Fatal(err)
	}
	return secret
}

// member is a key that may do everything a member may.
func (w *world) member(org, ref string) string {
	return w.key(org, ref, identity.TasksRead, identity.TasksWrite)
}

// admin is a key with every scope of this API.
func (w *world) admin(org, ref string) string {
	return w.key(org, ref, identity.TasksRead, identity.TasksWrite, identity.Admin, identity.A2AWrite)
}

// answer is a response with its body read.
type answer struct {
	tb     testing.TB
	Status int
	Header http.Header
	Body   string
}

// do sends a request, its body as JSON unless a Content-Type is among the headers,
// which are given as name, value pairs.
func (w *world) do(secret, method, target, body string, headers ...string) *answer {
	w.tb.Helper()
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	r := httptest.NewRequest(method, target, reader)
	if secret != "" {
		r.Header.Set("Authorization", "Bearer "+secret)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		switch {
		case headers[i] != "Content-Type":
			r.Header.Add(headers[i], headers[i+1])
		case headers[i+1] == "":
			r.Header.Del("Content-Type")
		default:
			r.Header.Set("Content-Type", headers[i+1])
		}
	}
	rec := httptest.NewRecorder()
	w.handler.ServeHTTP(rec, r)
	return &answer{tb: w.tb, Status: rec.Code, Header: rec.Result().Header, Body: rec.Body.String()}
}

// want fails the test unless the status is the one given.
func (a *answer) want(status int) *answer {
	a.tb.Helper()
	if a.Status != status {
		a.tb.Fatalf("status %d, want %d: %s", a.Status, status, a.Body)
	}
	return a
}

// into decodes the body.
func (a *answer) into(v any) {
	a.tb.Helper()
	if err := json.Unmarshal([]byte(a.Body), v); err != nil {
		a.tb.Fatalf("%v in %s", err, a.Body)
	}
}

func (a *answer) problem() httpx.Problem {
	a.tb.Helper()
	if ct := a.Header.Get("Content-Type"); ct != httpx.ProblemType {
		a.tb.Fatalf("content type %q of %s", ct, a.Body)
	}
	var p httpx.Problem
	a.into(&p)
	if p.Status != a.Status || p.Code == "" || p.RequestID == "" || p.Title == "" || p.Detail == "" || p.Type != "about:blank" {
		a.tb.Fatalf("incomplete problem: %s", a.Body)
	}
	return p
}

// at lists where the problem's errors are: pointers as they are, parameters as "in:name".
func at(p httpx.Problem) []string {
	out := []string{}
	for _, e := range p.Errors {
		if e.Pointer != nil {
			out = append(out, *e.Pointer)
			continue
		}
		out = append(out, string(e.In)+":"+e.Parameter)
	}
	return out
}

const submission = `{"title":"Retry webhooks","category":"reliability","problem":"They get lost.","suggested_fix":"Retry."}`

// submit files a proposal and returns its record.
func (w *world) submit(secret, org string) Proposal {
	w.tb.Helper()
	var p Proposal
	w.do(secret, "POST", "/api/v1/orgs/"+org+"/proposals", submission).want(http.StatusCreated).into(&p)
	return p
}
