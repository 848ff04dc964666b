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

// Store keeps reports. Every method is scoped by org.
type Store interface {
	// Report locks the fingerprint, runs decide and writes the change, including the proposal,
	// in one transaction. decide may run more than once and must be pure.
	Report(ctx context.Context, by identity.Principal, fingerprint, occurrence string, once *idempotency.Key,
		decide func(Current) Change) (Outcome, error)
	// List lists frictions, the last reported first. It returns up to Limit+1, so that the
	// caller can tell whether more follow.
	List(ctx context.Context, f Filter) ([]Friction, error)
	// Get returns a friction and its kept evidence, newest first. For an unknown fingerprint
	// the error is NotFound.
	Get(ctx context.Context, org, fingerprint string) (Friction, []Evidence, error)
	// Threshold returns the org's threshold, or DefaultThreshold if it has not set one.
	Threshold(ctx context.Context, org string) (int, error)
	SetThreshold(ctx context.Context, org string, n int, e identity.AuditEntry) error
}

// Outcome is the result of a report. It is stored under the idempotency key.
type Outcome struct {
	Friction  Friction
	Threshold int
	Counted   bool // false if the reporter had reported this occurrence before
	Filed     bool // this report filed the proposal
	Replayed  bool // the report was made before under the same idempotency key
}

// Filter selects a page.
type Filter struct {
	Org   string
	After *Position // the last entry of the previous page
	Limit int
}

// Position is the sort key of the last entry of a page.
type Position struct {
	LastAt      time.Time
	Fingerprint string
}

// Check validates the fields of a proposal; see proposal.Check.
type Check func(title, category, problem, suggestedFix, priority string) error

// Frictions is the service.
type Frictions struct {
	store Store
	now   func() time.Time
	newID func(prefix string) string
	check Check
}

// New returns the service. newID returns a new sortable id with the given prefix.
func New(store Store, now func() time.Time, newID func(prefix string) string, check Check) *Frictions {
	return &Frictions{store: store, now: now, newID: newID, check: check}
}

// Validate sets defaults and reports every field that breaks a rule. Report calls it too. A
// transport calls it to report these fields together with those that it could not decode.
func (s *Frictions) Validate(r *Report) error { return r.validate(s.check) }

// Report counts a report of the caller. If it reaches the threshold, a proposal is filed in the
// caller's name.
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
	Next      string // cursor of the next page; empty on the last page
}

// List returns a page of frictions, the last reported first.
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
		wrong = append(wrong, errs.Field{
			Path: errs.At("limit"), Message: "must be between 1 and " + strconv.Itoa(MaxLimit),
		})
	}
	if after != "" {
		var ok bool
		if f.After, ok = decodeCursor(after); !ok {
			wrong = append(wrong, errs.Field{
				Path: errs.At("cursor"), Message: "is not a cursor of this list; use the one of the previous page, or none",
			})
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

// Get returns one friction and its kept evidence, newest first.
func (s *Frictions) Get(ctx context.Context, a identity.Access, fingerprint string) (Friction, []Evidence, error) {
	if err := a.For(identity.ReadFriction); err != nil {
		return Friction{}, nil, err
	}
	if !ValidFingerprint(fingerprint) {
		return Friction{}, nil, errs.ErrNotFound
	}
	return s.store.Get(ctx, a.Org(), fingerprint)
}

// Threshold returns how many reports file a proposal in the caller's org.
func (s *Frictions) Threshold(ctx context.Context, a identity.Access) (int, error) {
	if err := a.For(identity.ReadFriction); err != nil {
		return 0, err
	}
	return s.store.Threshold(ctx, a.Org())
}

// SetThreshold sets the threshold. Earlier reports count.
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
