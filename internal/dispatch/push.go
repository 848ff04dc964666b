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

// pushable refuses a command on push configurations if they are turned off.
func (s *Tasks) pushable(c *Call) error {
	if err := c.check(); err != nil {
		return err
	}
	if s.pushURL == nil {
		return errs.New(errs.Conflict, task.CodePushUnsupported, "push notifications are turned off on this server")
	}
	return nil
}

// checkPush refuses an invalid configuration or a URL that must not be pushed to.
func (s *Tasks) checkPush(p *task.PushConfig, path ...any) error {
	f := p.Check()
	if len(f) == 0 {
		if err := s.pushURL(p.URL); err != nil {
			f = append(f, errs.NewField("url", err.Error()))
		}
	}
	if len(f) > 0 {
		return errs.InvalidFields(errs.Under(f, path...)...)
	}
	return nil
}

// sentPush checks a configuration that was sent with a message. Without an id it gets one that
// is derived from the URL, so that a repeated message, or another one with the same URL, sets
// the same configuration.
func (s *Tasks) sentPush(c *Call, p task.PushConfig) (*task.PushConfig, error) {
	if err := s.pushable(c); err != nil {
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

// SetPush creates a configuration, or replaces the one with the same id. A new one receives
// events from now on; if the task has ended, it receives the last event.
func (s *Tasks) SetPush(ctx context.Context, c Call, taskID string, p task.PushConfig) (task.PushConfig, error) {
	if err := s.pushable(&c); err != nil {
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
	guard := s.newPushGuard(ctx, c.sender())
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

// GetPush returns a configuration of a task that the caller sent.
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

// ListPush returns the configurations of a task that the caller sent, ordered by id.
func (s *Tasks) ListPush(ctx context.Context, c Call, taskID string) ([]task.PushConfig, error) {
	if err := s.pushable(&c); err != nil {
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

// DeletePush deletes a configuration of a task that the caller sent, if it exists.
func (s *Tasks) DeletePush(ctx context.Context, c Call, taskID, id string) error {
	if err := s.pushable(&c); err != nil {
		return err
	}
	t, err := s.Get(ctx, c, taskID, task.Content{})
	if err != nil || len(task.CheckID("", id)) > 0 {
		return err
	}
	return s.pushes.Delete(ctx, t.Org, t.UID, id)
}
