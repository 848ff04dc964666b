package web_test

import (
	"context"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/account"
	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/followup"
	"github.com/parley-dev/parley/internal/friction"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/orgtest"
	"github.com/parley-dev/parley/internal/proposal"
	"github.com/parley-dev/parley/internal/store"
	"github.com/parley-dev/parley/internal/task"
	"github.com/parley-dev/parley/internal/web"
)

// room is a dashboard with all services: ada is an admin of acme, bob and cat are members,
// scout and herald are agents.
type room struct {
	*testing.T
	handler   http.Handler
	world     *orgtest.World
	proposals *proposal.Proposals
	followups *followup.Followups
	frictions *friction.Frictions
	busy      atomic.Bool // the search is

	ada, bob, cat *person
}

// person is somebody who is signed in with a browser.
type person struct {
	room   *room
	ref    string
	admin  bool
	cookie *http.Cookie
}

func newRoom(t *testing.T) *room {
	t.Helper()
	w := orgtest.New(t)
	r := &room{T: t, world: w}
	for _, id := range []string{"scout", "herald"} {
		w.Agent(agent.Agent{ID: id, Org: "acme", Name: id})
	}
	r.proposals = proposal.New(searchStore{w.Store, &r.busy}, orgtest.Now, orgtest.NewID)
	r.followups = followup.New(w.Store, orgtest.Now, orgtest.NewID, messenger{w.Tasks})
	r.frictions = friction.New(w.Store, orgtest.Now, orgtest.NewID, proposal.Check)
	o := w.Router()
	o.RateLimit = 0
	router := httpx.NewRouter(o)
	accounts := account.New(w.Store, &counter{}, orgtest.Now)
	pages, err := web.New(router, web.Options{
		Accounts: accounts, Manager: identity.NewManager(w.Store, w.Agents, orgtest.Now, orgtest.NewID),
		Proposals: r.proposals, Followups: r.followups, Frictions: r.frictions, Agents: w.Agents, Tasks: w.Tasks,
		Sessions: w.Store, PublicURL: "http://parley.test", Logger: o.Logger, Now: orgtest.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	pages.Mount()
	r.handler = router
	r.ada, r.bob, r.cat = r.signIn(accounts, "ada", true), r.signIn(accounts, "bob", false), r.signIn(accounts, "cat", false)
	return r
}

// signIn adds a member and signs it in.
func (r *room) signIn(accounts *account.Accounts, id string, admin bool) *person {
	r.Helper()
	p := identity.Principal{Org: "acme", Kind: identity.User, ID: id}
	if _, err := r.world.Admins.CreateMember(r.Context(), p, "", admin); err != nil {
		r.Fatal(err)
	}
	if _, err := accounts.SetPassword(r.Context(), p, rightPassword); err != nil {
		r.Fatal(err)
	}
	form := url.Values{"org": {"acme"}, "user": {id}, "password": {rightPassword}}
	req := httptest.NewRequest(http.MethodPost, "/login", strings.NewReader(form.Encode()))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	rec := httptest.NewRecorder()
	r.handler.ServeHTTP(rec, req)
	if rec.Code != http.StatusSeeOther {
		r.Fatal("sign-in:", rec.Code, rec.Body)
	}
	return &person{room: r, ref: p.Ref(), admin: admin, cookie: rec.Result().Cookies()[0]}
}

// searchStore is a store whose search can be busy.
type searchStore struct {
	*store.Store
	busy *atomic.Bool
}

func (s searchStore) Similar(ctx context.Context, like proposal.Likeness) ([]proposal.Proposal, error) {
	if s.busy.Load() {
		return nil, errs.New(errs.Unavailable, "search.busy", "too many searches are running")
	}
	return s.Store.Similar(ctx, like)
}

// messenger sends follow-ups to agents as the server does.
type messenger struct{ tasks *task.Tasks }

func (e messenger) Send(ctx context.Context, a identity.Access, id string, f followup.Followup) error {
	call, err := e.tasks.Reach(ctx, a.Caller(), id)
	if err != nil {
		return err
	}
	_, err = e.tasks.Send(ctx, call, task.SendRequest{
		ID: orgtest.NewID(f.ID + "-"), FollowupID: f.ID,
		Message: task.Message{Role: task.RoleUser, Parts: []task.Part{{Kind: task.TextPart, Text: f.Title}}},
	}, 0)
	return err
}

func (e messenger) Recall(ctx context.Context, org, uid string) error {
	return e.tasks.Recall(ctx, org, uid)
}

// access is the right of a member, as its session or its key has it.
func (r *room) access(ref string, action identity.Action, scopes ...identity.Scope) identity.Access {
	r.Helper()
	p, err := identity.ParseRef("acme", ref)
	if err != nil {
		r.Fatal(err)
	}
	have := append(identity.Scopes{identity.TasksRead, identity.TasksWrite, identity.A2AWrite}, scopes...)
	a, err := identity.Authorize(&identity.Caller{Principal: p, KeyID: "k", Scopes: have}, "acme", action)
	if err != nil {
		r.Fatal(err)
	}
	return a
}

// submit files a proposal of bob's.
func (r *room) submit(edit ...func(*proposal.Submission)) proposal.Proposal {
	r.Helper()
	cmd := proposal.Submission{
		Title: "Retry the deploy step", Category: proposal.Reliability, Problem: "It fails when the registry is busy.\n\nOften.",
		SuggestedFix: "Retry it three times.",
	}
	for _, e := range edit {
		e(&cmd)
	}
	out, err := r.proposals.Submit(r.Context(), r.access("user:bob", identity.SubmitProposal), cmd)
	if err != nil {
		r.Fatal(err)
	}
	return out.Proposal
}

// move takes a proposal along the status table.
func (r *room) move(id string, to ...proposal.Status) {
	r.Helper()
	for _, s := range to {
		a := r.access("user:ada", identity.ResolveProposal, identity.Admin)
		if _, err := r.proposals.Resolve(r.Context(), a, id, proposal.Resolution{Status: s, Note: "A note."}); err != nil {
			r.Fatal(err)
		}
	}
}

func (r *room) vote(ref, id string, choice proposal.Choice, comment string) {
	r.Helper()
	a := r.access(ref, identity.VoteOnProposal)
	if _, err := r.proposals.Vote(r.Context(), a, id, proposal.Ballot{Choice: choice, Comment: comment}); err != nil {
		r.Fatal(err)
	}
}

func (r *room) edit(id string, e proposal.Edit) {
	r.Helper()
	if _, err := r.proposals.Edit(r.Context(), r.access("user:bob", identity.ChangeProposal), id, e); err != nil {
		r.Fatal(err)
	}
}

func (r *room) get(id string) proposal.Proposal {
	r.Helper()
	cur, err := r.proposals.Get(r.Context(), r.access("user:ada", identity.ReadProposal, identity.Admin), id)
	if err != nil {
		r.Fatal(err)
	}
	return cur.Proposal
}

// work makes the scout finish a follow-up with outputs.
func (r *room) work(f followup.Followup, report task.Report) {
	r.Helper()
	ctx := r.Context()
	ref := "agent:scout"
	a := r.access("user:ada", identity.ChangeFollowup, identity.Admin)
	if _, err := r.followups.Change(ctx, a, f.ID, followup.Edit{Assignee: &ref}); err != nil {
		r.Fatal(err)
	}
	r.report(report)
}

// report makes the scout take the next task, and report on it.
func (r *room) report(report task.Report) {
	r.Helper()
	ctx := r.Context()
	secret, _ := r.world.Key("acme", "service:worker", "svc:a2a:serve", "agent:scout")
	c, err := r.world.Auth.Authenticate(ctx, secret)
	if err != nil {
		r.Fatal(err)
	}
	post, err := r.world.Tasks.Serve(ctx, c, "scout")
	if err != nil {
		r.Fatal(err)
	}
	got, err := r.world.Tasks.Claim(ctx, post, task.ClaimRequest{Worker: "w", Max: 1, Wait: 10 * time.Second, Lease: time.Minute, Capacity: 1})
	if err != nil || len(got.Assignments) != 1 {
		r.Fatal(len(got.Assignments), err)
	}
	if _, err := r.world.Tasks.Report(ctx, post, got.Assignments[0].Lease.Token, report); err != nil {
		r.Fatal(err)
	}
}

// shown is a response.
type shown struct {
	*testing.T
	Code   int
	Header http.Header
	Body   string
}

func (p *person) send(r *http.Request) *shown {
	p.room.Helper()
	r.AddCookie(p.cookie)
	rec := httptest.NewRecorder()
	p.room.handler.ServeHTTP(rec, r)
	return &shown{T: p.room.T, Code: rec.Code, Header: rec.Result().Header, Body: rec.Body.String()}
}

// get opens a page of the org.
func (p *person) get(path string) *shown {
	p.room.Helper()
	return p.send(httptest.NewRequest(http.MethodGet, "/orgs/acme"+path, nil))
}

// post sends a form; fields are given as name, value pairs.
func (p *person) post(path string, fields ...string) *shown {
	p.room.Helper()
	form := url.Values{}
	for i := 0; i+1 < len(fields); i += 2 {
		form.Add(fields[i], fields[i+1])
	}
	r := httptest.NewRequest(http.MethodPost, "/orgs/acme"+path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return p.send(r)
}

// want fails the test unless the status is the one given.
func (s *shown) want(code int) *shown {
	s.Helper()
	if s.Code != code {
		s.Fatalf("status %d, want %d:\n%s", s.Code, code, text(s.Body))
	}
	return s
}

// has fails the test unless the page has all of these.
func (s *shown) has(parts ...string) *shown {
	s.Helper()
	for _, part := range parts {
		if !strings.Contains(s.Body, part) {
			s.Errorf("the page lacks %q:\n%s", part, text(s.Body))
		}
	}
	return s
}

// lacks fails the test if the page has any of these.
func (s *shown) lacks(parts ...string) *shown {
	s.Helper()
	for _, part := range parts {
		if strings.Contains(s.Body, part) {
			s.Errorf("the page has %q:\n%s", part, text(s.Body))
		}
	}
	return s
}

// leads fails the test unless the response leads to a page of the org.
func (s *shown) leads(path string) *shown {
	s.Helper()
	s.want(http.StatusSeeOther)
	if got := s.Header.Get("Location"); got != "/orgs/acme"+path {
		s.Errorf("leads to %q, want %q", got, path)
	}
	return s
}

var tags = regexp.MustCompile(`(?s)<nav class="side".*?</nav>|<[^>]*>`)

// text is a page without its tags, for messages of tests.
func text(page string) string {
	s := html.UnescapeString(tags.ReplaceAllString(page, " "))
	s = regexp.MustCompile(`\s+`).ReplaceAllString(s, " ")
	if len(s) > 3000 {
		s = s[:3000] + "…"
	}
	return s
}
