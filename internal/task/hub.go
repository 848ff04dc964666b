package task

import (
	"context"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-dev/parley/internal/budget"
)

// hub tells readers on this node what happens to tasks. One topic per followed
// task keeps the latest events in memory, so that ten thousand readers are not
// ten thousand queries; each reader has a cursor of its own and falls back to the
// log when it is too far behind. A reader that stalls costs only itself.
type hub struct {
	store    Store
	stopping <-chan struct{}
	kept     atomic.Int64             // bytes of events in all topics
	room     sync.Mutex               // held while events are dropped to make room
	pages    shared[pageKey, []Event] // of logs, while readers are at them

	mu     sync.Mutex
	topics map[Ref]*topic
	owners map[string]*owner // by org
}

// topic is the tail of one task's log. It exists while somebody follows it.
type topic struct {
	hub     *hub
	ref     Ref
	owner   *owner
	readers int

	mu      sync.Mutex
	last    int64         // seq of the newest event known
	recent  []Event       // up to last, without gaps
	sizes   []int64       // of the events in recent, in bytes
	size    int64         // of all of them
	left    bool          // by its last reader: nothing is kept any more
	changed chan struct{} // closed when last grows
	reading bool          // somebody reads the log for all
	again   bool          // and shall read it once more
}

// Bounds of what a topic keeps in memory, in events and in bytes, and of what all
// topics keep together. What is not kept is read from the log.
const (
	maxRecent     = 64
	maxRecentSize = 128 << 10
	maxKept       = 32 << 20
)

func newHub(store Store, stopping <-chan struct{}) *hub {
	return &hub{store: store, stopping: stopping, topics: map[Ref]*topic{}, owners: map[string]*owner{}}
}

// follow joins the topic of a task that the org sender has sent; leave must be called.
func (h *hub) follow(ref Ref, sender string, known int64) *topic {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.topics[ref]
	if t == nil {
		t = &topic{hub: h, ref: ref, last: known, changed: make(chan struct{})}
		h.topics[ref] = t
		h.own(sender, t)
	}
	t.readers++
	return t
}

func (h *hub) leave(t *topic) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t.readers--; t.readers == 0 {
		delete(h.topics, t.ref)
		h.disown(t)
		t.mu.Lock()
		t.left = true
		t.forget(len(t.recent))
		t.mu.Unlock()
	}
}

func (h *hub) topic(ref Ref) *topic {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.topics[ref]
}

// refs lists the followed tasks.
func (h *hub) refs() []Ref {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := make([]Ref, 0, len(h.topics))
	for ref := range h.topics {
		out = append(out, ref)
	}
	return out
}

// publish hands events that were just committed to the readers on this node. If
// they do not join on to what is known, as when two commits overtake each other
// on the way here, the log is read instead.
func (h *hub) publish(ref Ref, events []Event) {
	if t := h.topic(ref); t != nil && len(events) > 0 && !t.append(events) {
		go h.hint(context.Background(), ref)
	}
}

// append takes the events that follow the newest known; it reports whether all
// are known now.
func (t *topic) append(events []Event) bool {
	known := t.add(events)
	t.hub.makeRoom()
	return known
}

func (t *topic) add(events []Event) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.last
	for _, e := range events {
		if e.Seq == t.last+1 {
			t.keep(e)
			t.last = e.Seq
		}
	}
	if t.last > before {
		t.wake()
	}
	return events[len(events)-1].Seq <= t.last
}

// keep adds the newest event, and drops older ones if there is no room for all. An
// event that cannot be kept takes all older ones with it: there must be no gap.
func (t *topic) keep(e Event) {
	size := e.Size()
	if e.Kind == TurnEvent && size > largeEvent {
		e.Message, size = nil, 0 // streams do not show it, and a wait reads it again
	}
	if t.left || size > largeEvent {
		t.forget(len(t.recent))
		return
	}
	t.recent, t.sizes = append(t.recent, e), append(t.sizes, size)
	t.size += size
	t.hub.kept.Add(size)
	t.owner.kept.Add(size)
	drop, left := 0, t.size
	for n := len(t.recent); left > maxRecentSize || n > 2*maxRecent && n-drop > maxRecent; drop++ {
		left -= t.sizes[drop]
	}
	t.forget(drop)
}

// forget drops the oldest n events. Readers may hold the slice, so the rest is copied.
func (t *topic) forget(n int) {
	if n == 0 {
		return
	}
	before := t.size
	for _, size := range t.sizes[:n] {
		t.size -= size
	}
	t.hub.kept.Add(t.size - before)
	t.owner.kept.Add(t.size - before)
	t.recent, t.sizes = slices.Clone(t.recent[n:]), slices.Clone(t.sizes[n:])
}

// Size is about what the event takes as JSON, in bytes.
func (e *Event) Size() (n int64) {
	if e.Message != nil {
		n += e.Message.size()
	}
	if e.Artifact != nil {
		n += e.Artifact.size()
	}
	return n + listSize(e.OutputModes) + int64(len(e.Metadata))
}

func (t *topic) wake() {
	close(t.changed)
	t.changed = make(chan struct{})
}

// after returns the events after a cursor that are in memory, and the channel
// that closes when there may be more. ok is false if the log must be asked.
func (t *topic) after(cursor int64) (events []Event, changed <-chan struct{}, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if cursor >= t.last {
		return nil, t.changed, true
	}
	first := t.last - int64(len(t.recent)) + 1
	if cursor+1 < first {
		return nil, t.changed, false
	}
	tail := t.recent[cursor+1-first:]
	return tail[:len(tail):len(tail)], t.changed, true
}

// hint says that a task may have changed where publish could not tell: the log is
// read once for all readers here.
func (h *hub) hint(ctx context.Context, ref Ref) {
	t := h.topic(ref)
	if t == nil || !t.startReading() {
		return
	}
	for {
		t.mu.Lock()
		last := t.last
		t.mu.Unlock()
		events, err := h.store.TaskEvents(ctx, ref.Org, ref.UID, last, maxRecent)
		if len(events) > 0 {
			t.append(events)
			continue
		}
		if t.stopReading(err != nil) {
			return
		}
	}
}

// startReading makes the caller the one reader of the log. If there is one, that
// one will look once more.
func (t *topic) startReading() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.again = t.reading
	was := t.reading
	t.reading = true
	return !was
}

// stopReading ends the reading, unless somebody asked for more meanwhile. After
// an error it always ends; the slow poll asks again.
func (t *topic) stopReading(failed bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.again && !failed {
		t.again = false
		return false
	}
	t.reading, t.again = false, false
	return true
}

// events yields a task's events after a cursor, first what is there, then what
// comes, until the task ends, the consumer stops, ctx ends or the server stops.
//
// With idle set it yields a zero Event whenever there is nothing more for now, and
// again every idle while that is so. The consumer can then flush what it has
// buffered, and look after other things, without a goroutine of its own.
func (h *hub) events(ctx context.Context, t *topic, cursor int64, idle time.Duration) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		var tick <-chan time.Time
		if idle > 0 {
			ticker := time.NewTicker(idle)
			defer ticker.Stop()
			tick = ticker.C
		}
		for {
			events, changed, ok := t.after(cursor)
			done := func() {}
			if !ok {
				var err error
				events, done, err = h.page(ctx, t.ref, cursor)
				switch {
				case budget.IsBusy(err) && tick != nil && ctx.Err() == nil:
					// Too many readers hold too much. This one waits for its turn.
					if !yield(Event{}, nil) {
						return
					}
					continue
				case err != nil:
					yield(Event{}, err)
					return
				}
			}
			n := len(events)
			cursor, ok = yieldAll(events, cursor, yield)
			done()
			if !ok {
				return
			}
			if n > 0 {
				continue
			}
			if tick != nil && !yield(Event{}, nil) {
				return
			}
			select {
			case <-changed:
			case <-tick:
			case <-h.stopping:
				return
			case <-ctx.Done():
				yield(Event{}, ctx.Err())
				return
			}
		}
	}
}

// yieldAll yields events and returns the cursor behind the last. more is false when
// the task has ended, or the consumer wants no more.
func yieldAll(events []Event, cursor int64, yield func(Event, error) bool) (_ int64, more bool) {
	for i := range events {
		if !yield(events[i], nil) {
			return cursor, false
		}
		cursor = events[i].Seq
		if events[i].Kind == StatusEvent && events[i].State.Terminal() {
			return cursor, false
		}
	}
	return cursor, true
}

// pageKey names a page of a log.
type pageKey struct {
	ref   Ref
	after int64
}

// page reads events of a log after a cursor. Readers at the same place share what was
// read, and the memory for it and its encoding is taken from the budget before. done must be called
// when the events are no longer needed.
func (h *hub) page(ctx context.Context, ref Ref, after int64) (events []Event, done func(), err error) {
	return h.pages.use(ctx, pageKey{ref, after}, func(ctx context.Context) ([]Event, func(), error) {
		if budget.From(ctx) == nil {
			events, err := h.store.TaskEvents(ctx, ref.Org, ref.UID, after, maxRecent)
			return events, nil, err
		}
		size, err := h.store.TaskEventsSize(ctx, ref.Org, ref.UID, after, maxRecent)
		if err != nil {
			return nil, nil, err
		}
		worked, release, err := budget.From(ctx).Borrow(ctx, 2*size)
		if err != nil {
			return nil, nil, err
		}
		defer worked()
		events, err := h.store.TaskEvents(ctx, ref.Org, ref.UID, after, maxRecent)
		if err != nil {
			release()
			return nil, nil, err
		}
		return events, release, nil
	})
}

// poll is beneath the hints: every interval it compares the followed tasks with
// the log, so that a lost hint costs time and never an event.
func (h *hub) poll(ctx context.Context, interval time.Duration, onError func(error)) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		refs := h.refs()
		for len(refs) > 0 {
			n := min(len(refs), 500)
			seqs, err := h.store.TaskSeqs(ctx, refs[:n])
			if err != nil {
				if ctx.Err() == nil {
					onError(err)
				}
				break
			}
			for ref, seq := range seqs {
				if t := h.topic(ref); t != nil && t.behind(seq) {
					h.hint(ctx, ref)
				}
			}
			refs = refs[n:]
		}
	}
}

func (t *topic) behind(seq int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last < seq
}
