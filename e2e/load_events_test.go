package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// eventRow is an event about a proposal or a follow-up.
type eventRow struct {
	Seq               int64
	ID, Type, Subject string
	Data              struct {
		ID, Status, Title string
		ProposalID        *string `json:"proposal_id"`
		VotesFor          int     `json:"votes_for"`
		VotesAgainst      int     `json:"votes_against"`
	}
}

// events reads the whole log of the org. It must have no gaps.
func (f *fleet) events(t *testing.T) []eventRow {
	t.Helper()
	var all []eventRow
	for after := int64(0); ; {
		var page struct {
			Events []eventRow
			Last   int64 `json:"last_seq"`
			Reset  bool
		}
		f.read(t, fmt.Sprintf("/events?limit=100&after=%d", after), &page)
		if t.Failed() {
			return all
		}
		for _, e := range page.Events {
			if after++; e.Seq != after {
				t.Fatalf("event %d follows event %d, want no gap", e.Seq, after-1)
			}
			all = append(all, e)
		}
		if page.Reset || page.Last != after {
			t.Fatalf("last_seq is %d after event %d (reset: %v), want the same", page.Last, after, page.Reset)
		}
		if len(page.Events) == 0 {
			return all
		}
	}
}

// verifyEvents compares the log with the rows: every change has its event, and every event its
// change.
func (f *fleet) verifyEvents(t *testing.T, byID map[string]proposalRow, followups map[string]int) {
	t.Helper()
	type history struct {
		submitted, approved, followups int
		last                           eventRow
	}
	ids, of := map[string]bool{}, map[string]*history{}
	at := func(id string) *history {
		if of[id] == nil {
			of[id] = &history{}
		}
		return of[id]
	}
	for _, e := range f.events(t) {
		if ids[e.ID] {
			t.Errorf("two events have the id %s", e.ID)
		}
		ids[e.ID] = true
		switch {
		case e.Type == "followup.created" && e.Data.ProposalID != nil:
			at(*e.Data.ProposalID).followups++
		case strings.HasPrefix(e.Type, "proposal."):
			h := at(strings.TrimPrefix(e.Subject, "proposal:"))
			switch e.Type {
			case "proposal.submitted":
				h.submitted++
			case "proposal.approved":
				h.approved++
			}
			h.last = e
		}
	}
	for id, h := range of {
		if _, ok := byID[id]; !ok {
			t.Errorf("%s has events but is not listed: %+v", id, h)
		}
	}
	for id, r := range byID {
		h, approved := at(id), 0
		if r.Status == "approved" {
			approved = 1
		}
		if h.submitted != 1 || h.approved != approved || h.followups != followups[id] {
			t.Errorf("%s is %s with %d follow-ups; its events: %d submitted, %d approved, %d follow-ups created",
				id, r.Status, followups[id], h.submitted, h.approved, h.followups)
		}
		d := h.last.Data
		if d.Title != r.Title || d.Status != r.Status || d.VotesFor != r.VotesFor || d.VotesAgainst != r.VotesAgainst {
			t.Errorf("the last event of %s has %+v, want the row: %+v", id, h.last, r)
		}
	}
}
