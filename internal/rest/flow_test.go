package rest

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const proposals = "/api/v1/orgs/acme/proposals"

func TestSubmitAnswersTheWholeRecordAndWhereItIs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	res := w.do(w.member("acme", "agent:fixer"), "POST", proposals, submission).want(http.StatusCreated)
	var got Proposal
	res.into(&got)
	want := Proposal{
		Title: "Retry webhooks", Category: "reliability", Problem: "They get lost.", SuggestedFix: "Retry.",
		Priority: "normal",
		Status:   "open", SubmittedBy: "agent:fixer", AllowedTransitions: []string{"approved", "rejected"}, TextVersion: 1,
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Proposal{}, "ID", "SubmittedAt", "UpdatedAt")); diff != "" {
		t.Errorf("mismatch (-want +got):\n%s", diff)
	}
	if loc := res.Header.Get("Location"); loc != proposals+"/"+got.ID {
		t.Errorf("got Location %q, want %v", loc, proposals+"/"+got.ID)
	}
	if !strings.HasPrefix(res.Header.Get("ETag"), `"v1-`) {
		t.Errorf("ETag = %q, want the prefix \"v1-", res.Header.Get("ETag"))
	}
	if !strings.HasSuffix(got.SubmittedAt, "Z") || len(got.SubmittedAt) != len("2026-03-01T09:30:00.000000Z") {
		t.Errorf("submitted_at = %q, want UTC with microseconds", got.SubmittedAt)
	}
	for _, absent := range []string{"$schema"} {
		if strings.Contains(res.Body, absent) {
			t.Errorf("the body has %s: %s", absent, res.Body)
		}
	}
	for _, present := range []string{`"my_vote":null`, `"followup_id":null`, `"resolution_note":""`} {
		if !strings.Contains(res.Body, present) {
			t.Errorf("the body lacks %s: %s", present, res.Body)
		}
	}
}

func TestAProposalGoesFromVoteToFollowUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	scout, ada := w.member("acme", "user:scout"), w.admin("acme", "user:ada")
	p := w.submit(scout, "acme")
	path := proposals + "/" + p.ID

	var vote VoteResult
	w.do(ada, "POST", path+"/vote", `{"vote":"for","comment":"yes"}`).want(200).into(&vote)
	wantVote := VoteResult{ProposalID: p.ID, Vote: "for", Comment: "yes", VotesFor: 1}
	if diff := cmp.Diff(wantVote, vote, cmpopts.IgnoreFields(VoteResult{}, "VotedAt")); diff != "" {
		t.Errorf("mismatch (-want +got):\n%s", diff)
	}
	w.do(ada, "POST", path+"/vote", `{"vote":"against"}`).want(200).into(&vote)
	if !vote.Replaced || vote.VotesFor != 0 || vote.VotesAgainst != 1 || vote.Comment != "" {
		t.Errorf("second vote: got %+v, want Replaced true, VotesFor 0, VotesAgainst 1, Comment empty", vote)
	}
	w.do(scout, "POST", path+"/vote", `{"vote":"for"}`).want(200)
	var withdrawal VoteWithdrawal
	w.do(scout, "DELETE", path+"/vote", "").want(200).into(&withdrawal)
	if diff := cmp.Diff(VoteWithdrawal{ProposalID: p.ID, VotesAgainst: 1}, withdrawal); diff != "" {
		t.Errorf("mismatch (-want +got):\n%s", diff)
	}
	w.do(scout, "DELETE", path+"/vote", "").want(404)

	var votes VoteList
	w.do(scout, "GET", path+"/votes", "").want(200).into(&votes)
	wantVotes := VoteList{Votes: []Vote{{Voter: "user:ada", Vote: "against"}}, Total: 1, Page: 1}
	if diff := cmp.Diff(wantVotes, votes, cmpopts.IgnoreFields(Vote{}, "VotedAt")); diff != "" {
		t.Errorf("mismatch (-want +got):\n%s", diff)
	}

	w.do(scout, "PATCH", path, `{"title":"Retry all webhooks"}`).want(200)
	var done Proposal
	w.do(ada, "PATCH", path, `{"status":"approved","resolution_note":"go"}`).want(200).into(&done)
	if done.Status != "approved" || done.FollowupID == nil || done.ResolutionNote != "go" || done.MyVote == nil ||
		*done.MyVote != "against" {
		t.Errorf("approved: got %+v, want Status approved, FollowupID not nil, ResolutionNote go, MyVote against", done)
	}
	var followup Followup
	w.do(scout, "GET", "/api/v1/orgs/acme/followups/"+*done.FollowupID, "").want(200).into(&followup)
	if followup.ProposalID == nil || *followup.ProposalID != p.ID || followup.Title != "Retry all webhooks" ||
		followup.TextHash == nil || followup.Assignee != nil {
		t.Errorf("got %+v, want the open follow-up of %s with its text hash", followup, p.ID)
	}

	var history History
	w.do(scout, "GET", path+"/history?limit=3&page=2", "").want(200).into(&history)
	want := []HistoryEntry{
		{Seq: 4, Actor: "user:scout", Kind: "voted", Vote: "for"},
		{Seq: 5, Actor: "user:scout", Kind: "vote_withdrawn", Vote: "for"},
		{
			Seq: 6, Actor: "user:scout", Kind: "edited",
			Changes: []FieldChange{{Field: "title", From: "Retry webhooks", To: "Retry all webhooks"}},
		},
	}
	if diff := cmp.Diff(want, history.History, cmpopts.IgnoreFields(HistoryEntry{}, "At")); diff != "" {
		t.Errorf("mismatch (-want +got):\n%s", diff)
	}
	if history.Total != 7 || history.Page != 2 {
		t.Errorf("history total %d, page %d; want 7 and 2", history.Total, history.Page)
	}
}

func TestADisallowedTransitionListsTheAllowedOnes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.admin("acme", "user:ada")
	path := proposals + "/" + w.submit(ada, "acme").ID
	p := w.do(ada, "PATCH", path, `{"status":"resolved"}`).want(409).problem()
	if p.Code != "proposal.transition_not_allowed" || !cmp.Equal(p.Allowed, []string{"approved", "rejected"}) {
		t.Errorf("got %+v, want Code proposal.transition_not_allowed, %v", p, []string{"approved", "rejected"})
	}
	w.do(ada, "PATCH", path, `{"status":"approved"}`).want(200)
	w.do(ada, "PATCH", path, `{"status":"resolved"}`).want(200)
	res := w.do(ada, "PATCH", path, `{"status":"open"}`).want(409)
	if !strings.Contains(res.Body, `"allowed":[]`) {
		t.Errorf("got %s, want an empty list of allowed statuses", res.Body)
	}
	if p := w.do(ada, "POST", path+"/vote", `{"vote":"for"}`).want(409).problem(); p.Code != "proposal.not_open" {
		t.Errorf("got %+v, want Code proposal.not_open", p)
	}
}

func TestTheListPagesByNumberAndByCursor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.admin("acme", "user:ada")
	for range 5 {
		w.submit(ada, "acme")
	}
	seen := map[string]bool{}
	target, pages := proposals+"?limit=2&sort=oldest", 0
	for target != "" {
		var list ProposalList
		res := w.do(ada, "GET", target, "").want(200)
		res.into(&list)
		pages++
		if list.Total != 5 || list.Page != pages {
			t.Errorf("got total %d, page %d; want 5 and %d", list.Total, list.Page, pages)
		}
		for _, it := range list.Proposals {
			seen[it.ID] = true
		}
		target = linkTo(res.Header.Values("Link"), "next")
		if byCursor := list.NextCursor != nil; byCursor != (target != "") {
			t.Errorf("next_cursor and Link disagree on page %d", pages)
		}
		if pages == 2 && linkTo(res.Header.Values("Link"), "prev") != proposals+"?limit=2&page=1&sort=oldest" {
			t.Errorf("Link = %q, want prev to be page 1", res.Header.Values("Link"))
		}
	}
	if len(seen) != 5 || pages != 3 {
		t.Errorf("%d proposals on %d pages by number, want 5 on 3", len(seen), pages)
	}

	cursor, seen, pages := "", map[string]bool{}, 0
	for {
		target := proposals + "?limit=2&sort=oldest"
		if cursor != "" {
			target += "&cursor=" + cursor
		}
		var list ProposalList
		w.do(ada, "GET", target, "").want(200).into(&list)
		pages++
		for _, it := range list.Proposals {
			seen[it.ID] = true
		}
		if list.Page != pages {
			t.Errorf("page by cursor = %d, want %d", list.Page, pages)
		}
		if list.NextCursor == nil {
			break
		}
		cursor = *list.NextCursor
	}
	if len(seen) != 5 || pages != 3 {
		t.Errorf("%d proposals on %d pages by cursor, want 5 on 3", len(seen), pages)
	}

	res := w.do(ada, "GET", proposals+"?page=1000000000000", "").want(200)
	if !strings.HasPrefix(res.Body, `{"proposals":[],"total":5,`) {
		t.Errorf("a page past the end: got %s, want none of 5 proposals", res.Body)
	}
}

func linkTo(links []string, rel string) string {
	for _, l := range links {
		target, params, _ := strings.Cut(strings.TrimPrefix(l, "<"), ">")
		if strings.Contains(params, `rel="`+rel+`"`) {
			return target
		}
	}
	return ""
}

func TestFollowupsAreMadeAssignedAndFinished(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada, bob := w.admin("acme", "user:ada"), w.member("acme", "user:bob")
	const followups = "/api/v1/orgs/acme/followups"
	var followup Followup
	res := w.do(bob, "POST", followups, `{"title":"Write it","assignee":"user:ada"}`).want(201)
	res.into(&followup)
	if followup.Assignee == nil || *followup.Assignee != "user:ada" || followup.Status != "open" ||
		followup.ProposalID != nil || followup.Description != "" {
		t.Errorf("got %+v, want Assignee user:ada, Status open, ProposalID nil, Description empty", followup)
	}
	path := followups + "/" + followup.ID
	if res.Header.Get("Location") != path {
		t.Errorf("got Location %q, want Location %v", res.Header.Get("Location"), path)
	}
	if p := w.do(bob, "PATCH", path, `{"assignee":"agent:fixer"}`).want(403).problem(); p.Scope != "svc:a2a:write" {
		t.Errorf("got %+v, want Scope svc:a2a:write", p)
	}
	w.do(ada, "PATCH", path, `{"assignee":"agent:fixer","status":"done"}`).want(200)
	if p := w.do(ada, "PATCH", path, `{"status":"canceled"}`).want(409).
		problem(); !cmp.Equal(p.Allowed, []string{"open"}) {
		t.Errorf("got %+v, want %v", p, []string{"open"})
	}
	w.do(ada, "PATCH", path, `{"assignee":""}`).want(200).into(&followup)
	if followup.Assignee != nil || followup.Status != "done" {
		t.Errorf("got %+v, want Assignee nil, Status done", followup)
	}
	var list FollowupList
	w.do(bob, "GET", followups+"?status=done&assignee=none", "").want(200).into(&list)
	if list.Total != 1 || len(list.Followups) != 1 {
		t.Errorf("got %+v, want Total 1, len(Followups) 1", list)
	}
	if p := w.do(ada, "PATCH", path, `{"assignee":"user:nobody"}`).want(422).
		problem(); !cmp.Equal(at(p), []string{"/assignee"}) {
		t.Errorf("got %+v, want %v", p, []string{"/assignee"})
	}
}
