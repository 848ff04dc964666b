package rest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/parley-dev/parley/internal/account"
	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/event"
	"github.com/parley-dev/parley/internal/followup"
	"github.com/parley-dev/parley/internal/friction"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/orgtest"
	"github.com/parley-dev/parley/internal/proposal"
	"github.com/parley-dev/parley/internal/store"
)

// world is a whole server on a real SQLite file, without a network.
type world struct {
	tb       testing.TB
	handler  http.Handler
	store    *store.Store
	operator *identity.Operator
	auth     *identity.Authenticator
	tasks    *dispatch.Service
	logs     *orgtest.Log
	orgs     *orgtest.World
}

var (
	newID  = orgtest.NewID
	utcNow = orgtest.Now
)

func newWorld(tb testing.TB, edit ...func(*httpx.Options, *Options)) *world {
	tb.Helper()
	o := orgtest.New(tb, func(o *dispatch.Options) { o.CheckPushURL = func(string) error { return nil } })
	w := &world{tb: tb, store: o.Store, operator: o.Operator, auth: o.Auth, tasks: o.Tasks, logs: o.Logs, orgs: o}
	o.Agent(agent.Agent{ID: "fixer", Org: "acme"})
	ho := o.Router()
	ro := Options{
		Proposals: proposal.New(o.Store.Proposals(), utcNow, newID),
		Followups: followup.New(o.Store.Followups(), o.Store.Identity(), utcNow, newID, nil), Agents: o.Agents, Catalogue: o.Catalogue,
		Tasks: o.Tasks.Tasks, Workers: o.Tasks.Workers,
		OrgAdmin:  o.OrgAdmin(),
		Clients:   o.OAuth(),
		Frictions: friction.New(o.Store.Friction(), utcNow, newID, proposal.Check),
		Accounts:  account.New(o.Store.Accounts(), o.Store.Audit(), nil, utcNow),
		Webhooks:  newWebhooks(o, acceptsAll{}),
	}
	ro.Events = event.NewService(event.Options{
		Store: o.Store.Events(), Now: utcNow, Stopping: o.Tasks.Stopping(), OnError: func(err error) { tb.Log(err) },
	})
	o.Store.OnEvents(ro.Events.Changed)
	for _, e := range edit {
		e(&ho, &ro)
	}
	rt := httpx.NewRouter(ho)
	Mount(rt, ro)
	w.handler = rt
	return w
}

// key creates a key with the scopes, and its principal if it does not exist.
func (w *world) key(org, ref string, scopes ...identity.Scope) string {
	w.tb.Helper()
	secret, _ := w.orgs.Key(org, ref, scopes...)
	return secret
}

// member returns a key with all rights of a member.
func (w *world) member(org, ref string) string {
	return w.key(org, ref, identity.TasksRead, identity.TasksWrite)
}

// admin returns a key with every scope of this API.
func (w *world) admin(org, ref string) string {
	return w.key(org, ref, identity.TasksRead, identity.TasksWrite, identity.Admin, identity.A2AWrite)
}

// answer is a response with its body.
type answer struct {
	tb     testing.TB
	Status int
	Header http.Header
	Body   string
}

// do sends a request. headers are pairs of name and value; the default Content-Type is JSON.
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

// want fails the test unless the response has the status.
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
		a.tb.Fatalf("got %v in %s, want no error", err, a.Body)
	}
}

func (a *answer) problem() httpx.Problem {
	a.tb.Helper()
	if ct := a.Header.Get("Content-Type"); ct != httpx.ProblemType {
		a.tb.Fatalf("content type %q of %s", ct, a.Body)
	}
	var p httpx.Problem
	a.into(&p)
	if p.Status != a.Status || p.Code == "" || p.RequestID == "" || p.Title == "" || p.Detail == "" ||
		p.Type != "about:blank" {
		a.tb.Fatalf("incomplete problem: got %s, want all members set and status %v", a.Body, a.Status)
	}
	return p
}

// at lists the places of the problem's errors: JSON pointers, and parameters as "in:name".
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

// submit submits a proposal and returns it.
func (w *world) submit(secret, org string) Proposal {
	w.tb.Helper()
	var p Proposal
	w.do(secret, "POST", "/api/v1/orgs/"+org+"/proposals", submission).want(http.StatusCreated).into(&p)
	return p
}
