package proposal

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/text"
)

// Current is the input of a decision: the proposal and the actor's own vote. Both are locked
// until the change is written.
type Current struct {
	Proposal Proposal
	Vote     *Vote // nil if the actor has not voted
	// Original is the proposal of which this one is a duplicate, also locked. It is nil if
	// none was named, or if the org has none with that id.
	Original *Proposal
}

// Change is the result of a decision, which the store writes atomically.
type Change struct {
	Proposal Proposal // the complete new record; the store sets its Version
	Vote     *Vote    // the actor's new vote; nil if there is none
	Entry    Entry    // of the history; the store sets its Seq. Without a kind nothing has changed
	Followup *Followup
}

// Followup is the follow-up that approval creates.
type Followup struct {
	ID          string
	Title       string
	Description string
	TextHash    string // of the approved text
}

// TextHash returns a hash of the text that an admin decides on.
func (p *Proposal) TextHash() string {
	h := sha256.New()
	for _, s := range p.text() {
		// The length distinguishes ("ab","c") from ("a","bc").
		n := len(s)
		h.Write([]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
		h.Write([]byte(s))
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// text returns the fields whose changes TextVersion counts.
func (p *Proposal) text() [3]string { return [3]string{p.Title, p.Problem, p.SuggestedFix} }

// Actor is the principal who acts, and the time.
type Actor struct {
	Viewer
	At time.Time
}

// decideVote casts or replaces the actor's vote.
func decideVote(cur Current, by Actor, choice Choice, comment string) (Change, error) {
	p, err := votable(cur, by)
	if err != nil {
		return Change{}, err
	}
	if cur.Vote != nil {
		count(&p, by, cur.Vote.Choice, -1)
	}
	count(&p, by, choice, +1)
	p.UpdatedAt = by.At
	v := Vote{Voter: by.Principal.Ref(), Choice: choice, Comment: comment, VotedAt: by.At}
	return Change{
		Proposal: p, Vote: &v,
		Entry: Entry{At: by.At, Actor: v.Voter, Kind: Voted, Choice: choice, Comment: comment},
	}, nil
}

// decideWithdrawal withdraws the actor's vote.
func decideWithdrawal(cur Current, by Actor) (Change, error) {
	p, err := votable(cur, by)
	if err != nil {
		return Change{}, err
	}
	if cur.Vote == nil {
		return Change{}, errs.ErrNotFound
	}
	count(&p, by, cur.Vote.Choice, -1)
	p.UpdatedAt = by.At
	return Change{
		Proposal: p,
		Entry:    Entry{At: by.At, Actor: by.Principal.Ref(), Kind: VoteWithdrawn, Choice: cur.Vote.Choice},
	}, nil
}

func votable(cur Current, by Actor) (Proposal, error) {
	p := cur.Proposal
	if !p.VisibleTo(by.Viewer) {
		return p, errs.ErrNotFound
	}
	if p.Status != Open {
		return p, errs.New(errs.Conflict, "proposal.not_open",
			"only open proposals can be voted on, and this one is %s", p.Status)
	}
	return p, nil
}

// count adds n to the number of votes.
func count(p *Proposal, by Actor, c Choice, n int) {
	all, agents := &p.VotesFor, &p.AgentsFor
	if c == Against {
		all, agents = &p.VotesAgainst, &p.AgentsAgainst
	}
	*all += n
	if by.Principal.Kind == identity.Agent {
		*agents += n
	}
}

// decideStatus changes the status according to the table. newFollowupID is used by approval
// only.
func decideStatus(cur Current, by Actor, r Resolution, newFollowupID string) (Change, error) {
	p := cur.Proposal
	if !p.VisibleTo(by.Viewer) {
		return Change{}, errs.ErrNotFound
	}
	if err := matchVersion(p, r.IfVersion); err != nil {
		return Change{}, err
	}
	if err := matchText(p, r.IfTextVersion); err != nil {
		return Change{}, err
	}
	if !allowed(p.Status, r.Status) {
		return Change{}, notAllowed(p.Status, r.Status)
	}
	if r.DuplicateOf != "" {
		if err := checkOriginal(cur, by, r.DuplicateOf); err != nil {
			return Change{}, err
		}
		if text.Blank(r.Note) {
			if r.Note = "Duplicate of " + cur.Original.ID; cur.Original.Status != Draft { // its title is not public
				r.Note += ": " + cur.Original.Title
			}
		}
	}
	if r.Status == Rejected && text.Blank(r.Note) {
		return Change{}, errs.InvalidFields(errNoReason)
	}
	from := p.Status
	p.Status, p.UpdatedAt = r.Status, by.At
	// Reopening clears the note; the earlier one stays in the history.
	p.ResolutionNote, p.DuplicateOf = r.Note, r.DuplicateOf
	c := Change{
		Vote: cur.Vote,
		Entry: Entry{
			At: by.At, Actor: by.Principal.Ref(), Kind: StatusChanged, From: from, To: r.Status, Note: r.Note,
			DuplicateOf: r.DuplicateOf,
		},
	}
	if r.Status == Approved {
		p.FollowupID, p.FollowupStatus = newFollowupID, "open"
		c.Followup = &Followup{ID: newFollowupID, Title: p.Title, Description: p.SuggestedFix, TextHash: p.TextHash()}
	}
	c.Proposal = p
	return c, nil
}

var errNoReason = errs.Field{
	Path: errs.At("resolution_note"), Message: "is required to reject a proposal: give the reason",
}

// checkOriginal refuses an original that does not exist or that would form a cycle.
func checkOriginal(cur Current, by Actor, id string) error {
	wrong := func(msg string) error {
		return errs.InvalidFields(errs.Field{Path: errs.At("duplicate_of"), Message: msg})
	}
	switch o := cur.Original; {
	case id == cur.Proposal.ID:
		return wrong("must be another proposal")
	case o == nil || !o.VisibleTo(by.Viewer):
		return wrong("must be the id of an existing proposal")
	case o.DuplicateOf == cur.Proposal.ID:
		return wrong("is itself a duplicate of this proposal")
	}
	return nil
}

func allowed(from, to Status) bool {
	for _, s := range from.Next() {
		if s == to {
			return true
		}
	}
	return false
}

func notAllowed(from, to Status) error {
	e := errs.New(errs.Conflict, "proposal.transition_not_allowed", "a proposal cannot go from %s to %s", from, to)
	e.Allowed = []string{}
	for _, s := range from.Next() {
		e.Allowed = append(e.Allowed, string(s))
	}
	return e
}

// decideEdit changes a proposal that is a draft or open.
func decideEdit(cur Current, by Actor, ed Edit) (Change, error) {
	p := cur.Proposal
	if !p.VisibleTo(by.Viewer) {
		return Change{}, errs.ErrNotFound
	}
	if !by.Admin && p.SubmittedBy != by.Principal.Ref() {
		return Change{}, errs.New(errs.Forbidden, "proposal.not_yours",
			"only %s or a caller with %s may edit this proposal", p.SubmittedBy, identity.Admin)
	}
	if err := matchVersion(p, ed.IfVersion); err != nil {
		return Change{}, err
	}
	if err := matchText(p, ed.IfTextVersion); err != nil {
		return Change{}, err
	}
	if p.Status != Draft && p.Status != Open {
		return Change{}, errs.New(errs.Conflict, "proposal.not_editable",
			"a proposal can be edited while it is draft or open, and this one is %s", p.Status)
	}
	entry, text := Entry{At: by.At, Actor: by.Principal.Ref(), Kind: Edited}, p.text()
	edit(&entry, "title", &p.Title, ed.Title)
	edit(&entry, "category", &p.Category, ed.Category)
	edit(&entry, "problem", &p.Problem, ed.Problem)
	edit(&entry, "suggested_fix", &p.SuggestedFix, ed.SuggestedFix)
	edit(&entry, "priority", &p.Priority, ed.Priority)
	if len(entry.Changes) == 0 {
		return Change{Proposal: p, Vote: cur.Vote}, nil
	}
	if p.text() != text {
		p.TextVersion++
	}
	p.UpdatedAt = by.At
	return Change{Proposal: p, Vote: cur.Vote, Entry: entry}, nil
}

func edit[S ~string](e *Entry, field string, old, val *S) {
	if val == nil || *val == *old {
		return
	}
	e.Changes = append(e.Changes, FieldChange{Field: field, From: string(*old), To: string(*val)})
	*old = *val
}

// matchVersion refuses a command that was based on another version of the record. If want is
// nil, it accepts any version.
func matchVersion(p Proposal, want *int64) error {
	if want == nil || *want == p.Version {
		return nil
	}
	return errs.New(errs.Stale, "request.stale",
		"the proposal has changed since you read it; fetch it again and repeat the request")
}

// matchText refuses a command that was based on another version of the text. If want is nil, it
// accepts any version.
func matchText(p Proposal, want *int64) error {
	if want == nil || *want == p.TextVersion {
		return nil
	}
	return errs.New(errs.Stale, "proposal.text_changed",
		"the text changed while you read it: you decided on version %d, and it has version %d now; read it again, "+
			"then repeat the request with the new text_version", *want, p.TextVersion)
}
