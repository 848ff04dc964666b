package web_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/parley-dev/parley/internal/followup"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
)

// followupsOf counts the follow-ups of a proposal.
func (r *room) followupsOf(id string) int64 {
	r.Helper()
	_, n, err := r.followups.List(r.Context(), r.access("user:ada", identity.ListFollowups),
		&followup.Query{ProposalID: id})
	if err != nil {
		r.Fatal(err)
	}
	return n
}

func TestApprovalMakesOneFollowupHoweverOftenItIsSent(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	p := r.submit()
	at := "/proposals/" + p.ID
	form := []string{"status", "approved", "text_version", "1", "resolution_note", "Do it.", "once", "token-1"}
	var wg sync.WaitGroup
	for range 4 { // a double click
		wg.Go(func() {
			if page := r.ada.post(at+"/decide", form...); page.Code != http.StatusSeeOther {
				t.Errorf("a click of several: got %v, want Code %v", page.Code, http.StatusSeeOther)
			}
		})
	}
	wg.Wait()
	r.ada.post(at+"/decide", form...).leads(at) // a reload, or the back button
	if n := r.followupsOf(p.ID); n != 1 {
		t.Errorf("%d follow-ups; want 1", n)
	}
	r.ada.get(at).has("Approved. The follow-up “Retry the deploy step” was created. "+
		"<a href=\"/orgs/acme/followups/"+r.get(p.ID).FollowupID, "Do it.")
	r.ada.get(at).lacks("Approved. The follow-up") // the notice is shown once
	// The back button, and another note.
	r.ada.post(at+"/decide", "status", "rejected", "text_version", "1", "resolution_note", "No!", "once", "token-1").
		want(http.StatusConflict).has("This form was already sent", "No!")
	r.ada.post(at+"/decide", "status", "rejected", "text_version", "1", "resolution_note", "No!", "once", "token-2").
		want(http.StatusConflict).has("the proposal is approved now", "No!")
	if got := r.get(p.ID).Status; got != proposal.Approved {
		t.Errorf("got %v, want %v", got, proposal.Approved)
	}
}

func TestRejectionNeedsANote(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	p := r.submit()
	at := "/proposals/" + p.ID
	r.ada.post(at+"/decide", "status", "rejected", "text_version", "1", "resolution_note", " \r\n ").
		want(http.StatusUnprocessableEntity).
		has(`aria-invalid="true" aria-describedby="err-resolution_note"`, `id="err-resolution_note"`, "give the reason")
	r.ada.post(at+"/decide", "status", "rejected", "text_version", "1", "resolution_note",
		strings.Repeat("x", proposal.MaxNote+1)).
		want(http.StatusUnprocessableEntity).has("at most 20000 characters", strings.Repeat("x", 300))
	if got := r.get(p.ID).Status; got != proposal.Open {
		t.Errorf("got %v, want %v", got, proposal.Open)
	}
	r.ada.post(at+"/decide", "status", "rejected", "text_version", "1", "resolution_note", "Not now.").leads(at)
	r.ada.get(at).has("Rejected.", "Not now.", "Reopen")
	r.ada.post(at+"/decide", "status", "open", "text_version", "1").leads(at)
	r.ada.get(at).has("The proposal is open now.")
}

// Votes change the record, not the text: they do not make a decision fail.
func TestADecisionIsMadeOnTheText(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	p := r.submit()
	at := "/proposals/" + p.ID
	r.ada.get(at).has(`name="text_version" value="1"`)
	fix := "Retry it five times."
	r.edit(p.ID, proposal.Edit{SuggestedFix: &fix})
	for range 3 {
		r.vote("agent:scout", p.ID, proposal.For, "")
	}
	page := r.ada.post(at+"/decide", "status", "approved", "text_version", "1", "resolution_note", "My long note.",
		"back", "/orgs/acme/proposals?tab=1").
		want(http.StatusPreconditionFailed)
	page.has("It changed while you read", `id="changed"`, "removed: </span>three</del>", "added: </span>five</ins>",
		">My long note.</textarea>",
		`name="text_version" value="2"`, `value="/orgs/acme/proposals?tab=1"`)
	if got := r.get(p.ID).Status; got != proposal.Open {
		t.Fatalf("got %v, want %v", got, proposal.Open)
	}
	for range 3 {
		r.vote("agent:scout", p.ID, proposal.Against, "")
	}
	r.ada.post(at+"/decide", "status", "approved", "text_version", "2", "resolution_note", "My long note.", "back",
		"/orgs/acme/proposals?tab=1").
		leads("/proposals?tab=1")
	if got := r.get(p.ID).Status; got != proposal.Approved {
		t.Errorf("got %v, want %v", got, proposal.Approved)
	}
}

// The page shows the difference between the text that was read and the current one, over several
// edits and many votes.
func TestWhatChangedOverSeveralEdits(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	p := r.submit()
	for _, fix := range []string{"First.", "Second.", "Third."} {
		r.edit(p.ID, proposal.Edit{SuggestedFix: &fix})
		for range 60 {
			r.vote("agent:scout", p.ID, proposal.For, "")
		}
	}
	low := proposal.Low
	r.edit(p.ID, proposal.Edit{Priority: &low}) // not part of the text
	page := r.ada.post("/proposals/"+p.ID+"/decide", "status", "approved", "text_version", "2").
		want(http.StatusPreconditionFailed)
	page.has("removed: </span>First</del>", "added: </span>Third</ins>", `name="text_version" value="4"`)
	changed := page.Body[strings.Index(page.Body, `id="changed"`):strings.Index(page.Body, `class="record"`)]
	if strings.Contains(changed, "Second") || strings.Contains(changed, "priority") {
		t.Errorf("got %v, want without Second, without priority", text(changed))
	}
	// A version that never existed.
	r.ada.post("/proposals/"+p.ID+"/decide", "status", "approved", "text_version", "99").
		want(http.StatusPreconditionFailed)
}

func TestDecisionsThatAreRefused(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	p := r.submit()
	at := "/proposals/" + p.ID + "/decide"
	for _, who := range []*person{r.bob, r.cat} {
		who.post(at, "status", "approved", "text_version", "1").want(http.StatusForbidden)
	}
	for _, version := range []string{"", "0", "-1", "x"} {
		r.ada.post(at, "status", "approved", "text_version", version, "resolution_note", "Kept.").
			want(http.StatusUnprocessableEntity).has("Kept.")
	}
	for _, status := range []string{"", "draft", "resolved", "nonsense"} {
		page := r.ada.post(at, "status", status, "text_version", "1", "resolution_note", "Kept.")
		if page.Code != http.StatusConflict && page.Code != http.StatusUnprocessableEntity {
			t.Errorf("%q: got %d, want 409 or 422", status, page.Code)
		}
		page.has("Kept.")
	}
	if got := r.get(p.ID); got.Status != proposal.Open || got.Version != 1 {
		t.Errorf("got %v %v, want Status %v, Version 1", got.Status, got.Version, proposal.Open)
	}
	// A form redirects only to pages of the org.
	r.ada.post(at, "status", "approved", "text_version", "1", "back", "https://evil.example/").leads("/proposals/" + p.ID)
	r.ada.get("/proposals/" + p.ID + "/decide").leads("/proposals/" + p.ID)
}

func TestADraftIsPublishedByAnAdmin(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	p := r.submit(func(s *proposal.Submission) { s.Status = proposal.Draft })
	at := "/proposals/" + p.ID
	r.bob.get(at).has("Only an admin of the org can publish a draft").lacks("Publish</button>")
	r.bob.post(at+"/decide", "status", "open", "text_version", "1").want(http.StatusForbidden)
	r.ada.get(at).has("Publish</button>")
	r.ada.post(at+"/decide", "status", "open", "text_version", "1").leads(at)
	if got := r.get(p.ID).Status; got != proposal.Open {
		t.Errorf("got %v, want %v", got, proposal.Open)
	}
}

func TestADuplicateIsRejected(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	first, second := r.submit(), r.submit()
	at := "/proposals/" + second.ID
	r.ada.get(at).has("Likely duplicates", `name="duplicate_of" value="`+first.ID+`"`, "Reject as duplicate of this")
	r.bob.get(at).has("Likely duplicates").lacks(`name="duplicate_of"`)
	for _, bad := range []string{"x", second.ID, "prop-01k5x8r2m4v7c9w3q6z1t0h8ye"} {
		r.ada.post(at+"/decide", "status", "rejected", "text_version", "1", "duplicate_of", bad, "resolution_note", "Kept.").
			want(http.StatusUnprocessableEntity).has(`id="err-duplicate_of"`, "Kept.", `value="`+bad+`"`)
	}
	r.ada.post(at+"/decide", "status", "rejected", "text_version", "1", "duplicate_of", first.ID).leads(at)
	r.ada.get(at).has("Duplicate of", "/orgs/acme/proposals/"+first.ID, "as a duplicate of", "Why it was rejected")
	if got := r.get(second.ID); got.DuplicateOf != first.ID || got.Status != proposal.Rejected {
		t.Errorf("got %+v, want DuplicateOf %v, Status %v", got, first.ID, proposal.Rejected)
	}
	// The field is also sent by the other buttons, and used only for a rejection.
	r.ada.post("/proposals/"+first.ID+"/decide", "status", "approved", "text_version", "1", "duplicate_of", second.ID).
		leads("/proposals/" + first.ID)
}

func TestSavedNotes(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	p := r.submit()
	at := "/proposals/" + p.ID
	a := r.access("user:ada", identity.ManageNotes, identity.Admin)
	note, err := r.proposals.CreateNote(t.Context(), a,
		proposal.NoteCreation{Title: "Too large " + evil, Text: "Split it, please. " + evil})
	if err != nil {
		t.Fatal(err)
	}
	r.ada.get(at).has(`<option value="`+note.ID+`"`, "Too large").lacks("<script>alert", "<img")
	r.bob.get(at).lacks(note.ID)
	r.ada.post(at+"/decide", "status", "rejected", "text_version", "1", "saved_note", "note-gone").
		want(http.StatusUnprocessableEntity).
		has(`id="err-saved_note"`)
	r.ada.post(at+"/decide", "status", "rejected", "text_version", "1", "saved_note", note.ID).leads(at)
	if got := r.get(p.ID).ResolutionNote; got != note.Text {
		t.Errorf("got %v, want %v", got, note.Text)
	}
	r.move(p.ID, proposal.Open)
	r.ada.post(at+"/decide", "status", "rejected", "text_version", "1", "saved_note", note.ID, "resolution_note",
		"My own.").leads(at)
	if got := r.get(p.ID).ResolutionNote; got != "My own." {
		t.Errorf("got %v, want My own.", got)
	}
}
