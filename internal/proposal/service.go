package proposal

import (
	"context"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/idempotency"
	"github.com/parley-dev/parley/internal/identity"
)

// Outcome is the result of a command, kept for its idempotency key.
type Outcome struct {
	Proposal Proposal
	Vote     *Vote // the actor's own vote afterwards
	Replaced bool  // the actor had voted before
	Replayed bool  // the command had been carried out before; nothing was done now
}

// Store keeps proposals, their votes and their history. Every method is scoped
// by org; an id of another org is NotFound.
type Store interface {
	// Insert writes a new proposal, which is the first entry of its own history. If
	// once was used before, nothing is written and the earlier outcome is returned.
	Insert(ctx context.Context, p Proposal, by identity.Principal, once *idempotency.Key) (Outcome, error)
	// Update locks the proposal and the actor's vote, runs decide on them and
	// writes what it returns, the follow-up included, in one transaction. decide
	// may run more than once and must be pure. original is the id of another proposal
	// that is locked and read for the decision; empty: none.
	Update(ctx context.Context, id, original string, by identity.Principal, once *idempotency.Key,
		decide func(Current) (Change, error)) (Outcome, error)
	// Get returns the proposal and the viewer's own vote on it.
	Get(ctx context.Context, org, id string, viewer identity.Principal) (Current, error)
	// List returns up to Limit+1 items, so that the caller can tell whether more
	// follow, and the number of all that match.
	List(ctx context.Context, f Filter) ([]Item, int64, error)
	// Counts returns how many match by status, whatever the filter's own; a status
	// without any may be missing.
	Counts(ctx context.Context, f Filter) (map[Status]int64, error)
	// Groups returns the largest groups of what matches, the largest first.
	Groups(ctx context.Context, f Filter, by GroupBy) ([]Group, error)
	// Similar returns up to SimilarCandidates proposals with some of the words, in no order:
	// open, approved and rejected ones, and drafts of the viewer.
	Similar(ctx context.Context, l Likeness) ([]Proposal, error)
	// Notes lists the saved notes by title.
	Notes(ctx context.Context, org string) ([]SavedNote, error)
	// CreateNote writes the note and the entry, unless that goes beyond the quota.
	CreateNote(ctx context.Context, n SavedNote, e identity.AuditEntry, most identity.Quota) (SavedNote, error)
	// DeleteNote deletes the note and writes what entry makes of it.
	DeleteNote(ctx context.Context, org, id string, entry func(SavedNote) identity.AuditEntry) (SavedNote, error)
	// Votes and History return one page, oldest first, and the number of all.
	Votes(ctx context.Context, org, id string, offset int64, limit int) ([]Vote, int64, error)
	History(ctx context.Context, org, id string, offset int64, limit int) ([]Entry, int64, error)
	// DataVersion changes with every committed change to the org's proposals: two
	// reads under one version are the same.
	DataVersion(ctx context.Context, org string) (uint64, error)
}

// Proposals is the service: it checks a command, and has the store run the decision.
type Proposals struct {
	store Store
	now   func() time.Time
	newID func(prefix string) string
}

// New makes the service. newID returns a fresh sortable id with the given prefix.
func New(store Store, now func() time.Time, newID func(prefix string) string) *Proposals {
	return &Proposals{store: store, now: now, newID: newID}
}

const (
	idPrefix = "prop-"
	idLength = 26
)

// ValidID reports whether s has the shape of a proposal's id. Anything else is
// not looked up.
func ValidID(s string) bool {
	rest, ok := strings.CutPrefix(s, idPrefix)
	return ok && validSuffix(rest)
}

// validSuffix reports whether s can be an id behind its prefix.
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

// Submit files a new proposal.
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
		return Page{Items: []Item{}, Number: q.Page, Limit: f.Limit}, nil
	}
	items, total, err := s.store.List(ctx, f)
	if err != nil {
		return Page{}, err
	}
	page := Page{Items: items, Total: total, Number: q.Page, Limit: f.Limit}
	if len(items) > f.Limit {
		page.Items = items[:f.Limit]
		page.Next = f.encodeCursor(f.position(&page.Items[f.Limit-1]), q.Page+1)
	}
	return page, nil
}

// Counts returns how many proposals the query matches by status, for every status: the
// status, order and page of the query do not matter. Drafts are those that the caller may
// see.
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
		counts[st] += 0 // every status is there
	}
	return counts, nil
}

// DataVersion changes whenever a list or a record of the org may read differently.
func (s *Proposals) DataVersion(ctx context.Context, a identity.Access) (uint64, error) {
	if err := a.For(identity.ListProposals); err != nil {
		return 0, err
	}
	return s.store.DataVersion(ctx, a.Org())
}

// Vote casts the caller's vote, or replaces it.
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

// WithdrawVote takes the caller's vote back.
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

// Paging asks for a page of votes or of history.
type Paging struct {
	Page  int // from 1; zero means 1
	Limit int // zero means DefaultLimit
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

// History lists what happened to a proposal, oldest first.
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
