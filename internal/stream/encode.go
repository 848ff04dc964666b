package stream

import (
	"context"

	"github.com/parley-dev/parley/internal/budget"
	"github.com/parley-dev/parley/internal/task"
)

// Large reports whether the event is so large that its readers share its encoding.
func Large(e *task.Event) bool { return e.Size() > largeEvent }

// largeEvent is what every reader may encode for itself. A larger event is not kept
// for readers but read from the log, where memory is taken for it and its encoding.
const largeEvent = 8 << 10

// encodingKey names an encoding: of the event with the number, or of the task as it
// was after it.
type encodingKey struct {
	ref  task.Ref
	seq  int64
	task bool
	form string
}

// Encoding is the encoded form of an event, or of a task, that its readers share.
type Encoding struct {
	Text []byte
	Seq  int64 // of the last event that it shows
	Over bool  // nothing will follow
}

// EncodeEvent returns the encoding of a large event, made once for all readers on this
// node that need it at the same time. form tells different encodings of the event
// apart. done must be called when the text is written.
func (h *Hub) EncodeEvent(
	ctx context.Context, ref task.Ref, seq int64, form string, encode func() []byte,
) (text []byte, done func(), err error) {
	key := encodingKey{ref: ref, seq: seq, form: form}
	v, done, err := h.encodings.use(ctx, key, func(context.Context) (Encoding, func(), error) {
		return Encoding{Text: encode()}, nil, nil
	})
	return v.Text, done, err
}

// EncodeTask is EncodeEvent for a whole task as it is now, which load reads. The memory
// for it is taken from the budget.
func (h *Hub) EncodeTask(
	ctx context.Context, t *task.Task, form string,
	load func(context.Context) (task.Task, error), encode func(*task.Task) []byte,
) (_ Encoding, done func(), err error) {
	key := encodingKey{t.Ref(), t.Seq, true, form}
	return h.encodings.use(ctx, key, func(ctx context.Context) (Encoding, func(), error) {
		worked, release, err := budget.From(ctx).Borrow(ctx, 2*t.Size)
		if err != nil {
			return Encoding{}, nil, err
		}
		defer worked()
		whole, err := load(ctx)
		if err != nil {
			release()
			return Encoding{}, nil, err
		}
		return Encoding{Text: encode(&whole), Seq: whole.Seq, Over: whole.State.Terminal()}, release, nil
	})
}
