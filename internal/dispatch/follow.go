package dispatch

import (
	"context"
	"iter"
	"time"

	"github.com/parley-dev/parley/internal/stream"
	"github.com/parley-dev/parley/internal/task"
)

// Stream sends as Send does and yields what comes of it: the events of the send
// itself and all that follow. A send that was only repeated yields the task's
// events from the first. What idle is, stream.Topic says; the returned task is as of now.
func (s *Tasks) Stream(
	ctx context.Context, c Call, r SendRequest, idle time.Duration,
) (task.Task, iter.Seq2[task.Event, error], error) {
	sent, err := s.send(ctx, c, r, true)
	if err != nil {
		return task.Task{}, nil, err
	}
	return sent.task, sent.topic.Stream(ctx, sent.before, idle), nil
}

// FromNow is a cursor behind what the returned task shows.
const FromNow = -1

// Follow yields the events of a task after a cursor; the returned task is as of
// now, without history and artifacts.
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
	if t.State.Terminal() && after >= t.Seq {
		return t, func(func(task.Event, error) bool) {}, nil
	}
	topic := s.board.hub.Follow(t.Ref(), t.Sender.Org, t.Seq)
	// Between the read and the follow something may have happened that nobody here
	// was told of.
	go s.board.hub.Hint(context.WithoutCancel(ctx), t.Ref())
	return t, topic.Stream(ctx, after, idle), nil
}

// EncodeEvent returns the encoding of a large event of a task, made once for all readers on
// this node that need it at the same time; see stream.Hub.
func (s *Tasks) EncodeEvent(
	ctx context.Context, t *task.Task, e *task.Event, form string, encode func() []byte,
) (text []byte, done func(), err error) {
	return s.board.hub.EncodeEvent(ctx, t.Ref(), e.Seq, form, encode)
}

// EncodeTask is EncodeEvent for a whole task as it is now.
func (s *Tasks) EncodeTask(
	ctx context.Context, t *task.Task, form string, encode func(*task.Task) []byte,
) (_ stream.Encoding, done func(), err error) {
	return s.board.hub.EncodeTask(ctx, t, form, func(ctx context.Context) (task.Task, error) {
		return s.board.read.ByUID(ctx, t.Org, t.UID, task.All)
	}, encode)
}
