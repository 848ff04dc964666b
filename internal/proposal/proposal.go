// Package proposal has the rules for improvement proposals: who may see and change one, how
// votes are counted, and which status may follow which.
//
// Decisions (decide.go) are pure functions from the current state and a command to a change. A
// Store runs them in a transaction. The package contains no HTTP, JSON or SQL.
package proposal

import (
	"time"

	"github.com/parley-dev/parley/internal/identity"
)

// Status is the status of a proposal.
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

// transitions is the status table of section 3.1 of the specification. Other transitions are
// not allowed.
var transitions = map[Status][]Status{
	Draft:    {Open},
	Open:     {Approved, Rejected},
	Approved: {Resolved},
	Rejected: {Open},
}

// Next lists the statuses that may follow s.
func (s Status) Next() []Status { return transitions[s] }

// Category is the subject of a proposal.
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

// Priority is the urgency of a review.
type Priority string

// The priorities.
const (
	Low    Priority = "low"
	Normal Priority = "normal"
	High   Priority = "high"
)

// Priorities lists every priority from the least to the most urgent.
var Priorities = []Priority{Low, Normal, High}

// Rank returns the rank of a priority. Higher ranks are reviewed first.
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
	VotesFor       int // of people and agents
	VotesAgainst   int
	AgentsFor      int // the votes of agents in VotesFor
	AgentsAgainst  int
	ResolutionNote string
	DuplicateOf    string // the original, if it was rejected as a duplicate
	FollowupID     string // set by approval
	FollowupStatus string // of that follow-up at the time of the read; empty in lists
	Fingerprint    string // of the friction that filed it; empty if it was submitted
	Evidence       int64  // reports of that friction so far; grows without a new Version
	TextVersion    int64  // starts at 1; grows with every change of title, problem or suggested fix
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

// Resolvable reports whether the follow-up is done, so that an admin can resolve the proposal.
func (p *Proposal) Resolvable() bool { return p.Status == Approved && p.FollowupStatus == "done" }

// VisibleTo reports whether the viewer may see the proposal. Drafts are visible to their
// submitter and to admins only.
func (p *Proposal) VisibleTo(v Viewer) bool {
	return p.Org == v.Principal.Org && (p.Status != Draft || v.Admin || p.SubmittedBy == v.Principal.Ref())
}

// Viewer is a principal who reads proposals.
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

// EntryKind is the kind of a history entry.
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

// Entry is one entry of a proposal's history. Fields that do not apply to its kind are empty.
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

	DuplicateOf string // the original, if it was rejected as a duplicate
}
