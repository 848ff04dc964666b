package dispatch

import (
	"context"
	"iter"

	"github.com/parley-dev/parley/internal/delivery"
	"github.com/parley-dev/parley/internal/stream"
	"github.com/parley-dev/parley/internal/task"
)

// pushSource has the events of tasks for their push configurations. It implements
// delivery.Source; the topic of a subscription is the uid of the task.
type pushSource struct {
	read   TaskReader
	log    stream.Log
	encode func(p *task.PushConfig, t *task.Task, e *task.Event) (header map[string]string, body []byte)
}

// Events implements delivery.Source. In form 0.3, which sends the task, it is folded from
// the first event on; in form 1.0 the events up to the cursor are not read.
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
		known := sub.Cursor // which moves on with each event
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

// event is what the receiver is told of an event of a task that is folded up to it.
func (s pushSource) event(p *task.PushConfig, t task.Task, e *task.Event) delivery.Event {
	out := delivery.Event{Seq: e.Seq, Last: e.Kind == task.StatusEvent && e.State.Terminal()}
	if e.Kind == task.TurnEvent { // the sender knows what it said
		return out
	}
	if p.Form != task.PushV03 {
		t.History, t.Artifacts = nil, nil
	}
	out.Encode = func() (map[string]string, []byte) { return s.encode(p, &t, e) }
	return out
}
