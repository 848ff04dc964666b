package dispatch

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/task"
)

// Pushes reports whether push notifications are turned on.
func (s *Tasks) Pushes() bool { return s.pushURL != nil }

func (s *Tasks) pushable() error {
	if s.pushURL == nil {
		return errs.New(errs.Conflict, task.CodePushUnsupported, "push notifications are turned off on this server")
	}
	return nil
}

// checkPush refuses a configuration that breaks a rule, or an address that may not
// be used.
func (s *Tasks) checkPush(p *task.PushConfig, path ...any) error {
	f := p.Check()
	if len(f) == 0 {
		if err := s.pushURL(p.URL); err != nil {
			f = append(f, field("url", err.Error()))
		}
	}
	if len(f) > 0 {
		return errs.InvalidFields(errs.Under(f, path...)...)
	}
	return nil
}

// sentPush is the configuration that comes with a message. Without an id it gets
// one that follows from the address: the next message with the same address, or a
// repeated one, means the same configuration.
func (s *Tasks) sentPush(p task.PushConfig) (*task.PushConfig, error) {
	if err := s.pushable(); err != nil {
		return nil, err
	}
	if err := s.checkPush(&p, "push"); err != nil {
		return nil, err
	}
	if p.ID == "" {
		sum := sha256.Sum256([]byte(p.URL))
		p.ID = "push-" + hex.EncodeToString(sum[:13])
	}
	p.Form, p.CreatedAt = cmp.Or(p.Form, task.PushV1), s.board.now()
	return &p, nil
}

// SetPush makes a configuration, or replaces the one with the same id. A new one
// gets the events from now on; if the task is over, it gets the last one.
func (s *Tasks) SetPush(ctx context.Context, c Call, taskID string, p task.PushConfig) (task.PushConfig, error) {
	if err := s.pushable(); err != nil {
		return task.PushConfig{}, err
	}
	if !task.ValidID(taskID) {
		return task.PushConfig{}, errs.ErrNotFound
	}
	if err := s.checkPush(&p); err != nil {
		return task.PushConfig{}, err
	}
	if p.ID == "" {
		p.ID = s.board.newID("push-")
	}
	p.Form, p.CreatedAt = cmp.Or(p.Form, task.PushV1), s.board.now()
	c, err := s.Aim(ctx, c, taskID)
	if err != nil {
		return task.PushConfig{}, err
	}
	guard := s.newPushGuard(ctx, c.sender)
	change, err := s.board.write.UpdateByKey(ctx, c.key(taskID), 0, func(cur task.Current) (task.Change, error) {
		return task.Change{Task: cur.Task, Push: &p, PushGuard: guard.of(&cur.Task)}, nil
	})
	guard.end(err)
	if err != nil {
		return task.PushConfig{}, err
	}
	s.board.publish(change)
	return *change.Push, nil
}

// GetPush returns a configuration of a task of the caller's.
func (s *Tasks) GetPush(ctx context.Context, c Call, taskID, id string) (task.PushConfig, error) {
	list, err := s.ListPush(ctx, c, taskID)
	if err != nil {
		return task.PushConfig{}, err
	}
	for _, p := range list {
		if p.ID == id {
			return p, nil
		}
	}
	return task.PushConfig{}, errs.ErrNotFound
}

// ListPush returns the configurations of a task of the caller's, ordered by id.
func (s *Tasks) ListPush(ctx context.Context, c Call, taskID string) ([]task.PushConfig, error) {
	if err := s.pushable(); err != nil {
		return nil, err
	}
	t, err := s.Get(ctx, c, taskID, task.Content{})
	if err != nil {
		return nil, err
	}
	list, err := s.pushes.OfTask(ctx, t.Org, t.UID)
	out := make([]task.PushConfig, len(list))
	for i := range list {
		out[i] = list[i].PushConfig
	}
	return out, err
}

// DeletePush deletes a configuration of a task of the caller's, if it is there.
func (s *Tasks) DeletePush(ctx context.Context, c Call, taskID, id string) error {
	if err := s.pushable(); err != nil {
		return err
	}
	t, err := s.Get(ctx, c, taskID, task.Content{})
	if err != nil || len(task.CheckID("", id)) > 0 {
		return err
	}
	return s.pushes.Delete(ctx, t.Org, t.UID, id)
}
