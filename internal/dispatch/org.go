package dispatch

import (
	"context"
	"fmt"
	"slices"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/task"
)

// Filter selects tasks of an org's agents.
type Filter struct {
	Org       string
	Agent     string
	State     task.State
	ContextID string
	Before    string // uid of the last task of the previous page
	Limit     int
}

// Limits of lists of tasks.
const (
	MaxLimit     = 100
	DefaultLimit = 20
)

// uidLength is the length of generated uids.
const uidLength = 26

// Validate reports every field that is malformed.
func (f *Filter) Validate() error {
	var out []errs.Field
	wrong := func(name, msg string) {
		out = append(out, errs.NewField(name, msg))
	}
	if f.Agent != "" && !identity.ValidAgentID(f.Agent) {
		wrong("agent", "is not the id of an agent")
	}
	if f.State != "" && !slices.Contains(task.States, f.State) {
		wrong("state", fmt.Sprintf("must be one of %v", task.States))
	}
	if task.BadID(f.ContextID) {
		wrong("context_id", task.IDRule)
	}
	if f.Before != "" && (len(f.Before) != uidLength || !task.ValidUID(f.Before)) {
		wrong("cursor", "is not a cursor of this list")
	}
	if len(out) > 0 {
		return errs.InvalidFields(out...)
	}
	return nil
}

// OrgTasks lists the tasks of the org's agents, of all senders; for admins.
func (s *Tasks) OrgTasks(ctx context.Context, a identity.Access, f Filter) ([]task.Task, error) {
	if err := a.For(identity.ReadTasks); err != nil {
		return nil, err
	}
	f.Org = a.Org()
	return s.board.read.List(ctx, f)
}

// OrgTask returns a task of one of the org's agents by its uid; for admins.
func (s *Tasks) OrgTask(ctx context.Context, a identity.Access, uid string) (task.Task, error) {
	return s.OrgTaskWith(ctx, a, uid, task.All)
}

// OrgTaskWith is like OrgTask, with the given content.
func (s *Tasks) OrgTaskWith(ctx context.Context, a identity.Access, uid string, l task.Content) (task.Task, error) {
	if err := a.For(identity.ReadTasks); err != nil {
		return task.Task{}, err
	}
	if !task.ValidID(uid) {
		return task.Task{}, errs.ErrNotFound
	}
	return s.board.load(ctx, a.Org(), uid, l)
}

// OrgArtifact returns one artifact of a task by its index in Task.Artifacts; for admins.
func (s *Tasks) OrgArtifact(ctx context.Context, a identity.Access, uid string, number int) (task.Artifact, error) {
	if err := a.For(identity.ReadTasks); err != nil {
		return task.Artifact{}, err
	}
	if !task.ValidID(uid) {
		return task.Artifact{}, errs.ErrNotFound
	}
	return s.board.loadArtifact(ctx, a.Org(), uid, number)
}

// Recall cancels the task of a follow-up that was changed, on behalf of the agent's org.
func (s *Tasks) Recall(ctx context.Context, a identity.Access, uid string) error {
	if err := a.For(identity.ChangeFollowup); err != nil {
		return err
	}
	change, err := s.board.write.Update(ctx, a.Org(), uid, 0, canceledBy(a.Principal(), s.board.now()))
	if err == nil {
		s.board.publish(change)
	}
	return err
}
