package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"
	"slices"
	"strings"

	"github.com/parley-dev/parley/internal/delivery"
	"github.com/parley-dev/parley/internal/event"
	"github.com/parley-dev/parley/internal/trace"
)

// pageSize limits the events in memory for each delivery in progress.
const pageSize = 16

// viewer sees what an admin sees, but no drafts.
var viewer = event.Viewer{Admin: true, NoDrafts: true}

// filter returns the part of the webhook's filter that the log can apply.
func (w *Webhook) filter() event.Filter {
	f := event.Filter{Viewer: viewer}
	for _, t := range w.Types {
		f.Types = f.Types.With(t)
	}
	return f
}

// wants reports whether the webhook selects an event that its filter matches.
func (w *Webhook) wants(e *event.Event) bool {
	if e.Type == event.WebhookCreated && e.Subject == w.Subject() {
		return false // it gets what happens after its creation
	}
	if len(w.Categories) == 0 && len(w.Priorities) == 0 || !strings.HasPrefix(string(e.Type), "proposal.") {
		return true
	}
	var p struct{ Category, Priority string }
	if json.Unmarshal(e.Data, &p) != nil {
		return false
	}
	return has(w.Categories, p.Category) && has(w.Priorities, p.Priority)
}

// has reports whether a list selects s; an empty one selects all.
func has(list []string, s string) bool { return len(list) == 0 || slices.Contains(list, s) }

// selects reports whether the webhook gets an event.
func (w *Webhook) selects(e *event.Event) bool {
	f := w.filter()
	return f.Match(e) && w.wants(e)
}

// source reads the events of webhooks.
type source struct{ *Service }

// Events implements delivery.Source. For events that the webhook does not select, it yields the
// last number of each page, so that they are passed at once.
func (s source) Events(ctx context.Context, sub *delivery.Subscription) iter.Seq2[delivery.Event, error] {
	after := sub.Cursor // a copy: the cursor moves on with each delivered event
	return func(yield func(delivery.Event, error) bool) {
		w, secrets, err := s.store.Secrets(ctx, sub.Org, sub.ID)
		if err != nil {
			yield(delivery.Event{}, err)
			return
		}
		q := event.Query{Filter: w.filter(), After: after, Limit: pageSize}
		for {
			page, err := s.log.Page(ctx, sub.Org, q)
			if err != nil {
				yield(delivery.Event{}, err)
				return
			}
			for i := range page.Events {
				e := &page.Events[i]
				out := delivery.Event{Seq: e.Seq}
				if w.wants(e) {
					out = s.request(&w, secrets, e)
				}
				if !yield(out, nil) {
					return
				}
				q.After = e.Seq
			}
			if page.Last > q.After {
				q.After = page.Last
				if !yield(delivery.Event{Seq: page.Last}, nil) {
					return
				}
			}
			if q.After >= page.Head {
				return
			}
		}
	}
}

// traceOf returns the trace that the record of an event belongs to. Only tasks have one.
func traceOf(e *event.Event) trace.Context {
	if !strings.HasPrefix(string(e.Type), "task.") || !bytes.Contains(e.Data, []byte(`"traceparent"`)) {
		return trace.Context{}
	}
	var t struct{ Traceparent string }
	if json.Unmarshal(e.Data, &t) != nil {
		return trace.Context{}
	}
	return trace.Parse([]string{t.Traceparent}, nil)
}

// request returns the delivery of an event.
func (s *Service) request(w *Webhook, secrets Secrets, e *event.Event) delivery.Event {
	return delivery.Event{
		Seq: e.Seq, ID: e.ID, Type: string(e.Type), Trace: traceOf(e), Sign: secrets.Sign,
		Encode: func() (map[string]string, []byte) {
			contentType, body := Encode(w.Format, e, s.base)
			return map[string]string{"Content-Type": contentType}, body
		},
	}
}
