package web_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/parley-dev/parley/internal/friction"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
)

// A page offers what the service allows, by status and role.
func TestAProposalOffersWhatIsAllowed(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	ways := map[proposal.Status][]proposal.Status{
		proposal.Draft: nil, proposal.Open: nil, proposal.Approved: {proposal.Approved},
		proposal.Rejected: {proposal.Rejected}, proposal.Resolved: {proposal.Approved, proposal.Resolved},
	}
	for _, status := range proposal.Statuses {
		p := r.submit(func(s *proposal.Submission) {
			if status == proposal.Draft {
				s.Status = proposal.Draft
			}
		})
		r.move(p.ID, ways[status]...)
		for _, who := range []*person{r.ada, r.bob, r.cat} {
			t.Run(fmt.Sprint(status, " ", who.ref), func(t *testing.T) {
				page := who.get("/proposals/" + p.ID)
				page.T = t
				if status == proposal.Draft && who == r.cat {
					page.want(http.StatusNotFound)
					return
				}
				page.want(http.StatusOK).has("Retry the deploy step", "Retry it three times.", `id="decide"`)
				for _, next := range proposal.Statuses {
					button := fmt.Sprintf(`name="status" value="%s"`, next)
					if who.admin && allows(status, next) {
						page.has(button)
					} else {
						page.lacks(button)
					}
				}
				edits := (status == proposal.Draft || status == proposal.Open) && who != r.cat
				check(page, edits, `/edit"`)
				check(page, status == proposal.Open, `name="choice" value="for"`)
				check(page, !who.admin && status == proposal.Open, "Admins of the org decide.")
				check(page, status == proposal.Resolved, "No further decision follows.")
				check(page, status == proposal.Approved || status == proposal.Resolved, "/orgs/acme/followups/fup-")
			})
		}
	}
}

func check(s *shown, want bool, part string) {
	s.Helper()
	if want {
		s.has(part)
	} else {
		s.lacks(part)
	}
}

func allows(from, to proposal.Status) bool {
	for _, s := range from.Next() {
		if s == to {
			return true
		}
	}
	return false
}

// evil is text that would run if it were not escaped.
const evil = `<script>alert(1)</script><img src=x onerror=alert(2)>"'&{{.}}`

func TestTextsOfOthersAreHarmless(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	p := r.submit(func(s *proposal.Submission) {
		s.Title = evil
		s.Problem = evil + "\n\n[link](javascript:alert(3)) <a href=\"javascript:alert(4)\">x</a>"
		s.SuggestedFix = evil + "\n\n```\n" + evil + "\n```"
	})
	twin := r.submit(func(s *proposal.Submission) { s.Title = evil })
	r.vote("user:cat", p.ID, proposal.For, evil)
	r.vote("agent:scout", p.ID, proposal.Against, evil)
	title := evil + " again"
	r.edit(p.ID, proposal.Edit{Title: &title})
	harmless := func(s *shown) {
		t.Helper()
		s.lacks("<script>alert", "<img", `href="javascript:`, `href='javascript:`, "onerror=alert(2)>")
	}
	harmless(r.ada.get("/proposals/" + p.ID).want(http.StatusOK).has("&lt;script&gt;"))
	harmless(r.bob.get("/proposals/" + p.ID + "/edit").want(http.StatusOK))
	harmless(r.bob.get("/proposals/similar?title=" + "script+alert").want(http.StatusOK))
	harmless(r.ada.post("/proposals/"+p.ID+"/decide", "status", "approved", "text_version", "1", "resolution_note", evil,
		"back", evil).want(http.StatusPreconditionFailed))
	harmless(r.ada.post("/proposals/"+p.ID+"/decide", "status", evil, "text_version", evil, "resolution_note", evil,
		"duplicate_of", evil, "saved_note", evil))
	harmless(r.bob.post("/proposals/new", "title", evil, "problem", evil, "suggested_fix", evil, "category", evil,
		"priority", evil, "status", evil).want(http.StatusUnprocessableEntity))
	harmless(r.bob.post("/proposals/new", "title", evil, "problem", evil, "suggested_fix", evil, "do", "preview").
		want(http.StatusOK))
	harmless(r.bob.post("/proposals/new", "title", evil, "problem", evil, "do", "check").want(http.StatusOK).has(twin.ID))
	r.move(p.ID, proposal.Approved)
	f := r.get(p.ID).FollowupID
	for _, page := range []string{"/proposals/" + p.ID, "/followups", "/followups/" + f, "/followups?who=" +
		"%3Cscript%3E"} {
		harmless(r.ada.get(page))
	}
	harmless(r.ada.post("/followups/"+f, "title", evil, "description", evil, "version", "1", "assignee", evil))
}

func TestVotesArePagedAndApart(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	p := r.submit()
	for i := range 120 {
		kind := "user"
		if i%2 == 0 {
			kind = "agent"
		}
		r.vote(fmt.Sprintf("%s:voter%03d", kind, i), p.ID, proposal.For, "")
	}
	r.vote("user:cat", p.ID, proposal.Against, "Not yet.")
	page := r.ada.get("/proposals/" + p.ID).want(http.StatusOK)
	page.has("120 for", "1 against", "People +60 −1 · agents +60 −0", "Votes · 121", "1–50 of 121", "<h3>People</h3>",
		"<h3>Agents</h3>", "?votes=2#votes")
	if n := strings.Count(page.Body, `<span class="choice">`); n != 50 {
		t.Errorf("%d votes on a page; want 50", n)
	}
	last := r.ada.get("/proposals/"+p.ID+"?votes=3").has("Not yet.", "101–121 of 121", "?votes=2#votes")
	last.lacks("?votes=4#votes")
	for _, odd := range []string{"0", "-1", "x", "999999999999999999999", "4000"} {
		r.ada.get("/proposals/" + p.ID + "?votes=" + odd + "&history=" + odd).want(http.StatusOK)
	}
	// The history has all votes, newest first.
	page.has("History", "voted against", `?history=1#history`)
	if n := strings.Count(page.Body, `id="entry-`); n < 25 || n > 75 {
		t.Errorf("%d entries of the history on a page, want 25 to 75", n)
	}
	r.ada.get("/proposals/"+p.ID+"?history=1").has(`id="entry-1"`, "submitted it", `?history=2#history`)
}

func TestEvidenceIsShown(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	var filed string
	for i := range 15 {
		who := "agent:scout"
		if i%2 == 0 {
			who = "agent:herald"
		}
		out, err := r.frictions.Report(t.Context(), r.access(who, identity.ReportFriction), friction.Report{
			Fingerprint: "deploy.registry-busy", Title: "The registry is busy", Category: "reliability", Problem: "503.",
			Evidence: fmt.Sprintf("503 number %d %s", i, evil), Occurrence: fmt.Sprint("run ", i, evil),
		})
		if err != nil {
			t.Fatal(err)
		}
		filed = out.Friction.ProposalID
	}
	page := r.bob.get("/proposals/"+filed).want(http.StatusOK).
		has("Evidence · 15 reports by 2 reporters", "deploy.registry-busy", "503 number 14", "These are the latest 10.")
	page.lacks("<script>alert", "<img")
	if strings.Count(page.Body, "<pre dir=\"auto\">503 number") != 10 {
		t.Error("not the latest 10 reports")
	}
}

func TestALongTitleWithoutASpace(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	p := r.submit(func(s *proposal.Submission) { s.Title = strings.Repeat("x", 200) })
	r.ada.get("/proposals/"+p.ID).want(http.StatusOK).has("<h1><bdi>"+strings.Repeat("x", 200), "</bdi></h1>")
}

func TestProposalsThatAreNotThere(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	for _, id := range []string{"prop-01k5x8r2m4v7c9w3q6z1t0h8ye", "x", "%00", "..", "new/edit"} {
		r.ada.get("/proposals/" + id + "/edit").want(http.StatusNotFound)
		r.ada.post("/proposals/"+id+"/decide", "status", "approved", "text_version", "1").want(http.StatusNotFound)
		r.ada.post("/proposals/"+id+"/edit", "title", "x", "text_version", "1").want(http.StatusNotFound)
	}
	r.ada.get("/proposals/x").want(http.StatusNotFound)
}

func TestOnesOwnVote(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	p := r.submit()
	at := "/proposals/" + p.ID
	r.cat.get(at).has(`aria-pressed="false">For`, `aria-pressed="false">Against`).lacks("Withdraw")
	r.cat.post(at+"/vote", "choice", "for", "comment", "Yes, "+evil, "back", "/orgs/acme"+at, "once", "v1").leads(at)
	page := r.cat.get(at).has(`aria-pressed="true">For`, `aria-pressed="false">Against`, "Withdraw", "You voted for",
		"Yes, &lt;script&gt;")
	page.lacks("<script>alert")
	r.cat.post(at+"/vote", "choice", "none", "back", "/orgs/acme"+at).leads(at)
	r.cat.get(at).has(`aria-pressed="false">For`, "withdrew the vote for").lacks("Withdraw")
	long := strings.Repeat("c", proposal.MaxComment+1)
	r.cat.post(at+"/vote", "choice", "for", "comment", long, "back", "/orgs/acme"+at).want(http.StatusUnprocessableEntity).
		has(`id="err-comment"`, long, "Retry the deploy step")
	r.cat.get(at + "/vote").leads(at)
	r.move(p.ID, proposal.Approved)
	r.cat.get(at).has("Voting is over: the proposal is approved.")
}
