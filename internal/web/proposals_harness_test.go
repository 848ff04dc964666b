package web_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
)

// queue is the dashboard of acme with ada, an admin, bob and the agent scout.
type queue struct {
	*dashboard
	cookies map[string]*http.Cookie
}

func newQueue(tb testing.TB) *queue {
	tb.Helper()
	q := &queue{dashboard: newDashboard(tb), cookies: map[string]*http.Cookie{}}
	q.Agent(agent.Agent{Org: "acme", ID: "scout", Name: "Scout"})
	for id, admin := range map[string]bool{"ada": true, "bob": false} {
		q.cookies[id] = q.signIn("acme", id, "", admin)
	}
	return q
}

// send sends a request as the browser of a user.
func (q *queue) send(who, method, path string, form url.Values) *httptest.ResponseRecorder {
	q.Helper()
	return q.visit(q.cookies[who], method, path, form)
}

// get returns a page that must exist.
func (q *queue) get(who, path string) string {
	q.Helper()
	res := q.send(who, http.MethodGet, path, nil)
	if res.Code != http.StatusOK {
		q.Fatalf("GET %s of %s: %d\n%s\n%s", path, who, res.Code, mainOf(res.Body.String()), q.Logs)
	}
	return res.Body.String()
}

// follow sends a form, and returns the page that it redirects to.
func (q *queue) follow(who, path string, form url.Values) (at, page string) {
	q.Helper()
	res := q.send(who, http.MethodPost, path, form)
	if res.Code != http.StatusSeeOther {
		q.Fatalf("POST %s of %s: %d\n%s\n%s", path, who, res.Code, mainOf(res.Body.String()), q.Logs)
	}
	at = res.Header().Get("Location")
	return at, q.get(who, at)
}

// as authorizes a principal of acme.
func (q *queue) as(ref string, action identity.Action) identity.Access {
	q.Helper()
	kind, id, _ := strings.Cut(ref, ":")
	c := &identity.Caller{
		Principal: identity.Principal{Org: "acme", Kind: identity.Kind(kind), ID: id},
		Scopes:    identity.Scopes{identity.TasksRead, identity.TasksWrite},
	}
	if id == "ada" {
		c.Scopes = append(c.Scopes, identity.Admin)
	}
	a, err := identity.Authorize(c, "acme", action)
	if err != nil {
		q.Fatal(err)
	}
	return a
}

// submit submits a proposal, changed by edit.
func (q *queue) submit(ref, title string, edit ...func(*proposal.Submission)) string {
	q.Helper()
	s := proposal.Submission{Title: title, Category: proposal.Process, Problem: "It hurts.", SuggestedFix: "Mend it."}
	for _, e := range edit {
		e(&s)
	}
	out, err := q.proposals.Submit(context.Background(), q.as(ref, identity.SubmitProposal), s)
	if err != nil {
		q.Fatal(err)
	}
	return out.Proposal.ID
}

// read returns a proposal as ada sees it.
func (q *queue) read(id string) proposal.Proposal {
	q.Helper()
	cur, err := q.proposals.Get(context.Background(), q.as("user:ada", identity.ReadProposal), id)
	if err != nil {
		q.Fatal(err)
	}
	return cur.Proposal
}

// resolve decides a proposal as ada.
func (q *queue) resolve(id string, to proposal.Status) {
	q.Helper()
	_, err := q.proposals.Resolve(context.Background(), q.as("user:ada", identity.ResolveProposal), id,
		proposal.Resolution{Status: to, Note: "Because."})
	if err != nil {
		q.Fatal(err)
	}
}

var linkOf = regexp.MustCompile(`href="([^"]*)"`)

// hrefs returns the links in a part of a page.
func hrefs(html string) []string {
	var out []string
	for _, m := range linkOf.FindAllStringSubmatch(html, -1) {
		out = append(out, strings.ReplaceAll(m[1], "&amp;", "&"))
	}
	return out
}

// linkNamed returns the link with the given text.
func linkNamed(tb testing.TB, html, words string) string {
	tb.Helper()
	end := strings.Index(html, ">"+words)
	if end < 0 {
		tb.Fatalf("no link %q in\n%s", words, html)
	}
	all := hrefs(html[:end+1])
	return all[len(all)-1]
}

func between(html, from, to string) string {
	_, rest, _ := strings.Cut(html, from)
	inside, _, _ := strings.Cut(rest, to)
	return inside
}

// mainOf returns the main part of a page.
func mainOf(html string) string {
	if inside := between(html, "<main", "</main>"); inside != "" {
		return inside
	}
	return html
}

func mustContain(tb testing.TB, html string, wants ...string) {
	tb.Helper()
	for _, want := range wants {
		if !strings.Contains(html, want) {
			tb.Errorf("the page lacks %q:\n%s", want, mainOf(html))
			return
		}
	}
}

func mustLack(tb testing.TB, html string, bad ...string) {
	tb.Helper()
	for _, b := range bad {
		if strings.Contains(html, b) {
			tb.Errorf("the page has %q:\n%s", b, mainOf(html))
			return
		}
	}
}

func numbered(format string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf(format, i)
	}
	return out
}

// BenchmarkProposalsPage measures the list for a member, without compression.
func BenchmarkProposalsPage(b *testing.B) {
	q := newQueue(b)
	for _, title := range numbered("Rotate the staging database password before anybody notices %d", 200) {
		q.submit("agent:scout", title)
	}
	b.ReportAllocs()
	for b.Loop() {
		if res := q.send("ada", http.MethodGet, "/orgs/acme/proposals", nil); res.Code != http.StatusOK {
			b.Fatalf("got %v, want Code %v", res.Code, http.StatusOK)
		}
	}
}
