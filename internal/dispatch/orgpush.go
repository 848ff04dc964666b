package dispatch

import (
	"context"
	"slices"

	"github.com/parley-dev/parley/internal/cursor"
	"github.com/parley-dev/parley/internal/delivery"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/task"
)

// Push is a push configuration with its progress.
type Push struct {
	task.PushConfig
	Org       string // of the agent
	UID       string // of the task
	SenderOrg string // of the sender of the task
	delivery.Progress
}

// PushFilter selects push configurations of an org's agents.
type PushFilter struct {
	Org   string
	State delivery.State // empty: any
	// Before and BeforeID are the uid and the id of the last entry of the previous page.
	Before, BeforeID string
	Limit            int
}

var pushPages = cursor.Of("push configurations")

// Cursor returns the cursor of the page after p.
func (f *PushFilter) Cursor(p *Push) string { return pushPages.At().Text(p.UID).Text(p.ID).String() }

// Continue sets the start of the page from a cursor. It returns false if the cursor is invalid.
func (f *PushFilter) Continue(after string) bool {
	r := pushPages.Read(after)
	f.Before, f.BeforeID = r.Text(), r.Text()
	return r.Done() && task.ValidUID(f.Before) && task.ValidID(f.BeforeID)
}

// OrgPushes lists the push configurations of the org's agents, newest task first; for admins.
func (s *Tasks) OrgPushes(ctx context.Context, a identity.Access, f PushFilter) ([]Push, error) {
	if err := a.For(identity.ReadTasks); err != nil {
		return nil, err
	}
	f.Org = a.Org()
	return s.pushes.List(ctx, f)
}

// OrgTaskPushes lists the push configurations of one task; for admins.
func (s *Tasks) OrgTaskPushes(ctx context.Context, a identity.Access, uid string) ([]Push, error) {
	if err := a.For(identity.ReadTasks); err != nil {
		return nil, err
	}
	if !task.ValidUID(uid) {
		return nil, errs.ErrNotFound
	}
	if _, err := s.board.read.Row(ctx, a.Org(), uid); err != nil {
		return nil, err
	}
	return s.pushes.OfTask(ctx, a.Org(), uid)
}

// RetryPush makes a dead push configuration due again; for admins.
func (s *Tasks) RetryPush(ctx context.Context, a identity.Access, uid, id string) (Push, error) {
	if err := a.For(identity.ManageAgents); err != nil {
		return Push{}, err
	}
	if !task.ValidUID(uid) || !task.ValidID(id) {
		return Push{}, errs.ErrNotFound
	}
	t, err := s.board.read.Row(ctx, a.Org(), uid)
	if err != nil {
		return Push{}, err
	}
	list, err := s.pushes.OfTask(ctx, a.Org(), uid)
	if err != nil {
		return Push{}, err
	}
	i := slices.IndexFunc(list, func(p Push) bool { return p.ID == id })
	if i < 0 {
		return Push{}, errs.ErrNotFound
	}
	push, guard := list[i], pushGuard{s: s, who: a.Principal()}
	key := delivery.Key{Kind: PushKind, Org: a.Org(), Topic: uid, ID: id}
	push.Progress, err = s.board.deliveries.Retry(ctx, key, func(p delivery.Progress) error {
		if p.State != delivery.Dead {
			return errs.New(errs.Conflict, task.CodePushNotDead,
				"the push configuration is %s; only a dead one can be retried", p.State)
		}
		guard.undo() // in case the transaction runs again
		return guard.replay(t.Size)
	})
	if err != nil {
		guard.undo()
	}
	return push, err
}
