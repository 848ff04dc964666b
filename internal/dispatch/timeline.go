package dispatch

import (
	"context"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/task"
)

// MaxTimeline limits the rows of a task's log that a timeline is derived from: the latest ones.
const MaxTimeline = 2000

// OrgAttempts returns the attempts at a task of one of the org's agents, the oldest first; for
// admins. Of a longer log only the latest attempts are known: cut is true.
func (s *Tasks) OrgAttempts(ctx context.Context, a identity.Access, uid string) (_ []task.Attempt, cut bool, _ error) {
	if err := a.For(identity.ReadTasks); err != nil {
		return nil, false, err
	}
	if !task.ValidUID(uid) {
		return nil, false, errs.ErrNotFound
	}
	t, err := s.board.read.Row(ctx, a.Org(), uid)
	if err != nil {
		return nil, false, err
	}
	log, cut, err := s.board.read.Timeline(ctx, t, MaxTimeline)
	return task.Attempts(log), cut, err
}
