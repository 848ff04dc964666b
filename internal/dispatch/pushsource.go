package dispatch

import (
	"context"
	"iter"

	"github.com/parley-dev/parley/internal/delivery"
	"github.com/parley-dev/parley/internal/stream"
	"github.com/parley-dev/parley/internal/task"
	"github.com/parley-dev/parley/internal/trace"
)

// PushKind is the kind of subscriptions that are push configurations of tasks. Their topic is
// the uid of the task.
const PushKind delivery.Kind = "push"

// EncodePush encodes an event for a push configuration. In form 0.3, which sends the whole
// task, t is the task as of the event. In form 1.0, t has no messages and artifacts, so that a
// push costs what it sends and not what the task holds.
type EncodePush func(p *task.PushConfig, t *task.Task, e *task.Event) (header map[string]string, body []byte)

// pushSource reads the events of tasks for their push configurations.
type pushSource struct {
	read   TaskReader
	log    stream.Log
	encode EncodePush
}

// NewPushSource returns the source of subscriptions of PushKind.
func NewPushSource(s Stores, encode EncodePush) delivery.Source {
	return pushSource{read: s.Read, log: s.Log, encode: encode}
}

// Events implements delivery.Source. In form 0.3 the task is folded from its first event on;
// in form 1.0 the events up to the cursor are not read.
func (s pushSource) Events(ctx context.Context, sub *delivery.Subscription) iter.Seq2[delivery.Event, error] {
	return func(yield func(delivery.Event, error) bool) {
		t, err := s.read.Row(ctx, sub.Org, sub.Topic)
		if err != nil {
			yield(delivery.Event{}, err)
			return
		}
		t.State, t.UpdatedAt, t.Seq = task.Submitted, t.CreatedAt, 0
		p := &task.PushConfig{
			ID: sub.ID, TaskID: t.ID, URL: sub.URL, Token: sub.Token, Scheme: sub.Scheme, Credentials: sub.Credentials,
			Form: task.PushForm(sub.Form),
		}
		known := sub.Cursor // a copy: the cursor moves on with each delivered event
		after := known
		if p.Form == task.PushV03 {
			after = 0
		}
		for {
			events, err := s.log.Events(ctx, sub.Org, sub.Topic, after, 100)
			if err != nil {
				yield(delivery.Event{}, err)
				return
			}
			if len(events) == 0 {
				return
			}
			for i := range events {
				e := &events[i]
				t.Apply(e)
				after = e.Seq
				if e.Seq > known && !yield(s.event(p, t, e), nil) {
					return
				}
			}
		}
	}
}

// event returns the delivery event for e. t is the task as of e.
func (s pushSource) event(p *task.PushConfig, t task.Task, e *task.Event) delivery.Event {
	out := delivery.Event{
		Seq: e.Seq, Last: e.Kind == task.StatusEvent && e.State.Terminal(), Trace: trace.FromString(t.Trace),
	}
	if e.Kind == task.TurnEvent { // the sender wrote it
		return out
	}
	if p.Form != task.PushV03 {
		t.History, t.Artifacts = nil, nil
	}
	out.Encode = func() (map[string]string, []byte) { return s.encode(p, &t, e) }
	return out
}
