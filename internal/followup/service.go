package followup

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/idempotency"
	"github.com/parley-dev/parley/internal/identity"
)

// Outcome is the result of a command. It is stored under the idempotency key.
type Outcome struct {
	Followup Followup
	Replayed bool
}

// Store keeps follow-ups. Every method is scoped by org.
type Store interface {
	Insert(ctx context.Context, f Followup, by identity.Principal, once *idempotency.Key) (Outcome, error)
	// Replayed returns the outcome of an earlier command with the same key, if there was one.
	Replayed(ctx context.Context, by identity.Principal, once *idempotency.Key) (Outcome, bool, error)
	// Update locks the follow-up, runs edit and writes the result in one transaction. edit may
	// run more than once and must be pure.
	Update(ctx context.Context, id string, by identity.Principal, once *idempotency.Key,
		edit func(Followup) (Followup, error)) (Outcome, error)
	Get(ctx context.Context, org, id string) (Followup, error)
	// List returns one page, newest first, and the total number of matches.
	List(ctx context.Context, f Filter) ([]Followup, int64, error)
}

// Members finds principals that follow-ups can be assigned to.
type Members interface {
	// Member returns a member. For an unknown principal the error is NotFound.
	Member(ctx context.Context, p identity.Principal) (identity.Member, error)
}

// Followups is the service.
type Followups struct {
	store   Store
	members Members
	now     func() time.Time
	newID   func(prefix string) string
	agents  Agents
}

// New returns the service. If agents is nil, follow-ups that are assigned to agents are not sent
// to them.
func New(
	store Store, members Members, now func() time.Time, newID func(prefix string) string, agents Agents,
) *Followups {
	return &Followups{store: store, members: members, now: now, newID: newID, agents: agents}
}

// ValidID reports whether s has the form of a follow-up's id.
func ValidID(s string) bool {
	rest, ok := strings.CutPrefix(s, "fup-")
	return ok && len(rest) == 26 && strings.IndexFunc(rest, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z')
	}) < 0
}

// Create creates a follow-up by hand.
func (s *Followups) Create(ctx context.Context, a identity.Access, cmd Creation) (Outcome, error) {
	if err := a.For(identity.CreateFollowup); err != nil {
		return Outcome{}, err
	}
	if err := cmd.Validate(); err != nil {
		return Outcome{}, err
	}
	if err := s.mayAssign(ctx, a, cmd.Assignee); err != nil {
		return Outcome{}, err
	}
	now := s.now()
	f := Followup{
		Org: a.Org(), ID: s.newID("fup-"), Title: cmd.Title, Description: cmd.Description, Status: Open,
		Assignee: cmd.Assignee, CreatedBy: a.Principal().Ref(), CreatedAt: now, UpdatedAt: now, Version: 1,
	}
	agent := s.agentIn(cmd.Assignee)
	if agent != "" {
		f.Assignee = "" // until the agent has its task
	}
	out, err := s.store.Insert(ctx, f, a.Principal(), cmd.Once)
	if err != nil || agent == "" {
		return out, err
	}
	if out.Replayed {
		if out.Followup, err = s.store.Get(ctx, a.Org(), out.Followup.ID); err != nil || out.Followup.Version > 1 {
			return out, err // the first request has sent it
		}
	}
	if _, err := s.send(ctx, a, out.Followup, agent); err != nil {
		return out, err
	}
	out.Followup, err = s.store.Get(ctx, a.Org(), out.Followup.ID)
	return out, err
}

// Get returns one follow-up.
func (s *Followups) Get(ctx context.Context, a identity.Access, id string) (Followup, error) {
	if err := a.For(identity.ReadFollowup, identity.ChangeFollowup); err != nil {
		return Followup{}, err
	}
	if !ValidID(id) {
		return Followup{}, errs.ErrNotFound
	}
	return s.store.Get(ctx, a.Org(), id)
}

// List returns a page of the org's follow-ups, newest first.
func (s *Followups) List(ctx context.Context, a identity.Access, q *Query) ([]Followup, int64, error) {
	if err := a.For(identity.ListFollowups); err != nil {
		return nil, 0, err
	}
	f, err := q.check(a.Org())
	if err != nil {
		return nil, 0, err
	}
	return s.store.List(ctx, f)
}

// Change changes a follow-up.
func (s *Followups) Change(ctx context.Context, a identity.Access, id string, cmd Edit) (Outcome, error) {
	if err := a.For(identity.ChangeFollowup); err != nil {
		return Outcome{}, err
	}
	if !ValidID(id) {
		return Outcome{}, errs.ErrNotFound
	}
	if err := cmd.Validate(); err != nil {
		return Outcome{}, err
	}
	// Check the key first: the transaction that checks it cannot take back a task that was sent.
	if out, done, err := s.store.Replayed(ctx, a.Principal(), cmd.Once); done || err != nil {
		return out, err
	}
	if cmd.Assignee != nil {
		if err := s.mayAssign(ctx, a, *cmd.Assignee); err != nil {
			return Outcome{}, err
		}
	}
	now := s.now()
	seen, err := s.store.Get(ctx, a.Org(), id)
	if err != nil {
		return Outcome{}, err
	}
	sent := "" // the task that was sent to an agent
	if cmd.Assignee != nil {
		if agent := s.agentIn(*cmd.Assignee); agent != "" {
			// Send the task before the update: a failure to send changes nothing, and a failure
			// of the update is repaired by a retry.
			if _, err := decideEdit(seen, cmd, now); err != nil {
				return Outcome{}, err
			}
			if sent, err = s.send(ctx, a, seen, agent); err != nil {
				return Outcome{}, err
			}
			cmd.IfVersion = nil // it was checked, and sending has changed the version
		}
	}
	var before Followup // as it was locked
	out, err := s.store.Update(ctx, id, a.Principal(), cmd.Once, func(f Followup) (Followup, error) {
		before = f
		if sent != "" && f.TaskUID != sent {
			return f, errTakenOver
		}
		return decideEdit(f, cmd, now)
	})
	if err != nil {
		if errs.As(err) == errTakenOver {
			err = errors.Join(err, s.cancel(ctx, a, sent))
		}
		return out, err
	}
	if out.Replayed {
		return out, nil
	}
	if err := s.recall(ctx, a, seen, out.Followup); err != nil || before.TaskUID == seen.TaskUID {
		return out, err
	}
	return out, s.recall(ctx, a, before, out.Followup) // it was assigned between Get and Update
}

// errTakenOver refuses an assignment after a concurrent one.
var errTakenOver = errs.New(errs.Conflict, "followup.taken_over",
	"another request assigned the follow-up at the same time; "+
		"fetch it again and repeat the request if you still want to")

// decideEdit applies an edit.
func decideEdit(f Followup, cmd Edit, now time.Time) (Followup, error) {
	if cmd.IfVersion != nil && *cmd.IfVersion != f.Version {
		return f, errs.New(errs.Stale, "request.stale",
			"the follow-up has changed since you read it; fetch it again and repeat the request")
	}
	if cmd.Title != nil {
		f.Title = *cmd.Title
	}
	if cmd.Description != nil {
		f.Description = *cmd.Description
	}
	if cmd.Assignee != nil && *cmd.Assignee != f.Assignee {
		f.Assignee, f.TaskUID, f.TaskState = *cmd.Assignee, "", ""
	}
	if cmd.Status != nil && *cmd.Status != f.Status {
		if !slices.Contains(f.Status.Next(), *cmd.Status) {
			e := errs.New(errs.Conflict, "followup.transition_not_allowed",
				"a follow-up cannot go from %s to %s", f.Status, *cmd.Status)
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

// mayAssign refuses an assignee that is not a member of the org, and an agent that the caller may
// not send tasks to.
func (s *Followups) mayAssign(ctx context.Context, a identity.Access, ref string) error {
	if ref == "" {
		return nil
	}
	p, err := decideAssignee(a, ref)
	if err != nil {
		return err
	}
	_, err = s.members.Member(ctx, p)
	if err != nil && errs.KindOf(err) == errs.NotFound {
		return invalid("assignee", "is not a member of this org")
	}
	return err
}

// decideAssignee is the part of mayAssign that needs no lookup.
func decideAssignee(a identity.Access, ref string) (identity.Principal, error) {
	p, err := identity.ParseRef(a.Org(), ref)
	if err != nil || !p.IsMember() {
		return p, invalid("assignee", "must be user:ID or agent:ID")
	}
	if p.Kind == identity.Agent && (!a.Has(identity.A2AWrite) || !a.ReachesAgent(p.ID)) {
		return p, identity.MissingScope("assign a follow-up to "+identity.Action(ref), identity.A2AWrite)
	}
	return p, nil
}
