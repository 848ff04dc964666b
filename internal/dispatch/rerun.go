package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-dev/parley/internal/budget"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/idempotency"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/policy"
	"github.com/parley-dev/parley/internal/task"
)

// maxReruns limits how often one task is sent again: each time has its own id.
const maxReruns = 100

// Rerun sends a task of the caller again that failed, was rejected or canceled. The new task has the
// messages of the sender, the context and the policy of the old one, and names it in its metadata.
// With an idempotency key in the context the same command makes one task.
func (s *Tasks) Rerun(ctx context.Context, c Call, id string) (task.Task, error) {
	c, err := s.aimAt(ctx, c, id)
	if err != nil {
		return task.Task{}, err
	}
	t, err := s.board.read.ByKey(ctx, c.key(id), task.Content{})
	if err != nil {
		return task.Task{}, err
	}
	return s.rerun(ctx, c, &t)
}

// OrgRerun is Rerun for a task of one of the org's agents, of any sender; for admins. The new task
// belongs to the same sender.
func (s *Tasks) OrgRerun(ctx context.Context, a identity.Access, uid string) (task.Task, error) {
	if err := a.For(identity.ManageAgents); err != nil {
		return task.Task{}, err
	}
	if !task.ValidUID(uid) {
		return task.Task{}, errs.ErrNotFound
	}
	t, err := s.board.read.Row(ctx, a.Org(), uid)
	if err != nil {
		return task.Task{}, err
	}
	target, err := s.directory.Own(ctx, a.Org(), t.Agent)
	if err != nil {
		return task.Task{}, err
	}
	return s.rerun(ctx, Call{access: a, target: target, onBehalf: t.Sender}, &t)
}

func (s *Tasks) rerun(ctx context.Context, c Call, old *task.Task) (task.Task, error) {
	if !slices.Contains(task.Rerunnable, old.State) {
		return task.Task{}, errs.New(errs.Conflict, task.CodeNotRerunnable,
			"the task is %s; only a task that failed, was rejected or canceled can be sent again", old.State)
	}
	if old.Size > maxFolded {
		account := budget.From(ctx)
		if err := account.Hold(ctx, 2*old.Size); err != nil {
			return task.Task{}, err
		}
		defer account.Drop(2 * old.Size)
	}
	turns, err := s.turnsOf(ctx, old)
	if err != nil {
		return task.Task{}, err
	}
	metadata, err := policy.Rerun(old.Metadata, old.ID, old.Policy.Timeout)
	if err != nil {
		return task.Task{}, fmt.Errorf("copy the metadata of task %s: %w", old.UID, err)
	}
	r := SendRequest{
		Message: turns[0].Message, OutputModes: turns[0].OutputModes, ContextID: old.ContextID, Metadata: metadata,
		Policy: old.Policy.Again(), FollowupID: old.FollowupID, Replaces: old.UID,
		later: turns[1:], once: idempotency.From(ctx) != nil,
	}
	room, err := s.quotas.admit(ctx, &c, false)
	if err != nil {
		return task.Task{}, err
	}
	t, err := s.insertAgain(ctx, c, r, old)
	room.end(err)
	var before *Inserted
	if errors.As(err, &before) {
		return s.board.read.Row(ctx, old.Org, before.UID)
	}
	return t, err
}

// turnsOf returns the messages of the sender of a task.
func (s *Tasks) turnsOf(ctx context.Context, t *task.Task) ([]task.Turn, error) {
	var out []task.Turn
	for after := int64(0); after < t.Seq; {
		events, err := s.log.Events(ctx, t.Org, t.UID, after, 100)
		if err != nil {
			return nil, err
		}
		for i := range events {
			if e := &events[i]; e.Kind == task.TurnEvent {
				out = append(out, task.Turn{Message: *e.Message, OutputModes: e.OutputModes, Metadata: e.Metadata})
			}
			after = events[i].Seq
		}
		if len(events) == 0 {
			break
		}
	}
	if len(out) == 0 {
		return nil, errs.ErrNotFound // deleted meanwhile
	}
	return out, nil
}

// insertAgain writes the task under the first id that is free: that of the old task with a number.
func (s *Tasks) insertAgain(ctx context.Context, c Call, r SendRequest, old *task.Task) (task.Task, error) {
	base, first := old.ID, 2
	if policy.IsRerun(old.Metadata) {
		if id, n, ok := numbered(old.ID); ok {
			base, first = id, n+1
		}
	}
	for n := first; n < first+maxReruns; n++ {
		if r.ID = base + "." + strconv.Itoa(n); !task.ValidID(r.ID) {
			r.ID = s.board.newID("t-") // too long
		}
		if s.board.read.Taken(ctx, c.key(r.ID)) {
			continue
		}
		done, err := s.insert(ctx, c, r, false)
		if err == nil || errs.As(err).Code != errs.CodeExists {
			return done.task, err
		}
	}
	return task.Task{}, errs.New(errs.Conflict, task.CodeNotRerunnable,
		"the task was sent again %d times; send a new one", maxReruns)
}

// numbered splits the id of a task that was sent again.
func numbered(id string) (base string, n int, ok bool) {
	i := strings.LastIndexByte(id, '.')
	if i <= 0 {
		return "", 0, false
	}
	n, err := strconv.Atoi(id[i+1:])
	return id[:i], n, err == nil && n >= 2 && n <= 1_000_000 && id[i+1] != '+' && id[i+1] != '0'
}
