package web

import (
	"net/http"
	"strconv"

	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
)

// pane is the proposal beside the list.
type pane struct {
	proposal.Proposal
	MyVote proposal.Choice
	Place  place
	Verbs  []verb // decisions that the member may make
	Notes  []proposal.SavedNote
	Votes  bool // the member may vote
}

// place is the position of a proposal in the list: "7 of 50".
type place struct {
	Position, Total int64
	Back            string // URL to open after a decision
}

// verb is a status change as a button.
type verb struct {
	Status proposal.Status
	Word   string // label of the button
	Done   string // past participle, as in "were approved"
	Class  string
}

// verbs are the buttons by target status. See verbOf.
var verbs = map[proposal.Status]verb{
	proposal.Approved: {proposal.Approved, "Approve", "approved", "primary"},
	proposal.Rejected: {proposal.Rejected, "Reject", "rejected", "danger"},
	proposal.Resolved: {proposal.Resolved, "Resolve", "resolved", "primary"},
	proposal.Open:     {proposal.Open, "Reopen", "opened", "primary"},
}

// publish is the button that opens a draft.
var publish = verb{proposal.Open, "Publish", "opened", "primary"}

// verbOf returns the button of a status change, the same on all pages.
func verbOf(from, to proposal.Status) verb {
	if from == proposal.Draft && to == proposal.Open {
		return publish
	}
	return verbs[to]
}

// verbsOf returns the buttons that the status allows.
func verbsOf(s proposal.Status) []verb {
	var out []verb
	for _, next := range s.Next() {
		out = append(out, verbOf(s, next))
	}
	return out
}

// panePage serves the pane for a script.
func (v *visit) panePage() error {
	form := v.r.URL.Query()
	number := func(name string) int64 {
		n, err := strconv.ParseInt(form.Get(name), 10, 64)
		if err != nil || n < 1 {
			return 0
		}
		return n
	}
	p, err := v.pane(v.r.PathValue("id"), place{number("pos"), number("of"), form.Get("back")})
	if err != nil {
		return err
	}
	view := page[*pane]{Base: v.base(), Path: v.base() + "/proposals", Me: v.member, Body: p}
	return v.writePart(http.StatusOK, "proposals", "pane", view)
}

// pane returns the data of the pane.
func (v *visit) pane(id string, at place) (*pane, error) {
	a, err := v.access(identity.ReadProposal)
	if err != nil {
		return nil, err
	}
	cur, err := v.Proposals.Get(v.r.Context(), a, id)
	if err != nil {
		return nil, err
	}
	if at.Back == "" {
		at.Back = v.base() + "/proposals"
	}
	p := &pane{Proposal: cur.Proposal, Place: at}
	if cur.Vote != nil {
		p.MyVote = cur.Vote.Choice
	}
	p.Votes = p.Status == proposal.Open && v.may(identity.VoteOnProposal)
	if v.may(identity.ResolveProposal) {
		p.Verbs = verbsOf(p.Status)
		p.Notes, err = v.savedNotes()
	}
	return p, err
}
