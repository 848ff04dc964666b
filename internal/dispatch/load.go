package dispatch

import (
	"context"
	"errors"

	"github.com/parley-dev/parley/internal/budget"
	"github.com/parley-dev/parley/internal/task"
)

// load reads a task for a response. It takes memory from the budget when the size is known
// and before the content is read. If there is not enough memory at the moment, load waits for
// it without a connection to the store, and then reads again.
func load(ctx context.Context, l task.Content, read func(task.Content) (task.Task, error)) (task.Task, error) {
	if !l.History && !l.Artifacts {
		return read(l)
	}
	size := int64(0)
	try := admit(ctx)
	l.Admit = func(t task.Task) error {
		size = t.Footprint()
		return try(t)
	}
	t, err := read(l)
	if !budget.IsBusy(err) {
		return t, err
	}
	if err := budget.From(ctx).Take(ctx, size); err != nil {
		return task.Task{}, err
	}
	l.Admit = nil
	return read(l)
}

// admit returns a function that takes memory for a task without waiting.
func admit(ctx context.Context) func(task.Task) error {
	account := budget.From(ctx)
	return func(t task.Task) error { return account.TakeNow(t.Footprint()) }
}

// loadStored loads a task for the response to a command that was carried out. If there is no
// memory for the content, it returns the status alone: an error would suggest that the command
// failed.
func (b *board) loadStored(ctx context.Context, t *task.Task, l task.Content) (task.Task, error) {
	l.Sparse = true
	out, err := b.load(ctx, t.Org, t.UID, l)
	if budget.IsBusy(err) || errors.Is(err, budget.ErrResponseTooLarge) {
		out, err = b.load(ctx, t.Org, t.UID, task.Content{})
	}
	return out, err
}

// load reads a task by its uid; see the function load.
func (b *board) load(ctx context.Context, org, uid string, l task.Content) (task.Task, error) {
	return load(ctx, l, func(l task.Content) (task.Task, error) { return b.read.ByUID(ctx, org, uid, l) })
}

// loadArtifact reads an artifact for a response, within the memory budget.
func (b *board) loadArtifact(ctx context.Context, org, uid string, number int) (task.Artifact, error) {
	return b.read.Artifact(ctx, org, uid, number, func(bytes int64) error {
		return budget.From(ctx).Take(ctx, bytes)
	})
}
