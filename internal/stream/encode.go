package stream

import (
	"context"

	"github.com/parley-dev/parley/internal/budget"
	"github.com/parley-dev/parley/internal/task"
)

// Large reports whether readers share the encoding of the event.
func Large(e *task.Event) bool { return e.Size() > largeEvent }

// largeEvent is the size up to which each reader encodes an event itself. A larger event is not
// kept in memory but read from the log, and its readers take memory for it from the budget.
const largeEvent = 8 << 10

// encodingKey identifies the encoding of an event, or of the task after that event.
type encodingKey struct {
	ref  task.Ref
	seq  int64
	task bool
	form string
}

// Encoding is an encoded event or task that readers share.
type Encoding struct {
	Text []byte
	Seq  int64 // the last event that is included
	Over bool  // no event follows
}

// EncodeEvent returns the encoding of a large event. Readers on this node that need it at the
// same time share it. form identifies the encoding. The caller must call done when it has
// written the text.
func (h *Hub) EncodeEvent(
	ctx context.Context, ref task.Ref, seq int64, form string, encode func() []byte,
) (text []byte, done func(), err error) {
	key := encodingKey{ref: ref, seq: seq, form: form}
	v, done, err := h.encodings.use(ctx, key, func(context.Context) (Encoding, func(), error) {
		return Encoding{Text: encode()}, nil, nil
	})
	return v.Text, done, err
}

// EncodeTask is like EncodeEvent, for the current state of a whole task, which load reads. It
// takes the memory for it from the budget.
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
