package proposal

import (
	"context"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/idempotency"
	"github.com/parley-dev/parley/internal/identity"
)

// Outcome is the result of a command. It is stored under the idempotency key.
type Outcome struct {
	Proposal Proposal
	Vote     *Vote // the actor's own vote afterwards
	Replaced bool  // the actor had voted before
	Replayed bool  // the command was carried out before; nothing was done now
}

// Store keeps proposals, their votes and their history. Every method is scoped by org; for an id
// of another org the error is NotFound.
type Store interface {
	// Insert writes a new proposal and the first entry of its history. If once was used before,
	// it writes nothing and returns the earlier outcome.
	Insert(ctx context.Context, p Proposal, by identity.Principal, once *idempotency.Key) (Outcome, error)
	// Update locks the proposal and the actor's vote, runs decide and writes the change,
	// including the follow-up, in one transaction. decide may run more than once and must be
	// pure. original is the id of another proposal to lock and read; it may be empty.
	Update(ctx context.Context, id, original string, by identity.Principal, once *idempotency.Key,
		decide func(Current) (Change, error)) (Outcome, error)
	// Get returns the proposal and the viewer's own vote on it.
	Get(ctx context.Context, org, id string, viewer identity.Principal) (Current, error)
	// List returns up to Limit+1 items, so that the caller can tell whether more follow, and
	// the total number of matches. The filter has no words.
	List(ctx context.Context, f Filter) ([]Item, int64, error)
	// Search is List for a filter with words.
	Search(ctx context.Context, f Filter) (Found, error)
	// Counts returns the number of matches by status and ignores the status of the filter. A
	// status without matches may be missing.
	Counts(ctx context.Context, f Filter) (map[Status]int64, error)
	// Groups returns the largest groups of matches, the largest first.
	Groups(ctx context.Context, f Filter, by GroupBy) ([]Group, error)
	// Similar returns up to SimilarCandidates proposals with some of the words, in any order:
	// open, approved and rejected ones, and drafts of the viewer.
	Similar(ctx context.Context, l Likeness) ([]Proposal, error)
	// Notes lists the saved notes by title.
	Notes(ctx context.Context, org string) ([]SavedNote, error)
	// CreateNote writes the note and the audit entry, unless the quota is used up.
	CreateNote(ctx context.Context, n SavedNote, e identity.AuditEntry, most identity.Quota) (SavedNote, error)
	// DeleteNote deletes the note and writes the audit entry that entry returns.
	DeleteNote(ctx context.Context, org, id string, entry func(SavedNote) identity.AuditEntry) (SavedNote, error)
	// Votes and History return one page, oldest first, and the total number.
	Votes(ctx context.Context, org, id string, offset int64, limit int) ([]Vote, int64, error)
	History(ctx context.Context, org, id string, offset int64, limit int) ([]Entry, int64, error)
	// Decisions returns the approvals and rejections since a time, newest first. It reads up to most
	// changes of status; more reports that there may be others.
	Decisions(ctx context.Context, org string, since time.Time, most int) (list []Decided, more bool, err error)
	// DataVersion returns a number that changes with every committed change to the org's
	// proposals, and of the status of their follow-ups. Two reads under the same version return
	// the same.
	DataVersion(ctx context.Context, org string) (uint64, error)
	// SeenVersion returns what this process knows of the data version without waiting for a query. It may
	// start one, for later calls.
	SeenVersion(org string) SeenVersion
}

// Proposals is the service. It validates commands and has the store run the decisions.
type Proposals struct {
	store Store
	now   func() time.Time
	newID func(prefix string) string
}

// New returns the service. newID returns a new sortable id with the given prefix.
func New(store Store, now func() time.Time, newID func(prefix string) string) *Proposals {
	return &Proposals{store: store, now: now, newID: newID}
}

const (
	idPrefix = "prop-"
	idLength = 26
)

// ValidID reports whether s has the form of a proposal's id. Other ids are not looked up.
func ValidID(s string) bool {
	rest, ok := strings.CutPrefix(s, idPrefix)
	return ok && validSuffix(rest)
}

// validSuffix reports whether s can be an id without its prefix.
func validSuffix(s string) bool {
	if len(s) != idLength {
		return false
	}
	for _, r := range s {
		if (r < '0' || r > '9') && (r < 'a' || r > 'z') {
			return false
		}
	}
	return true
}

func viewer(a identity.Access) Viewer {
	return Viewer{Principal: a.Principal(), Admin: a.Has(identity.Admin)}
}

func (s *Proposals) actor(a identity.Access) Actor { return Actor{Viewer: viewer(a), At: s.now()} }

// Submit creates a proposal.
func (s *Proposals) Submit(ctx context.Context, a identity.Access, cmd Submission) (Outcome, error) {
	if err := a.For(identity.SubmitProposal); err != nil {
		return Outcome{}, err
	}
	if err := cmd.Validate(); err != nil {
		return Outcome{}, err
	}
	by := s.actor(a)
	p := Proposal{
		Org: a.Org(), ID: s.newID(idPrefix), Title: cmd.Title, Category: cmd.Category, Problem: cmd.Problem,
		SuggestedFix: cmd.SuggestedFix, Priority: cmd.Priority, Status: cmd.Status,
		SubmittedBy: by.Principal.Ref(), SubmittedAt: by.At, UpdatedAt: by.At, TextVersion: 1, Version: 1,
	}
	return s.store.Insert(ctx, p, by.Principal, cmd.Once)
}

// Get returns one proposal and the caller's own vote.
func (s *Proposals) Get(ctx context.Context, a identity.Access, id string) (Current, error) {
	if err := a.For(identity.ReadProposal, identity.ChangeProposal); err != nil {
		return Current{}, err
	}
	if !ValidID(id) {
		return Current{}, errs.ErrNotFound
	}
	cur, err := s.store.Get(ctx, a.Org(), id, a.Principal())
	if err != nil {
		return Current{}, err
	}
	if !cur.Proposal.VisibleTo(viewer(a)) {
		return Current{}, errs.ErrNotFound
	}
	return cur, nil
}

// List returns a page of the org's proposals.
func (s *Proposals) List(ctx context.Context, a identity.Access, q Query) (Page, error) {
	if err := a.For(identity.ListProposals); err != nil {
		return Page{}, err
	}
	f, err := q.check(viewer(a))
	if err != nil {
		return Page{}, err
	}
	if f.nothing {
		return Page{
			Items: []Item{}, Number: q.Page, Limit: f.Limit, Search: len(f.Words) > 0, Exact: true, Complete: true,
		}, nil
	}
	found := Found{Exact: true, Complete: true}
	if len(f.Words) > 0 {
		found, err = s.store.Search(ctx, f)
	} else {
		found.Items, found.Total, err = s.store.List(ctx, f)
	}
	if err != nil {
		return Page{}, err
	}
	page := Page{
		Items: found.Items, Total: found.Total, Number: q.Page, Limit: f.Limit,
		Search: len(f.Words) > 0, Exact: found.Exact, Complete: found.Complete,
	}
	if len(page.Items) > f.Limit {
		page.Items = page.Items[:f.Limit]
		page.Next = f.encodeCursor(f.position(&page.Items[f.Limit-1]), q.Page+1)
	}
	return page, nil
}

// Counts returns the number of proposals that the query matches, for every status. It ignores
// the status, order and page of the query. It counts the drafts that the caller may see.
func (s *Proposals) Counts(ctx context.Context, a identity.Access, q Query) (map[Status]int64, error) {
	if err := a.For(identity.ListProposals); err != nil {
		return nil, err
	}
	q.Status, q.Sort, q.Page, q.Limit, q.Cursor = All, "", 0, 0, ""
	f, err := q.check(viewer(a))
	if err != nil {
		return nil, err
	}
	counts := map[Status]int64{}
	if !f.nothing {
		if counts, err = s.store.Counts(ctx, f); err != nil {
			return nil, err
		}
	}
	for _, st := range Statuses {
		counts[st] += 0 // include every status
	}
	return counts, nil
}

// DataVersion returns a number that changes with every change to the org's proposals, and of the
// status of their follow-ups.
func (s *Proposals) DataVersion(ctx context.Context, a identity.Access) (uint64, error) {
	if err := a.For(identity.ListProposals, identity.ReadProposal); err != nil {
		return 0, err
	}
	return s.store.DataVersion(ctx, a.Org())
}

// SeenVersion is what a process knows of an org's data version without waiting for a query.
type SeenVersion struct {
	// Version was the data version at some time before, if Known. It is not known where DataVersion
	// needs no query.
	Version uint64
	Known   bool
	// Changes counts the changes that this process has made to the org's proposals.
	Changes uint64
}

// SeenVersion returns what this process knows of the data version without waiting for a query.
func (s *Proposals) SeenVersion(a identity.Access) (SeenVersion, error) {
	if err := a.For(identity.ListProposals, identity.ReadProposal); err != nil {
		return SeenVersion{}, err
	}
	return s.store.SeenVersion(a.Org()), nil
}

// Vote casts or replaces the caller's vote.
func (s *Proposals) Vote(ctx context.Context, a identity.Access, id string, cmd Ballot) (Outcome, error) {
	if err := a.For(identity.VoteOnProposal); err != nil {
		return Outcome{}, err
	}
	if err := cmd.Validate(); err != nil {
		return Outcome{}, err
	}
	by := s.actor(a)
	return s.update(ctx, by, id, "", cmd.Once, func(cur Current) (Change, error) {
		return decideVote(cur, by, cmd.Choice, cmd.Comment)
	})
}

// WithdrawVote withdraws the caller's vote.
func (s *Proposals) WithdrawVote(ctx context.Context, a identity.Access, id string) (Outcome, error) {
	if err := a.For(identity.VoteOnProposal); err != nil {
		return Outcome{}, err
	}
	by := s.actor(a)
	return s.update(ctx, by, id, "", nil, func(cur Current) (Change, error) { return decideWithdrawal(cur, by) })
}

// Resolve changes the status of a proposal.
func (s *Proposals) Resolve(ctx context.Context, a identity.Access, id string, cmd Resolution) (Outcome, error) {
	if err := a.For(identity.ResolveProposal); err != nil {
		return Outcome{}, err
	}
	if err := cmd.Validate(); err != nil {
		return Outcome{}, err
	}
	by, followupID := s.actor(a), s.newID("fup-")
	return s.update(ctx, by, id, cmd.DuplicateOf, cmd.Once, func(cur Current) (Change, error) {
		return decideStatus(cur, by, cmd, followupID)
	})
}

// Edit changes the text of a proposal.
func (s *Proposals) Edit(ctx context.Context, a identity.Access, id string, cmd Edit) (Outcome, error) {
	if err := a.For(identity.ChangeProposal); err != nil {
		return Outcome{}, err
	}
	if err := cmd.Validate(); err != nil {
		return Outcome{}, err
	}
	by := s.actor(a)
	return s.update(ctx, by, id, "", cmd.Once, func(cur Current) (Change, error) { return decideEdit(cur, by, cmd) })
}

func (s *Proposals) update(ctx context.Context, by Actor, id, original string, once *idempotency.Key,
	decide func(Current) (Change, error),
) (Outcome, error) {
	if !ValidID(id) {
		return Outcome{}, errs.ErrNotFound
	}
	return s.store.Update(ctx, id, original, by.Principal, once, decide)
}

// Paging selects a page of votes or of history.
type Paging struct {
	Page  int // default 1
	Limit int // default DefaultLimit
}

func (p *Paging) offset() (int64, error) {
	if p.Page == 0 {
		p.Page = 1
	}
	if p.Limit == 0 {
		p.Limit = DefaultLimit
	}
	q := Query{Page: p.Page, Limit: p.Limit}
	f, err := q.check(Viewer{})
	return f.Offset, err
}

// Votes lists the votes on a proposal, oldest first.
func (s *Proposals) Votes(ctx context.Context, a identity.Access, id string, p *Paging) ([]Vote, int64, error) {
	if err := a.For(identity.ReadProposal); err != nil {
		return nil, 0, err
	}
	return page(ctx, s, a, id, p, s.store.Votes)
}

// History lists the history of a proposal, oldest first.
func (s *Proposals) History(ctx context.Context, a identity.Access, id string, p *Paging) ([]Entry, int64, error) {
	if err := a.For(identity.ReadProposal); err != nil {
		return nil, 0, err
	}
	return page(ctx, s, a, id, p, s.store.History)
}

func page[T any](ctx context.Context, s *Proposals, a identity.Access, id string, p *Paging,
	read func(ctx context.Context, org, id string, offset int64, limit int) ([]T, int64, error),
) ([]T, int64, error) {
	offset, err := p.offset()
	if err != nil {
		return nil, 0, err
	}
	if _, err := s.Get(ctx, a, id); err != nil {
		return nil, 0, err
	}
	return read(ctx, a.Org(), id, offset, p.Limit)
}
