package dispatch

import (
	"context"
	"iter"
	"time"

	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/stream"
	"github.com/parley-dev/parley/internal/task"
)

// Stream sends like Send and yields the events of the send and all that follow. If the send
// was a repetition, it yields the task's events from the first. See stream.Topic.Events for
// idle. The returned task is the current one.
func (s *Tasks) Stream(
	ctx context.Context, c Call, r SendRequest, idle time.Duration,
) (task.Task, iter.Seq2[task.Event, error], error) {
	sent, err := s.send(ctx, c, r, true)
	if err != nil {
		return task.Task{}, nil, err
	}
	return sent.task, sent.topic.Stream(ctx, sent.before, idle), nil
}

// FromNow is the cursor after the last event that the returned task includes.
const FromNow = -1

// Follow yields the events of a task after a cursor. The returned task is the current one,
// without history and artifacts.
func (s *Tasks) Follow(
	ctx context.Context, c Call, id string, after int64, idle time.Duration,
) (task.Task, iter.Seq2[task.Event, error], error) {
	t, err := s.Get(ctx, c, id, task.Content{})
	if err != nil {
		return t, nil, err
	}
	if after == FromNow {
		after = t.Seq
	}
	return t, s.follow(ctx, &t, after, idle), nil
}

// OrgFollow yields the events of a task of one of the org's agents from now on; for admins.
func (s *Tasks) OrgFollow(
	ctx context.Context, a identity.Access, uid string, idle time.Duration,
) (iter.Seq2[task.Event, error], error) {
	t, err := s.OrgTaskWith(ctx, a, uid, task.Content{})
	if err != nil {
		return nil, err
	}
	return s.follow(ctx, &t, t.Seq, idle), nil
}

// follow yields the events of a task that was just read.
func (s *Tasks) follow(
	ctx context.Context, t *task.Task, after int64, idle time.Duration,
) iter.Seq2[task.Event, error] {
	if t.State.Terminal() && after >= t.Seq {
		return func(func(task.Event, error) bool) {}
	}
	topic := s.board.hub.Follow(t.Ref(), t.Sender.Org, t.Seq)
	// Events between the read and Follow may have been missed.
	go s.board.hub.Hint(context.WithoutCancel(ctx), t.Ref())
	return topic.Stream(ctx, after, idle)
}

// EncodeEvent returns the encoding of a large event. Readers on this node that need it at the
// same time share it; see stream.Hub.EncodeEvent.
func (s *Tasks) EncodeEvent(
	ctx context.Context, t *task.Task, e *task.Event, form string, encode func() []byte,
) (text []byte, done func(), err error) {
	return s.board.hub.EncodeEvent(ctx, t.Ref(), e.Seq, form, encode)
}

// EncodeTask is like EncodeEvent, for the current state of a whole task.
func (s *Tasks) EncodeTask(
	ctx context.Context, t *task.Task, form string, encode func(*task.Task) []byte,
) (_ stream.Encoding, done func(), err error) {
	return s.board.hub.EncodeTask(ctx, t, form, func(ctx context.Context) (task.Task, error) {
		return s.board.read.ByUID(ctx, t.Org, t.UID, task.All)
	}, encode)
}
