package web_test

import (
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/followup"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
	"github.com/parley-dev/parley/internal/task"
)

// room is a dashboard of the org acme with ada, an admin, the members bob and cat, and the agents
// scout and herald.
type room struct {
	*testing.T
	*dashboard

	ada, bob, cat *person
}

// person is a signed-in member with a browser.
type person struct {
	room   *room
	ref    string
	admin  bool
	cookie *http.Cookie
}

func newRoom(t *testing.T) *room {
	t.Helper()
	r := &room{T: t, dashboard: newDashboard(t)}
	for _, id := range []string{"scout", "herald"} {
		r.Agent(agent.Agent{ID: id, Org: "acme", Name: id})
	}
	person := func(id string, admin bool) *person {
		return &person{room: r, ref: "user:" + id, admin: admin, cookie: r.signIn("acme", id, "", admin)}
	}
	r.ada, r.bob, r.cat = person("ada", true), person("bob", false), person("cat", false)
	return r
}

// access authorizes a member with the scopes of its session or key.
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

// submit submits a proposal as bob.
func (r *room) submit(edit ...func(*proposal.Submission)) proposal.Proposal {
	r.Helper()
	cmd := proposal.Submission{
		Title: "Retry the deploy step", Category: proposal.Reliability,
		Problem:      "It fails when the registry is busy.\n\nOften.",
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

// move changes the status of a proposal step by step.
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

// work lets scout finish a follow-up with outputs.
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

// report lets scout claim the next task and report on it.
func (r *room) report(report task.Report) {
	r.Helper()
	ctx := r.Context()
	secret, _ := r.Key("acme", "service:worker", "svc:a2a:serve", "agent:scout")
	c, err := r.Auth.Authenticate(ctx, secret)
	if err != nil {
		r.Fatal(err)
	}
	post, err := r.Tasks.Serve(ctx, c, "scout")
	if err != nil {
		r.Fatal(err)
	}
	got, err := r.Tasks.Claim(ctx, post, dispatch.ClaimRequest{
		Worker: "w", Max: 1, Wait: 10 * time.Second,
		Lease: time.Minute, Capacity: 1,
	})
	if err != nil || len(got.Assignments) != 1 {
		r.Fatal(len(got.Assignments), err)
	}
	if _, err := r.Tasks.Report(ctx, post, got.Assignments[0].Lease.Token, report); err != nil {
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

// want fails the test unless the response has the status.
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

// leads fails the test unless the response redirects to a page of the org.
func (s *shown) leads(path string) *shown {
	s.Helper()
	s.want(http.StatusSeeOther)
	if got := s.Header.Get("Location"); got != "/orgs/acme"+path {
		s.Errorf("leads to %q, want %q", got, path)
	}
	return s
}

var tags = regexp.MustCompile(`(?s)<nav class="side".*?</nav>|<[^>]*>`)

// text returns a page without its tags, for test messages.
func text(page string) string {
	s := html.UnescapeString(tags.ReplaceAllString(page, " "))
	s = regexp.MustCompile(`\s+`).ReplaceAllString(s, " ")
	if len(s) > 3000 {
		s = s[:3000] + "…"
	}
	return s
}
