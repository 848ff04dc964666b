// Package followup is task management: the work that approved proposals lead to,
// and what people add beside it.
//
// "Follow-up" is the word in the code, because "task" means an A2A task here; on
// the wire the resource is called a task, as the specification calls it. The
// package holds rules only: no HTTP, no SQL, and nothing of proposals but an id.
package followup

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/idempotency"
	"github.com/parley-dev/parley/internal/identity"
)

// Status is where a follow-up stands.
type Status string

// The statuses.
const (
	Open       Status = "open"
	InProgress Status = "in_progress"
	Done       Status = "done"
	Canceled   Status = "canceled"
)

// Statuses lists every status.
var Statuses = []Status{Open, InProgress, Done, Canceled}

// transitions: work can be taken up, put back, finished and dropped; what is
// over can only be opened again.
var transitions = map[Status][]Status{
	Open:       {InProgress, Done, Canceled},
	InProgress: {Open, Done, Canceled},
	Done:       {Open},
	Canceled:   {Open},
}

// Next lists the statuses that may follow s.
func (s Status) Next() []Status { return transitions[s] }

// Followup is one piece of work.
type Followup struct {
	Org         string
	ID          string
	Title       string
	Description string
	ProposalID  string // empty: made by hand
	TextHash    string // of the approved text; empty: made by hand
	Status      Status
	Assignee    string // a ref; empty: nobody
	CreatedBy   string // a ref
	CreatedAt   time.Time
	UpdatedAt   time.Time
	Version     int64
	TaskUID     string // the A2A task that an agent works on it with; empty: none
	TaskState   string // of that task
}

// Mirror is the follow-up as its A2A task's state makes it: what an agent works on
// is in progress, what it finished is done, and what it could not do is open
// again for somebody else.
func (f Followup) Mirror(taskUID, state string, now time.Time) Followup {
	f.TaskUID, f.TaskState, f.UpdatedAt = taskUID, state, now
	switch state {
	case "working", "input-required":
		f.Status = InProgress
	case "completed":
		f.Status = Done
	default:
		f.Status = Open
	}
	return f
}

// Limits, in characters.
const (
	MaxTitle       = 200
	MaxDescription = 20_000
	DefaultLimit   = 20
	MaxLimit       = 100
)

// All stands for "no filter".
const All = "all"

// Creation asks for a follow-up made by hand.
type Creation struct {
	Title       string
	Description string
	Assignee    string
	Once        *idempotency.Key
}

// Edit changes the fields that are not nil. An empty Assignee unassigns.
type Edit struct {
	Title       *string
	Description *string
	Status      *Status
	Assignee    *string
	IfVersion   *int64
	Once        *idempotency.Key
}

// Query asks for a page of the list; zero fields mean no filter, page 1, limit 20.
type Query struct {
	Status     Status
	Assignee   string // a ref, or "none" for those without one
	ProposalID string
	Page       int
	Limit      int
}

// Unassigned is the Assignee filter for follow-ups without one.
const Unassigned = "none"

// Filter is a checked Query as the store gets it.
type Filter struct {
	Org        string
	Status     Status
	Assignee   string
	Unassigned bool
	ProposalID string
	Offset     int64
	Limit      int
}

// Outcome is the result of a command, kept for its idempotency key.
type Outcome struct {
	Followup Followup
	Replayed bool
}

// Store keeps follow-ups; every method is scoped by org.
type Store interface {
	InsertFollowup(ctx context.Context, f Followup, by identity.Principal, once *idempotency.Key) (Outcome, error)
	// UpdateFollowup locks the follow-up, runs edit on it and writes the result in
	// one transaction. edit may run more than once and must be pure.
	UpdateFollowup(ctx context.Context, id string, by identity.Principal, once *idempotency.Key,
		edit func(Followup) (Followup, error)) (Outcome, error)
	Followup(ctx context.Context, org, id string) (Followup, error)
	// Followups returns one page, newest first, and the number of all that match.
	Followups(ctx context.Context, f Filter) ([]Followup, int64, error)
	// Member returns NotFound for an unknown principal.
	Member(ctx context.Context, p identity.Principal) (identity.Member, error)
}

// Followups is the service.
type Followups struct {
	store Store
	now   func() time.Time
	newID func(prefix string) string
}

// New makes the service.
func New(store Store, now func() time.Time, newID func(prefix string) string) *Followups {
	return &Followups{store: store, now: now, newID: newID}
}

// ValidID reports whether s has the shape of a follow-up's id.
func ValidID(s string) bool {
	rest, ok := strings.CutPrefix(s, "task-")
	return ok && len(rest) == 26 && strings.IndexFunc(rest, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z')
	}) < 0
}

// Create makes a follow-up by hand.
func (s *Followups) Create(ctx context.Context, a identity.Access, cmd Creation) (Outcome, error) {
	if err := cmd.Validate(); err != nil {
		return Outcome{}, err
	}
	now := s.now()
	f := Followup{
		Org: a.Org(), ID: s.newID("task-"), Title: cmd.Title, Description: cmd.Description, Status: Open,
		Assignee: cmd.Assignee, CreatedBy: a.Principal().Ref(), CreatedAt: now, UpdatedAt: now, Version: 1,
	}
	if err := s.mayAssign(ctx, a, f.Assignee); err != nil {
		return Outcome{}, err
	}
	return s.store.InsertFollowup(ctx, f, a.Principal(), cmd.Once)
}

// Get returns one follow-up.
func (s *Followups) Get(ctx context.Context, a identity.Access, id string) (Followup, error) {
	if !ValidID(id) {
		return Followup{}, errs.ErrNotFound
	}
	return s.store.Followup(ctx, a.Org(), id)
}

// List returns a page of the org's follow-ups, newest first.
func (s *Followups) List(ctx context.Context, a identity.Access, q *Query) ([]Followup, int64, error) {
	f, err := q.check(a.Org())
	if err != nil {
		return nil, 0, err
	}
	return s.store.Followups(ctx, f)
}

// Change edits a follow-up.
func (s *Followups) Change(ctx context.Context, a identity.Access, id string, cmd Edit) (Outcome, error) {
	if !ValidID(id) {
		return Outcome{}, errs.ErrNotFound
	}
	if err := cmd.Validate(); err != nil {
		return Outcome{}, err
	}
	if cmd.Assignee != nil {
		if err := s.mayAssign(ctx, a, *cmd.Assignee); err != nil {
			return Outcome{}, err
		}
	}
	now := s.now()
	return s.store.UpdateFollowup(ctx, id, a.Principal(), cmd.Once, func(f Followup) (Followup, error) {
		return decideEdit(f, cmd, now)
	})
}

// decideEdit is the rule of a change.
func decideEdit(f Followup, cmd Edit, now time.Time) (Followup, error) {
	if cmd.IfVersion != nil && *cmd.IfVersion != f.Version {
		return f, errs.New(errs.Stale, "request.stale",
			"the task has changed since you read it; fetch it again and repeat the request with its new ETag")
	}
	if cmd.Title != nil {
		f.Title = *cmd.Title
	}
	if cmd.Description != nil {
		f.Description = *cmd.Description
	}
	if cmd.Assignee != nil {
		f.Assignee = *cmd.Assignee
	}
	if cmd.Status != nil && *cmd.Status != f.Status {
		if !slices.Contains(f.Status.Next(), *cmd.Status) {
			e := errs.New(errs.Conflict, "task.transition_not_allowed", "a task cannot go from %s to %s", f.Status, *cmd.Status)
			for _, next := range f.Status.Next() {
				e.Allowed = append(e.Allowed, string(next))
			}
			return f, e
		}
		f.Status = *cmd.Status
	}
	f.UpdatedAt = now
	return f, nil
}

// mayAssign refuses an assignee that is no member of the org, and an agent that
// the caller could not send a task to itself.
func (s *Followups) mayAssign(ctx context.Context, a identity.Access, ref string) error {
	if ref == "" {
		return nil
	}
	p, err := identity.ParseRef(a.Org(), ref)
	if err != nil || !p.IsMember() {
		return invalid("/assignee", "must be user:ID or agent:ID")
	}
	if p.Kind == identity.Agent && (!a.Has(identity.A2AWrite) || !a.ReachesAgent(p.ID)) {
		return identity.MissingScope("assign a task to "+identity.Action(ref), identity.A2AWrite)
	}
	_, err = s.store.Member(ctx, p)
	if err != nil && errs.KindOf(err) == errs.NotFound {
		return invalid("/assignee", "is not a member of this org")
	}
	return err
}

// Validate reports every field that breaks a rule. Create does it too; a
// transport calls it to report fields that it could not read beside these.
func (c *Creation) Validate() error {
	return (&Edit{Title: &c.Title, Description: &c.Description, Assignee: &c.Assignee}).Validate()
}

// Validate is to Change what Creation.Validate is to Create.
func (e *Edit) Validate() error {
	var fields []errs.Field
	add := func(name, msg string) {
		fields = append(fields, errs.Field{In: errs.Body, Name: name, Message: msg})
	}
	if e.Title != nil {
		if msg := text(*e.Title, MaxTitle); msg != "" {
			add("/title", msg)
		} else if strings.TrimSpace(*e.Title) == "" || strings.ContainsAny(*e.Title, "\r\n") {
			add("/title", "is required and must be one line")
		}
	}
	if e.Description != nil {
		if msg := text(*e.Description, MaxDescription); msg != "" {
			add("/description", msg)
		}
	}
	if e.Status != nil && !slices.Contains(Statuses, *e.Status) {
		add("/status", "must be one of open, in_progress, done, canceled")
	}
	if e.Assignee != nil && *e.Assignee != "" {
		if p, err := identity.ParseRef("", *e.Assignee); err != nil || !p.IsMember() {
			add("/assignee", "must be user:ID or agent:ID")
		}
	}
	if len(fields) > 0 {
		return errs.InvalidFields(fields...)
	}
	return nil
}

func text(s string, limit int) string {
	switch {
	case !utf8.ValidString(s):
		return "must be valid UTF-8"
	case utf8.RuneCountInString(s) > limit:
		return fmt.Sprintf("must have at most %d characters", limit)
	case strings.IndexFunc(s, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\r' && r != '\t' }) >= 0:
		return "must not contain control characters"
	}
	return ""
}

func (q *Query) check(org string) (Filter, error) {
	if q.Page == 0 {
		q.Page = 1
	}
	if q.Limit == 0 {
		q.Limit = DefaultLimit
	}
	var fields []errs.Field
	add := func(name, msg string) {
		fields = append(fields, errs.Field{In: errs.Query, Name: name, Message: msg})
	}
	f := Filter{Org: org, Limit: q.Limit}
	switch {
	case q.Status == "" || q.Status == All:
	case slices.Contains(Statuses, q.Status):
		f.Status = q.Status
	default:
		add("status", "must be one of open, in_progress, done, canceled or all")
	}
	switch {
	case q.Assignee == "" || q.Assignee == All:
	case q.Assignee == Unassigned:
		f.Unassigned = true
	default:
		if _, err := identity.ParseRef(org, q.Assignee); err != nil {
			add("assignee", "must be user:ID, agent:ID, none or all")
		}
		f.Assignee = q.Assignee
	}
	if q.ProposalID != "" {
		f.ProposalID = strings.ToLower(q.ProposalID)
		if !utf8.ValidString(q.ProposalID) || strings.ContainsRune(q.ProposalID, 0) || len(q.ProposalID) > 64 {
			add("proposal_id", "must be the id of a proposal")
		}
	}
	if q.Limit < 1 || q.Limit > MaxLimit {
		add("limit", "must be between 1 and "+strconv.Itoa(MaxLimit))
	}
	const maxPage = int64(1) << 56 // with a limit of 100 the offset stays below 2^63
	if q.Page < 1 || int64(q.Page) > maxPage {
		add("page", "must be at least 1 and small enough that such a page can exist")
	}
	if len(fields) > 0 {
		return Filter{}, errs.InvalidFields(fields...)
	}
	f.Offset = int64(q.Page-1) * int64(q.Limit)
	return f, nil
}

func invalid(name, msg string) error {
	return errs.InvalidFields(errs.Field{In: errs.Body, Name: name, Message: msg})
}
