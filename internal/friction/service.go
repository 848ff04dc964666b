package friction

import (
	"context"
	"strconv"
	"time"

	"github.com/parley-dev/parley/internal/cursor"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/idempotency"
	"github.com/parley-dev/parley/internal/identity"
)

// Store keeps what was reported. Every method is scoped by org.
type Store interface {
	// Report locks what is known of the fingerprint, runs decide on it and
	// writes what it returns, the proposal included, in one transaction. decide may
	// run more than once and must be pure.
	Report(ctx context.Context, by identity.Principal, fingerprint, occurrence string, once *idempotency.Key,
		decide func(Current) Change) (Outcome, error)
	// List lists what was reported last first; it returns up to Limit+1, so that
	// the caller can tell whether more follow.
	List(ctx context.Context, f Filter) ([]Friction, error)
	// Get returns NotFound for a fingerprint that nobody reported, and the
	// evidence that is kept, newest first.
	Get(ctx context.Context, org, fingerprint string) (Friction, []Evidence, error)
	// Threshold returns the org's setting, and DefaultThreshold without one.
	Threshold(ctx context.Context, org string) (int, error)
	SetThreshold(ctx context.Context, org string, n int, e identity.AuditEntry) error
}

// Outcome is what a report led to, kept for its idempotency key.
type Outcome struct {
	Friction  Friction
	Threshold int
	Counted   bool // false: the reporter had reported this occurrence before
	Filed     bool // this report filed the proposal
	Replayed  bool // the report had been made before under the same idempotency key
}

// Filter asks a store for a page.
type Filter struct {
	Org   string
	After *Position // continues behind this one
	Limit int
}

// Position is where a page ended.
type Position struct {
	LastAt      time.Time
	Fingerprint string
}

// Check refuses what cannot be a proposal; it is proposal.Check.
type Check func(title, category, problem, suggestedFix, priority string) error

// Frictions is the service.
type Frictions struct {
	store Store
	now   func() time.Time
	newID func(prefix string) string
	check Check
}

// New makes the service. newID returns a fresh sortable id with the given prefix.
func New(store Store, now func() time.Time, newID func(prefix string) string, check Check) *Frictions {
	return &Frictions{store: store, now: now, newID: newID, check: check}
}

// Validate is what Report does first; a transport calls it to report fields that it
// could not read beside these.
func (s *Frictions) Validate(r *Report) error { return r.validate(s.check) }

// Report counts a report of the caller's, and files a proposal in its name if it is
// the one that was still needed.
func (s *Frictions) Report(ctx context.Context, a identity.Access, r Report) (Outcome, error) {
	if err := a.For(identity.ReportFriction); err != nil {
		return Outcome{}, err
	}
	if err := s.Validate(&r); err != nil {
		return Outcome{}, err
	}
	by, at, id := a.Principal(), s.now(), s.newID("prop-")
	return s.store.Report(ctx, by, r.Fingerprint, r.Occurrence, r.Once, func(cur Current) Change {
		return decideReport(cur, r, by.Org, by.Ref(), id, at)
	})
}

// Limits of lists.
const (
	DefaultLimit = 20
	MaxLimit     = 100
)

// Page is one page of the list.
type Page struct {
	Frictions []Friction
	Next      string // cursor of the next page; empty: this is the last
}

// List returns what was reported, the latest first.
func (s *Frictions) List(ctx context.Context, a identity.Access, after string, limit int) (Page, error) {
	if err := a.For(identity.ReadFriction); err != nil {
		return Page{}, err
	}
	if limit == 0 {
		limit = DefaultLimit
	}
	f := Filter{Org: a.Org(), Limit: limit}
	var wrong []errs.Field
	if limit < 1 || limit > MaxLimit {
		wrong = append(wrong, errs.Field{Path: errs.At("limit"), Message: "must be between 1 and " + strconv.Itoa(MaxLimit)})
	}
	if after != "" {
		var ok bool
		if f.After, ok = decodeCursor(after); !ok {
			wrong = append(wrong, errs.Field{Path: errs.At("cursor"), Message: "is not a cursor of this list; use the one of the previous page, or none"})
		}
	}
	if len(wrong) > 0 {
		return Page{}, errs.InvalidFields(wrong...)
	}
	list, err := s.store.List(ctx, f)
	if err != nil {
		return Page{}, err
	}
	page := Page{Frictions: list}
	if len(list) > limit {
		page.Frictions = list[:limit]
		last := &list[limit-1]
		page.Next = pages.At().Time(last.LastAt).Text(last.Fingerprint).String()
	}
	return page, nil
}

var pages = cursor.Of("friction")

func decodeCursor(s string) (*Position, bool) {
	r := pages.Read(s)
	pos := &Position{LastAt: r.Time(), Fingerprint: r.Text()}
	return pos, r.Done() && ValidFingerprint(pos.Fingerprint)
}

// Get returns one friction and the evidence that is kept, newest first.
func (s *Frictions) Get(ctx context.Context, a identity.Access, fingerprint string) (Friction, []Evidence, error) {
	if err := a.For(identity.ReadFriction); err != nil {
		return Friction{}, nil, err
	}
	if !ValidFingerprint(fingerprint) {
		return Friction{}, nil, errs.ErrNotFound
	}
	return s.store.Get(ctx, a.Org(), fingerprint)
}

// Threshold is how many reports file a proposal in the caller's org.
func (s *Frictions) Threshold(ctx context.Context, a identity.Access) (int, error) {
	if err := a.For(identity.ReadFriction); err != nil {
		return 0, err
	}
	return s.store.Threshold(ctx, a.Org())
}

// SetThreshold changes it; reports that were made before count.
func (s *Frictions) SetThreshold(ctx context.Context, a identity.Access, n int) error {
	if err := a.For(identity.ManageFriction); err != nil {
		return err
	}
	if err := ValidateThreshold(n); err != nil {
		return err
	}
	e := identity.NewEntry(ctx, s.now(), a.Org(), ThresholdSet, "", strconv.Itoa(n))
	e.Actor, e.KeyID = a.Principal().Ref(), a.Caller().KeyID
	return s.store.SetThreshold(ctx, a.Org(), n, e)
}
