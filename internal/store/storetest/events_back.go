package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/parley-dev/parley/internal/event"
)

// walkEventsBack reads the log to its beginning in pages, and checks that every page leads on.
func (w *world) walkEventsBack(org string, f event.Filter, before int64, limit int) (list []event.Event) {
	w.Helper()
	for {
		p, err := w.store.Events().PageBack(w.Context(), org, event.BackQuery{Filter: f, Before: before, Limit: limit})
		w.must(err)
		if len(p.Events) > limit {
			w.Fatalf("a page of %d events, want at most %d", len(p.Events), limit)
		}
		last := before
		for _, e := range p.Events {
			if last > 0 && e.Seq >= last || e.Seq < p.First || e.Org != org {
				w.Fatalf("event %d of %s in a page of %s before %d that reaches back to %d", e.Seq, e.Org, org, last, p.First)
			}
			last = e.Seq
		}
		list = append(list, p.Events...)
		if !p.More() {
			return list
		}
		if before > 0 && p.First >= before {
			w.Fatalf("a page before %d leads to %d, want progress", before, p.First)
		}
		before = p.First
	}
}

// checkEventsBack compares a walk to the beginning of the log of acme with a scan of all its events.
func (w *world) checkEventsBack(state string, all []event.Event, f event.Filter, before int64, limit int) {
	w.Helper()
	var want, got []string
	for _, e := range slices.Backward(all) {
		if e.Seq < before && f.Match(&e) {
			want = append(want, fmt.Sprint(e.Seq, e.ID))
		}
	}
	for _, e := range w.walkEventsBack("acme", f, before, limit) {
		got = append(got, fmt.Sprint(e.Seq, e.ID))
	}
	if !slices.Equal(got, want) {
		w.Fatalf("%s: %+v before %d by %d: %v, want %v", state, f, before, limit, got, want)
	}
}

// testEventsBack: the newest events come first, also of a log that is empty, long, or lost its
// oldest events; those of another org never come.
func testEventsBack(w *world) {
	if list := w.walkEventsBack("acme", everything, 0, 10); len(list) > 0 {
		w.Fatalf("an empty log has %d events", len(list))
	}
	var old, young []event.Event
	for i := range 300 {
		e := w.happened("acme", event.AgentChanged, fmt.Sprintf("agent:%d", i%3))
		e.At = w.now().Add(-time.Hour)
		old = append(old, e)
		young = append(young, w.happened("acme", event.AgentChanged, fmt.Sprintf("agent:%d", i%3)))
	}
	w.appendEvents(old...)
	w.appendEvents(w.happened("other", event.AgentChanged, "agent:1"))
	w.appendEvents(young...)
	for _, f := range []event.Filter{everything, {Subject: "agent:1"}} {
		for state, prepare := range map[string]func(){"as it is": w.numberEvents, "indexed": w.indexEvents} {
			prepare()
			want := 600
			if f.Subject != "" {
				want = 200
			}
			if list := w.walkEventsBack("acme", f, 0, 7); len(list) != want || list[0].At.Before(list[want-1].At) {
				w.Errorf("%s: %d events of %q, want %d, the newest first", state, len(list), f.Subject, want)
			}
		}
	}
	// A number beyond the log starts with the newest.
	if list := w.walkEventsBack("acme", everything, 1<<40, 100); len(list) != 600 {
		w.Errorf("%d events before a number beyond the log, want 600", len(list))
	}
	w.expireEvents(w.now().Add(-time.Minute))
	if list := w.walkEventsBack("acme", everything, 0, 100); len(list) != 300 {
		w.Errorf("%d events after the older half expired, want 300", len(list))
	}
	// The reader's place was deleted.
	if list := w.walkEventsBack("acme", everything, 10, 100); len(list) > 0 {
		w.Errorf("%d events before one that was deleted, want none", len(list))
	}
}
