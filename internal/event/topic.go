package event

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
)

// Limits of what one topic keeps in memory. It drops events when it has twice as much.
const (
	maxRecent     = 1000    // events
	maxRecentSize = 1 << 20 // bytes
)

// Limits of what a reader takes from a topic at a time, so that a slow reader holds little memory.
const (
	maxTaken     = 100       // events
	maxTakenSize = 128 << 10 // bytes, unless one event is larger
)

// topic keeps the newest events of one org, of every scope, for the readers on this node.
type topic struct {
	hub     *hub
	org     string
	readers int          // protected by hub.mu
	size    atomic.Int64 // bytes of recent; written with mu held

	mu      sync.Mutex
	started bool          // last is known
	last    int64         // number of the newest known event
	recent  []Event       // consecutive, up to last
	changed chan struct{} // closed when last changes
	resets  int           // how often the log did not continue after last
	hints   int           // hints so far
	reading bool          // a goroutine reads the log
	again   bool          // a hint came while the log was read
	left    bool          // the last reader has left; keep nothing
}

// start tells the topic where the log ends, according to a reader that read it after so many
// hints. stale reports that the topic may miss events, so the log must be read.
func (t *topic) start(head int64, hints int) (stale bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.started {
		return t.last < head
	}
	t.started, t.last = true, head
	return t.hints != hints
}

// beginRead counts a hint and reports whether the caller must read the log. Only one goroutine
// reads at a time; a hint that comes meanwhile makes it read again.
func (t *topic) beginRead() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.hints++
	if t.reading {
		t.again = true
	}
	if t.reading || !t.started { // start compares the hints
		return false
	}
	t.reading, t.again = true, false
	return true
}

// endRead reports whether the reader of the log is done.
func (t *topic) endRead(done bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if done && !t.again || t.left {
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
		t.hub.makeRoom()
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
	if t.left {
		return
	}
	if p.Missed || len(p.Events) > 0 && p.Events[0].Seq != t.last+1 {
		t.drop(len(t.recent))
	}
	if p.Missed {
		t.resets++
	}
	added := int64(0)
	for i := range p.Events {
		e := p.Events[i].compact()
		added += e.footprint()
		t.recent = append(t.recent, e)
	}
	t.size.Add(added)
	t.hub.kept.Add(added)
	t.trim()
	if p.Last != t.last || p.Missed {
		t.last = p.Last
		close(t.changed)
		t.changed = make(chan struct{})
	}
}

// trim drops the oldest events when twice as many as needed are kept. The caller holds mu.
func (t *topic) trim() {
	size := t.size.Load()
	if len(t.recent) <= 2*maxRecent && size <= 2*maxRecentSize {
		return
	}
	n := 0
	for len(t.recent)-n > maxRecent || size > maxRecentSize {
		size -= t.recent[n].footprint()
		n++
	}
	t.drop(n)
}

// drop drops the oldest n events. The caller holds mu.
func (t *topic) drop(n int) {
	if n == 0 {
		return
	}
	freed := int64(0)
	for i := range t.recent[:n] {
		freed += t.recent[i].footprint()
	}
	t.size.Add(-freed)
	t.hub.kept.Add(-freed)
	t.recent = slices.Clone(t.recent[n:]) // frees the dropped ones
}

// footprint estimates the memory of an event.
func (e *Event) footprint() int64 { return int64(256 + len(e.Data) + len(e.Subject) + len(e.Actor)) }

// compact returns the event in memory of its own. A store may have cut it out of something larger.
func (e *Event) compact() Event {
	out := *e
	text := string(e.Type) + e.ID + e.Subject + e.Actor + string(e.Scope)
	cut := func(n int) (s string) {
		s, text = text[:n], text[n:]
		return s
	}
	out.Type, out.ID, out.Subject = Type(cut(len(e.Type))), cut(len(e.ID)), cut(len(e.Subject))
	out.Actor, out.Scope = cut(len(e.Actor)), Scope(cut(len(e.Scope)))
	return out
}

// tail is what a topic has for one reader.
type tail struct {
	events  []Event         // after the reader's number, oldest first; maybe not all
	known   bool            // these are the next events of the reader; otherwise it must read the log
	ahead   bool            // the reader's number is beyond last: this node has not read so far, or it is wrong
	changed <-chan struct{} // closed when last changes
	hints   int             // for start
	resets  int
}

// after returns the kept events after a number.
func (t *topic) after(seq int64) tail {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := tail{changed: t.changed, hints: t.hints, resets: t.resets}
	behind := t.last - seq
	if !t.started || behind > int64(len(t.recent)) {
		return out
	}
	out.known, out.ahead = true, behind < 0
	if behind <= 0 {
		return out
	}
	next := t.recent[int64(len(t.recent))-behind:]
	n, size := 0, int64(0)
	for n < len(next) && n < maxTaken && size < maxTakenSize {
		size += next[n].footprint()
		n++
	}
	out.events = slices.Clone(next[:n])
	return out
}
