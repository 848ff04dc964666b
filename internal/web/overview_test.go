package web_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/orgtest"
	"github.com/parley-dev/parley/internal/proposal"
	"github.com/parley-dev/parley/internal/task"
)

// caller returns a caller of acme with a new key.
func (o *office) caller(ref string, scopes ...identity.Scope) *identity.Caller {
	o.Helper()
	secret, _ := o.Key("acme", ref, scopes...)
	c, err := o.Auth.Authenticate(o.Context(), secret)
	if err != nil {
		o.Fatal(err)
	}
	return c
}

// propose submits an open proposal.
func (o *office) propose(title string, priority proposal.Priority) string {
	o.Helper()
	caller := o.caller("agent:scout", identity.TasksRead, identity.TasksWrite)
	a, err := identity.Authorize(caller, "acme", identity.SubmitProposal)
	if err != nil {
		o.Fatal(err)
	}
	out, err := o.proposals.Submit(o.Context(), a, proposal.Submission{
		Title: title, Category: proposal.Process, Problem: "It is so.", SuggestedFix: "Change it.", Priority: priority,
	})
	if err != nil {
		o.Fatal(err)
	}
	return out.Proposal.ID
}

// resolve decides a proposal.
func (o *office) resolve(id string, to proposal.Status) {
	o.Helper()
	_, err := o.proposals.Resolve(o.Context(), o.Admin("acme", identity.ResolveProposal), id,
		proposal.Resolution{Status: to, Note: "Decided."})
	if err != nil {
		o.Fatal(err)
	}
}

// ask sends a task as a member and lets its agent ask for input.
func (o *office) ask(sender, id string) {
	o.Helper()
	ctx := o.Context()
	call, err := o.Tasks.Reach(ctx, o.caller(sender, identity.A2AWrite), "scout")
	if err != nil {
		o.Fatal(err)
	}
	if _, err := o.Tasks.Send(ctx, call, dispatch.SendRequest{ID: id, Message: task.Message{
		Role: task.RoleUser, Parts: []task.Part{{Kind: task.TextPart, Text: "hello"}},
	}}, 0); err != nil {
		o.Fatal(err)
	}
	post, err := o.Tasks.Serve(ctx, o.caller("agent:scout", identity.A2AServe), "scout")
	if err != nil {
		o.Fatal(err)
	}
	got, err := o.Tasks.Claim(ctx, post, dispatch.ClaimRequest{Worker: "w", Max: 1, Lease: time.Minute, Capacity: 1})
	if err != nil || len(got.Assignments) != 1 {
		o.Fatalf("claimed %d, %v, want 1", len(got.Assignments), err)
	}
	lease := got.Assignments[0].Lease.Token
	if _, err := o.Tasks.Report(ctx, post, lease, task.Report{State: task.InputRequired}); err != nil {
		o.Fatal(err)
	}
}

func TestTheOverviewOfAQuietOrg(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.ada.get("/overview").want(http.StatusOK, "No proposal is open", "No task waits for an answer",
		"no key ends within 14 days", "Decided", "Accepted")
	o.bob.get("/overview").want(http.StatusOK, "No task waits for your answer").lacks("Needs attention", "/keys?view=ends")
	o.eve.get("/overview").want(http.StatusNotFound)
}

func TestTheOverviewShowsWhatWaits(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	first := o.propose("The <b>first</b>", proposal.High)
	for range 6 {
		o.propose("A later one", proposal.Normal)
	}
	o.resolve(o.propose("Yes", proposal.Low), proposal.Approved)
	o.resolve(o.propose("Yes, too", proposal.Low), proposal.Approved)
	o.resolve(o.propose("No", proposal.Low), proposal.Rejected)
	o.ask("user:bob", "t/1")
	o.ask("service:shop", "t-2")
	call, err := o.Tasks.Reach(t.Context(), o.caller("service:crm", identity.A2AWrite), "scout")
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"q-1", "q-2"} {
		if _, err := o.Tasks.Send(t.Context(), call, dispatch.SendRequest{ID: id, Message: task.Message{
			Role: task.RoleUser, Parts: []task.Part{{Kind: task.TextPart, Text: "hello"}},
		}}, 0); err != nil {
			t.Fatal(err)
		}
	}
	k := identity.KeyRequest{
		Principal: identity.Principal{Org: "acme", Kind: identity.Agent, ID: "scout"},
		Scopes:    []string{string(identity.TasksRead)}, ExpiresAt: orgtest.Now().Add(48 * time.Hour),
	}
	if _, _, err := o.admin.CreateKey(t.Context(), o.Admin("acme", identity.ManageKeys), k); err != nil {
		t.Fatal(err)
	}
	shared := []string{
		`href="/orgs/acme/proposals?priority=high"`, `<b class="num">1</b> high`, `<b class="num">6</b> normal`,
		`href="/orgs/acme/proposals/` + first + `"`, "The &lt;b&gt;first&lt;/b&gt;", `<b class="num">3</b>`, `67 %`,
		"scout", `data-live="proposal"`, `href="/orgs/acme/events?type=proposal.decided"`,
		`href="/orgs/acme/events?type=proposal.approved"`,
	}
	mine := append(slices.Clone(shared), `href="/orgs/acme/agents/scout/tasks/t%2F1"`, "asks you")
	o.bob.get("/overview").want(http.StatusOK, mine...).
		lacks("Needs attention", "1 key ends", "/tasks?state", "low</a>", "shop")
	o.ada.get("/overview").want(http.StatusOK, append(shared, `href="/orgs/acme/tasks?state=input-required"`,
		"Tasks of our agents that ask", "shop", "1 key ends within 14 days", `href="/orgs/acme/keys?view=ends"`)...).
		lacks("asks you")
}

func TestTheOverviewSaysWhereMoreQuestionsAre(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	for i := range 6 {
		o.ask("user:bob", fmt.Sprint("t-", i))
	}
	const more = `There are more: see the pages of the <a class="link" href="/orgs/acme/agents">agents</a>`
	o.bob.get("/overview").want(http.StatusOK, more)
	o.ada.get("/overview").want(http.StatusOK, "There are more.", "Tasks of our agents that ask")
}

// An agent with waiting tasks needs a worker; one that has a worker does not.
func TestTheOverviewNamesAgentsWithoutAWorker(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	call, err := o.Tasks.Reach(t.Context(), o.caller("service:crm", identity.A2AWrite), "scout")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Tasks.Send(t.Context(), call, dispatch.SendRequest{ID: "q-1", Message: task.Message{
		Role: task.RoleUser, Parts: []task.Part{{Kind: task.TextPart, Text: "hello"}},
	}}, 0); err != nil {
		t.Fatal(err)
	}
	o.ada.get("/overview").want(http.StatusOK, "1 task waits for scout, which is offline",
		`href="/orgs/acme/agents/scout"`)
	o.bob.get("/overview").want(http.StatusOK).lacks("which is offline")
}

// The overview is the start page once the first steps are hidden, and for members at once.
func TestTheOverviewIsTheStartPage(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	if to := o.bob.get("").want(http.StatusSeeOther).header.Get("Location"); to != "/orgs/acme/overview" {
		t.Errorf("a member starts at %s, want the overview", to)
	}
	if to := o.ada.get("").want(http.StatusSeeOther).header.Get("Location"); to != "/orgs/acme/start" {
		t.Errorf("an admin of a new org starts at %s, want the first steps", to)
	}
	o.ada.post("/start/hide").leads(o.ada, "The first steps are hidden", "Waiting for a decision")
}
