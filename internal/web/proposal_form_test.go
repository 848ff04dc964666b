package web_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
)

// count returns the number of proposals of the org.
func (r *room) count() int64 {
	r.Helper()
	page, err := r.proposals.List(r.Context(), r.access("user:ada", identity.ListProposals, identity.Admin),
		proposal.Query{Status: proposal.All})
	if err != nil {
		r.Fatal(err)
	}
	return page.Total
}

func TestANewProposal(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	r.bob.get("/proposals/new").want(http.StatusOK).
		has("Something fails, or has to be repeated by hand.", `value="normal" id="priority-normal" checked`, `value="draft"`)
	form := []string{
		"title", " Cache the index ", "problem", "Slow.\r\n\r\nVery.", "suggested_fix", "Cache it.", "category",
		"performance",
		"priority", "high", "status", "open", "once", "t1",
	}
	first := r.bob.post("/proposals/new", form...).want(http.StatusSeeOther).Header.Get("Location")
	for range 2 {
		if again := r.bob.post("/proposals/new", form...).want(http.StatusSeeOther).Header.Get("Location"); again != first {
			t.Errorf("the second submission leads to %s, want %s as the first one", again, first)
		}
	}
	if n := r.count(); n != 1 {
		t.Errorf("%d proposals; want 1", n)
	}
	p := r.get(first[strings.LastIndex(first, "/")+1:])
	if p.Title != "Cache the index" || p.Problem != "Slow.\n\nVery." || p.Priority != proposal.High ||
		p.Status != proposal.Open || p.SubmittedBy != "user:bob" {
		t.Errorf("got %+v, want Title Cache the index, Problem Slow.\n\nVery., Priority %v, Status %v, SubmittedBy user:bob",
			p, proposal.High, proposal.Open)
	}
	r.bob.get("/proposals/"+p.ID).has("Your proposal is open for votes.", "high")
	// The back button, and another text.
	r.bob.post("/proposals/new", append(form, "title", "x")...).want(http.StatusConflict).has("This form was already sent")
	draft := r.bob.post("/proposals/new", "title", "Later", "problem", "p", "suggested_fix", "f", "category", "process",
		"status", "draft").
		want(http.StatusSeeOther).Header.Get("Location")
	r.cat.get(strings.TrimPrefix(draft, "/orgs/acme")).want(http.StatusNotFound)
	r.bob.get(strings.TrimPrefix(draft, "/orgs/acme")).has("Your draft is saved.")
}

func TestAFormKeepsWhatWasTyped(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	page := r.bob.post("/proposals/new", "title", strings.Repeat("t", 201), "problem", "\n  My problem", "suggested_fix",
		" ", "category", "nonsense", "priority", "low", "status", "open").
		want(http.StatusUnprocessableEntity)
	page.has("Nothing was saved", strings.Repeat("t", 201), "My problem", `id="err-title"`, `id="err-suggested_fix"`,
		`id="err-category"`, `value="low" id="priority-low" checked`)
	page.lacks(`id="err-problem"`)
	if r.count() != 0 {
		t.Error("something was saved")
	}
	// Buttons that save nothing.
	p := r.submit()
	r.bob.post("/proposals/new", "title", "Retry the deploy step", "problem", "**bold** <b>", "do", "preview", "status",
		"open").want(http.StatusOK).
		has(`id="preview"`, `value="Retry the deploy step"`)
	r.bob.post("/proposals/new", "title", "Retry the deploy step", "problem", "kept", "do", "check").want(http.StatusOK).
		has(p.ID, "kept")
	r.bob.post("/proposals/new", "title", "Nothing like it", "do", "check").want(http.StatusOK).
		has("No likely duplicates.")
	r.bob.get("/proposals/similar?title=Retry+the+deploy+step&problem=x").want(http.StatusOK).has(p.ID).
		lacks("<html", "<nav")
	r.bob.get("/proposals/similar?title=Retry+the+deploy+step&except=" + p.ID).lacks(p.ID)
	r.bob.get("/proposals/similar").want(http.StatusOK)
	// The pages work without the search while it is busy.
	r.busy.Store(true)
	r.bob.get("/proposals/" + p.ID).want(http.StatusOK).has("Retry the deploy step").lacks("Likely duplicates")
	r.bob.post("/proposals/new", "do", "check", "title", "Half a title", "problem", "Kept words.").want(http.StatusOK).
		has("The search is busy.", "Kept words.", `value="Half a title"`)
	if r.count() != 1 {
		t.Error("looking has saved something")
	}
}

func TestEditing(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	p := r.submit()
	at := "/proposals/" + p.ID
	r.cat.get(at + "/edit").want(http.StatusForbidden)
	r.cat.post(at+"/edit", "title", "x", "text_version", "1").want(http.StatusForbidden)
	r.bob.get(at+"/edit").want(http.StatusOK).has(`value="Retry the deploy step"`, `name="text_version" value="1"`,
		`name="was_category" value="reliability"`)
	form := func(title, fix, version, once string) []string {
		return []string{
			"title", title, "problem", "It fails when the registry is busy.\r\n\r\nOften.", "suggested_fix", fix, "category",
			"reliability",
			"priority", "normal", "was_category", "reliability", "was_priority", "normal", "text_version", version, "once",
			once, "do", "save",
		}
	}
	// Votes and a new priority do not make an edit fail, and the edit does not undo them.
	r.vote("agent:scout", p.ID, proposal.For, "")
	high := proposal.High
	r.edit(p.ID, proposal.Edit{Priority: &high})
	r.bob.post(at+"/edit", form("Retry the deploy step twice", "Retry it three times.", "1", "t1")...).leads(at)
	r.bob.post(at+"/edit", form("Retry the deploy step twice", "Retry it three times.", "1", "t1")...).leads(at) // again
	got := r.get(p.ID)
	if got.Title != "Retry the deploy step twice" || got.Priority != proposal.High || got.TextVersion != 2 ||
		got.Problem != p.Problem {
		t.Errorf("got %+v, want Title Retry the deploy step twice, Priority %v, TextVersion 2, Problem %v", got,
			proposal.High, p.Problem)
	}
	// Somebody else has changed the text.
	page := r.bob.post(at+"/edit", form("My title", "My own words.", "1", "t2")...).want(http.StatusPreconditionFailed)
	page.has("My own words.", `value="My title"`, `name="text_version" value="2"`, `id="changed"`, "twice</ins>")
	if got := r.get(p.ID).Title; got != "Retry the deploy step twice" {
		t.Errorf("got %v, want Retry the deploy step twice", got)
	}
	r.bob.post(at+"/edit", form("My title", "My own words.", "2", "t3")...).leads(at)
	r.bob.get(at).has("Your changes are saved.", "edited title, suggested fix", "What changed")
	// Invalid fields.
	r.bob.post(at+"/edit", form("", "Mine.", "3", "t4")...).want(http.StatusUnprocessableEntity).
		has(`id="err-title"`, "Mine.")
	r.bob.post(at+"/edit", form("x", "Mine.", "", "t5")...).want(http.StatusUnprocessableEntity).has("Mine.")
	r.move(p.ID, proposal.Approved)
	r.bob.get(at + "/edit").want(http.StatusConflict)
	r.bob.post(at+"/edit", form("x", "Mine.", "3", "t6")...).want(http.StatusConflict).has("Mine.")
}
