// Package proposal holds the rules of improvement proposals: what one is, who
// may see and change it, how votes count and which status follows which.
//
// Decisions are pure functions from what is and what is asked to what shall be
// (see decide.go); a Store runs them inside a transaction. The package knows no
// HTTP, no JSON and no SQL.
package proposal

import (
	"time"

	"github.com/parley-dev/parley/internal/identity"
)

// Status is where a proposal stands.
type Status string

// The statuses.
const (
	Draft    Status = "draft"
	Open     Status = "open"
	Approved Status = "approved"
	Rejected Status = "rejected"
	Resolved Status = "resolved"
)

// Statuses lists every status.
var Statuses = []Status{Draft, Open, Approved, Rejected, Resolved}

// transitions is the status table of section 3.1 of the specification. What is
// not in it is not permitted.
var transitions = map[Status][]Status{
	Draft:    {Open},
	Open:     {Approved, Rejected},
	Approved: {Resolved},
	Rejected: {Open},
}

// Next lists the statuses that may follow s.
func (s Status) Next() []Status { return transitions[s] }

// Category says what a proposal is about.
type Category string

// The categories.
const (
	Reliability   Category = "reliability"
	Performance   Category = "performance"
	Security      Category = "security"
	Process       Category = "process"
	Feature       Category = "feature"
	Documentation Category = "documentation"
)

// Categories lists every category.
var Categories = []Category{Reliability, Performance, Security, Process, Feature, Documentation}

// Priority says how soon a proposal should be reviewed.
type Priority string

// The priorities.
const (
	Low    Priority = "low"
	Normal Priority = "normal"
	High   Priority = "high"
)

// Priorities lists every priority from the least to the most urgent.
var Priorities = []Priority{Low, Normal, High}

// Rank orders priorities; a higher one is reviewed first.
func (p Priority) Rank() int {
	for i, known := range Priorities {
		if p == known {
			return i
		}
	}
	return -1
}

// Proposal states a problem and a suggested fix.
type Proposal struct {
	Org            string
	ID             string
	Title          string
	Category       Category
	Problem        string
	SuggestedFix   string
	Priority       Priority
	Status         Status
	SubmittedBy    string // the submitter's ref, e.g. "agent:scout"
	SubmittedAt    time.Time
	UpdatedAt      time.Time
	VotesFor       int // of people and agents together
	VotesAgainst   int
	AgentsFor      int // of VotesFor, those of agents
	AgentsAgainst  int
	ResolutionNote string
	DuplicateOf    string // the proposal that it was rejected for; empty: none
	FollowupID     string // set by approval
	FollowupStatus string // of that follow-up when this was read; lists leave it out
	Fingerprint    string // of the friction that filed it; empty: somebody submitted it
	Evidence       int64  // reports of that friction so far; grows without a new Version
	TextVersion    int64  // starts at 1 and grows with every change of title, problem or suggested fix
	Version        int64  // grows with every change, votes included
}

// Tally counts votes.
type Tally struct{ For, Against int }

// People counts the votes of people.
func (p *Proposal) People() Tally {
	return Tally{For: p.VotesFor - p.AgentsFor, Against: p.VotesAgainst - p.AgentsAgainst}
}

// Agents counts the votes of agents.
func (p *Proposal) Agents() Tally { return Tally{For: p.AgentsFor, Against: p.AgentsAgainst} }

// Resolvable reports whether the work that approval asked for is done, so that an
// admin can resolve the proposal.
func (p *Proposal) Resolvable() bool { return p.Status == Approved && p.FollowupStatus == "done" }

// VisibleTo reports whether the viewer may see the proposal: a draft is seen by
// its submitter and by admins only.
func (p *Proposal) VisibleTo(v Viewer) bool {
	return p.Org == v.Principal.Org && (p.Status != Draft || v.Admin || p.SubmittedBy == v.Principal.Ref())
}

// Viewer is who looks.
type Viewer struct {
	Principal identity.Principal
	Admin     bool // sees every draft of the org
}

// Choice is the direction of a vote.
type Choice string

// The choices.
const (
	For     Choice = "for"
	Against Choice = "against"
)

// Choices lists every choice.
var Choices = []Choice{For, Against}

// Vote is one principal's vote on one proposal.
type Vote struct {
	Voter   string // a ref
	Choice  Choice
	Comment string
	VotedAt time.Time
}

// EntryKind is the sort of a history entry.
type EntryKind string

// The kinds of history entries.
const (
	Submitted     EntryKind = "submitted"
	Edited        EntryKind = "edited"
	StatusChanged EntryKind = "status_changed"
	Voted         EntryKind = "voted"
	VoteWithdrawn EntryKind = "vote_withdrawn"
)

// FieldChange is one edited field.
type FieldChange struct {
	Field string
	From  string
	To    string
}

// Entry is one line of a proposal's history. Fields that do not apply to its
// kind are empty.
type Entry struct {
	Seq     int64 // 1 is the submission
	At      time.Time
	Actor   string // a ref
	Kind    EntryKind
	From    Status
	To      Status
	Note    string
	Choice  Choice
	Comment string
	Changes []FieldChange

	DuplicateOf string // the proposal that it was rejected for
}
