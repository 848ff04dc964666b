package task

import (
	"context"
	"errors"

	"github.com/parley-dev/parley/internal/budget"
)

// load reads a task whose content becomes part of the response. The memory for it is
// taken when its size is known and before its content is read. If there is none at the
// moment, load waits for it without a connection to the store, and reads again.
func load(ctx context.Context, l Content, read func(Content) (Task, error)) (Task, error) {
	if !l.History && !l.Artifacts {
		return read(l)
	}
	size := int64(0)
	try := admit(ctx)
	l.Admit = func(t Task) error {
		size = t.Size + rowSize
		return try(t)
	}
	t, err := read(l)
	if !budget.IsBusy(err) {
		return t, err
	}
	if err := budget.From(ctx).Take(ctx, size); err != nil {
		return Task{}, err
	}
	l.Admit = nil
	return read(l)
}

// admit counts a task as part of the response, if there is memory for it right now.
func admit(ctx context.Context) func(Task) error {
	account := budget.From(ctx)
	return func(t Task) error { return account.TakeNow(t.Size + rowSize) }
}

// loadStored loads a task for the response to a command that is done. If the response has
// no room for its content, it shows the status alone: an error would say that nothing was
// done.
func (s *Tasks) loadStored(ctx context.Context, t *Task, l Content) (Task, error) {
	l.Sparse = true
	out, err := s.loadByUID(ctx, t.Org, t.UID, l)
	if budget.IsBusy(err) || errors.Is(err, budget.ErrResponseTooLarge) {
		out, err = s.loadByUID(ctx, t.Org, t.UID, Content{})
	}
	return out, err
}

// loadByUID is load for a task that is known by our own id.
func (s *Tasks) loadByUID(ctx context.Context, org, uid string, l Content) (Task, error) {
	return load(ctx, l, func(l Content) (Task, error) { return s.Store.TaskByUID(ctx, org, uid, l) })
}
