package event

import (
	"context"
	"sync"
)

// hub has a topic for each org that is followed on this node, so that the log is read once for
// all readers of an org. A lost hint delays events, but loses none: the log is authoritative.
type hub struct {
	store Store

	mu     sync.Mutex
	topics map[string]*topic // by org
}

const (
	maxRecent     = 1000    // events that a topic keeps at least, if they are small
	maxRecentSize = 1 << 20 // bytes of them
)

// topic keeps the newest events of one org, of every scope, for the readers on this node.
type topic struct {
	hub     *hub
	org     string
	readers int // protected by hub.mu

	mu      sync.Mutex
	started bool          // last is known
	last    int64         // number of the newest known event
	recent  []Event       // consecutive, up to last; never changed in place, because readers share it
	size    int           // bytes of recent
	changed chan struct{} // closed when last grows
	hints   int           // hints so far
	reading bool
	again   bool // a hint came while the log was read
}

// join returns the topic of an org. The caller must call leave.
func (h *hub) join(org string) *topic {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.topics[org]
	if t == nil {
		t = &topic{hub: h, org: org, changed: make(chan struct{})}
		h.topics[org] = t
	}
	t.readers++
	return t
}

func (t *topic) leave() {
	t.hub.mu.Lock()
	defer t.hub.mu.Unlock()
	if t.readers--; t.readers == 0 {
		delete(t.hub.topics, t.org)
	}
}

// changed reads what is new in an org that is followed here, in the background.
func (h *hub) changed(org string, onError func(error)) {
	h.mu.Lock()
	t := h.topics[org]
	h.mu.Unlock()
	if t == nil || !t.beginRead() {
		return
	}
	go func() {
		if err := t.read(context.Background()); err != nil { // the next hint or poll reads again
			onError(err)
		}
	}()
}

// orgs lists the followed orgs.
func (h *hub) orgs() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := make([]string, 0, len(h.topics))
	for org := range h.topics {
		out = append(out, org)
	}
	return out
}

// start tells the topic where the log ends, according to a reader that read it after so many
// hints. If there was a hint since, the reader must read again.
func (t *topic) start(head int64, hints int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.started && t.hints == hints {
		t.started, t.last = true, head
	}
}

// beginRead counts a hint and reports whether the caller must read the log. Only one goroutine
// reads at a time; a hint that comes meanwhile makes it read again.
func (t *topic) beginRead() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.hints++
	if t.reading || !t.started {
		t.again = true
		return false
	}
	t.reading, t.again = true, false
	return true
}

// endRead reports whether the reader of the log is done.
func (t *topic) endRead(done bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if done && !t.again {
		t.reading = false
		return true
	}
	t.again = false
	return false
}

// read appends what the log has after last.
func (t *topic) read(ctx context.Context) error {
	all := Filter{Viewer: Viewer{Admin: true}}
	for {
		page, err := t.hub.store.Page(ctx, t.org, Query{Filter: all, After: t.newest(), Limit: maxRecent})
		if err != nil {
			t.mu.Lock()
			t.reading = false
			t.mu.Unlock()
			return err
		}
		t.append(&page)
		if t.endRead(page.Last >= page.Head) {
			return nil
		}
	}
}

func (t *topic) newest() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last
}

// append adds a page that was read after last, and wakes the readers.
func (t *topic) append(p *Page) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p.Missed || len(p.Events) > 0 && p.Events[0].Seq != t.last+1 {
		t.recent, t.size = nil, 0
	}
	t.recent = append(t.recent, p.Events...)
	for i := range p.Events {
		t.size += p.Events[i].footprint()
	}
	t.trim()
	if p.Last != t.last {
		t.last = p.Last
		close(t.changed)
		t.changed = make(chan struct{})
	}
}

// trim drops the oldest events when twice as many as needed are kept. The caller holds mu.
func (t *topic) trim() {
	if len(t.recent) <= 2*maxRecent && t.size <= 2*maxRecentSize {
		return
	}
	drop := 0
	for len(t.recent)-drop > maxRecent || t.size > maxRecentSize && drop < len(t.recent)-1 {
		t.size -= t.recent[drop].footprint()
		drop++
	}
	t.recent = append([]Event(nil), t.recent[drop:]...) // frees the dropped ones
}

// footprint estimates the memory of an event.
func (e *Event) footprint() int { return 200 + len(e.Data) }

// after returns the kept events after a number, and a channel that is closed when there are more.
// ok is false if the topic does not have all of them: the reader must read the log, and then call
// start with hints.
func (t *topic) after(seq int64) (events []Event, changed <-chan struct{}, hints int, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	behind := t.last - seq
	switch {
	case !t.started || behind > int64(len(t.recent)):
		return nil, t.changed, t.hints, false
	case behind <= 0: // also if the reader is ahead of this node
		return nil, t.changed, t.hints, true
	}
	return t.recent[int64(len(t.recent))-behind:], t.changed, t.hints, true
}
