package rest

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAProposalIsRejectedAsADuplicate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada, bob := w.admin("acme", "user:ada"), w.member("acme", "user:bob")
	original, copied := w.submit(bob, "acme"), w.submit(bob, "acme")
	foreign := w.submit(w.member("globex", "user:eve"), "globex")
	path := proposals + "/" + copied.ID
	for body, where := range map[string]string{
		`{"status":"rejected","duplicate_of":"` + copied.ID + `"}`:                     "/duplicate_of",
		`{"status":"rejected","duplicate_of":"` + foreign.ID + `"}`:                    "/duplicate_of",
		`{"status":"rejected","duplicate_of":"x"}`:                                     "/duplicate_of",
		`{"status":"rejected","duplicate_of":""}`:                                      "/duplicate_of",
		`{"status":"approved","duplicate_of":"` + original.ID + `"}`:                   "/duplicate_of",
		`{"duplicate_of":"` + original.ID + `"}`:                                       "/duplicate_of",
		`{"title":"x","duplicate_of":"` + original.ID + `"}`:                           "/duplicate_of",
		`{"status":"rejected"}`:                                                        "/resolution_note",
		`{"status":"rejected","duplicate_of":"` + original.ID + `","text_version":-1}`: "/text_version",
	} {
		if got := at(w.do(ada, "PATCH", path, body).want(422).problem()); len(got) != 1 || got[0] != where {
			t.Errorf("%s: got %v, want len(got) 1, got[0] %v", body, got, where)
		}
	}
	w.do(bob, "PATCH", path, `{"status":"rejected","duplicate_of":"`+original.ID+`"}`).want(403)
	var p Proposal
	w.do(ada, "PATCH", path, `{"status":"rejected","duplicate_of":"`+original.ID+`"}`).want(200).into(&p)
	if p.DuplicateOf == nil || *p.DuplicateOf != original.ID ||
		p.ResolutionNote != "Duplicate of "+original.ID+": "+original.Title {
		t.Errorf("got %+v, want DuplicateOf %v, ResolutionNote %v", p, original.ID,
			"Duplicate of "+original.ID+": "+original.Title)
	}
	var h History
	w.do(bob, "GET", path+"/history", "").want(200).into(&h)
	if last := h.History[len(h.History)-1]; last.DuplicateOf != original.ID || last.Note != p.ResolutionNote {
		t.Errorf("got %+v, want DuplicateOf %v, Note %v", last, original.ID, p.ResolutionNote)
	}
	w.do(ada, "PATCH", proposals+"/"+original.ID, `{"status":"rejected","duplicate_of":"`+copied.ID+`"}`).want(422)
	var reopened Proposal
	w.do(ada, "PATCH", path, `{"status":"open"}`).want(200).into(&reopened)
	if reopened.DuplicateOf != nil || reopened.ResolutionNote != "" {
		t.Errorf("got %+v, want DuplicateOf nil, ResolutionNote empty", reopened)
	}
}

func TestProposalsAreDecidedTogether(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada, bob := w.admin("acme", "user:ada"), w.member("acme", "user:bob")
	var ids, items []string
	for range 4 {
		id := w.submit(bob, "acme").ID
		ids = append(ids, id)
		items = append(items, `{"id":"`+id+`","text_version":1}`)
	}
	w.do(bob, "PATCH", proposals+"/"+ids[1], `{"title":"Another"}`).want(200)
	w.do(ada, "PATCH", proposals+"/"+ids[2], `{"status":"approved"}`).want(200)
	url, body := proposals+"/decisions", `{"status":"approved","items":[`+strings.Join(items, ",")+`]}`
	w.do(bob, "POST", url, body).want(403)
	var first, again DecisionResults
	w.do(ada, "POST", url, body, "Idempotency-Key", "k").want(200).into(&first)
	w.do(ada, "POST", url, body, "Idempotency-Key", "k").want(200).into(&again)
	if first.Done != 2 || first.Failed != 2 || len(first.Results) != 4 {
		t.Fatalf("got %+v, want Done 2, Failed 2, len(Results) 4", first)
	}
	for i, want := range []string{"", "412 proposal.text_changed", "409 proposal.transition_not_allowed", ""} {
		r, got := first.Results[i], ""
		if r.Error != nil {
			got = fmt.Sprint(r.Error.Status, " ", r.Error.Code)
		}
		if r.ID != ids[i] || got != want || (r.FollowupID != nil) != (want == "") || (r.Status != nil) != (want == "") {
			t.Errorf("%d: got %+v (%s), want %q", i, r, got, want)
		}
		if r.Error == nil && (!again.Results[i].Replayed || *again.Results[i].FollowupID != *r.FollowupID) {
			t.Errorf("%d, repeated: got %+v, want a replay of %+v", i, again.Results[i], r)
		}
	}
	var followups FollowupList
	w.do(bob, "GET", "/api/v1/orgs/acme/followups", "").want(200).into(&followups)
	if followups.Total != 3 {
		t.Errorf("%d follow-ups; want 3", followups.Total)
	}
	many := make([]string, 101)
	for i := range many {
		many[i] = fmt.Sprintf(`{"id":"prop-%026d","text_version":1}`, i)
	}
	for body, where := range map[string][]string{
		`{}`:                               {"/status", "/items"},
		`{"status":"open","items":[]}`:     {"/items"},
		`{"status":"rejected","items":[]}`: {"/resolution_note", "/items"},
		`{"status":"approved","items":[` + items[0] + `,` + items[0] + `]}`: {"/items/1/id"},
		`{"status":"approved","items":[{"id":"x"}]}`:                        {"/items/0/id", "/items/0/text_version"},
		`{"status":"approved","items":[` + strings.Join(many, ",") + `]}`:   {"/items"},
		`{"status":"approved","items":"x"}`:                                 {"/items"},
	} {
		if diff := cmp.Diff(where, at(w.do(ada, "POST", url, body).want(422).problem())); diff != "" {
			t.Errorf("%.80s: mismatch (-want +got):\n%s", body, diff)
		}
	}
}

func TestGroupsOfProposals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bob, bot := w.member("acme", "user:bob"), w.member("acme", "agent:fixer")
	w.submit(bob, "acme")
	for range 3 {
		w.do(bot, "POST", frictionURL, frictionBody)
	}
	w.submit(bot, "acme")
	type group struct {
		Key             string
		Count, Evidence int64
	}
	for query, want := range map[string][]group{
		"?by=submitter":                              {{"agent:fixer", 2, 0}, {"user:bob", 1, 0}},
		"?by=submitter&submitted_by_kind=user":       {{"user:bob", 1, 0}},
		"?by=submitter&status=rejected":              {},
		"?by=fingerprint":                            {{"registry:timeout", 1, 3}},
		"?by=fingerprint&status=all&q=registry+time": {{"registry:timeout", 1, 3}},
	} {
		var list ProposalGroups
		w.do(bob, "GET", proposals+"/groups"+query, "").want(200).into(&list)
		got := []group{}
		for _, g := range list.Groups {
			got = append(got, group{g.Key, g.Count, g.EvidenceCount})
			if g.OldestAt > g.NewestAt || g.OldestAt == "" {
				t.Errorf("%s: got %+v, want OldestAt before NewestAt", query, g)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: mismatch (-want +got):\n%s", query, diff)
		}
	}
	for _, query := range []string{"", "?by=colour", "?by=submitter&page=1"} {
		w.do(bob, "GET", proposals+"/groups"+query, "").want(422)
	}
	w.do(bob, "GET", "/api/v1/orgs/globex/proposals/groups?by=submitter", "").want(404)
}

func TestSimilarProposals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bob := w.member("acme", "user:bob")
	first, second := w.submit(bob, "acme").ID, w.submit(bob, "acme").ID
	w.submit(w.member("globex", "user:eve"), "globex")
	find := func(target string) []string {
		t.Helper()
		var list SimilarProposals
		w.do(bob, "GET", proposals+target, "").want(200).into(&list)
		out := []string{}
		for _, s := range list.Similar {
			out = append(out, s.ID)
			if s.Title != "Retry webhooks" || s.Excerpt != "They get lost." || s.Words < 1 {
				t.Errorf("got %+v, want the title, the excerpt and matching words", s)
			}
		}
		return out
	}
	for target, want := range map[string][]string{
		"/" + first + "/similar": {second},
		"/similar?title=" + url.QueryEscape("Retry the lost webhooks"):           {second, first},
		"/similar?limit=1&problem=" + url.QueryEscape("Lost webhooks: retry!"):   {second},
		"/similar?title=" + url.QueryEscape("An altogether different one, here"): {},
	} {
		if diff := cmp.Diff(want, find(target)); diff != "" {
			t.Errorf("%s: mismatch (-want +got):\n%s", target, diff)
		}
	}
	for _, target := range []string{
		"/similar", "/similar?title=x&limit=6", "/similar?title=" + strings.Repeat("x", 201),
		"/" + first + "/similar?limit=0",
	} {
		w.do(bob, "GET", proposals+target, "").want(422)
	}
	w.do(bob, "GET", proposals+"/prop-00000000000000000000000000/similar", "").want(404)
}

func TestSavedNotes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada, bob := w.admin("acme", "user:ada"), w.member("acme", "user:bob")
	const notes, body = "/api/v1/orgs/acme/notes", `{"title":"Out of scope","text":"This is out of scope."}`
	w.do(bob, "GET", notes, "").want(403)
	w.do(bob, "POST", notes, body).want(403)
	var n, again SavedNote
	w.do(ada, "POST", notes, body, "Idempotency-Key", "k").want(201).into(&n)
	res := w.do(ada, "POST", notes, body, "Idempotency-Key", "k").want(201)
	res.into(&again)
	if res.Header.Get("Idempotency-Replayed") != "true" || again != n || n.CreatedBy != "user:ada" {
		t.Errorf("got %+v, then %+v, want Idempotency-Replayed true, again %v, CreatedBy user:ada", n, again, n)
	}
	for body, where := range map[string][]string{
		`{}`:                          {"/title", "/text"},
		`{"title":"a\nb","text":" "}`: {"/title", "/text"},
		`{"title":"` + strings.Repeat("x", 101) + `","text":"a"}`:   {"/title"},
		`{"title":"a","text":"` + strings.Repeat("x", 20001) + `"}`: {"/text"},
	} {
		if diff := cmp.Diff(where, at(w.do(ada, "POST", notes, body).want(422).problem())); diff != "" {
			t.Errorf("%.80s: mismatch (-want +got):\n%s", body, diff)
		}
	}
	var list SavedNoteList
	w.do(ada, "GET", notes, "").want(200).into(&list)
	if diff := cmp.Diff([]SavedNote{n}, list.Notes); diff != "" {
		t.Errorf("mismatch (-want +got):\n%s", diff)
	}
	w.do(bob, "DELETE", notes+"/"+n.ID, "").want(403)
	w.do(w.admin("globex", "user:eve"), "DELETE", "/api/v1/orgs/globex/notes/"+n.ID, "").want(404)
	w.do(ada, "DELETE", notes+"/"+n.ID, "").want(200)
	w.do(ada, "DELETE", notes+"/"+n.ID, "").want(404)
	var log struct {
		Entries []struct{ Action, Outcome, Target string }
	}
	w.do(ada, "GET", "/api/v1/orgs/acme/audit?action=note.delete", "").want(200).into(&log)
	if len(log.Entries) != 2 || log.Entries[0].Outcome != "done" || log.Entries[1].Outcome != "refused" ||
		log.Entries[0].Target != n.ID {
		t.Errorf("got %+v, want two entries, done for %v and refused", log, n.ID)
	}
}
