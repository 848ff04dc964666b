package store

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-dev/parley/internal/errs"
)

const (
	// laneQueue is how many slow reads of one org may wait, laneQueueAll how many of
	// all orgs together. A read beyond that is refused at once.
	laneQueue    = 256
	laneQueueAll = 1024
	// laneSlices is the part of the deadline after which a slow read gives its place
	// to another org that waits.
	laneSlices = 5
	// defaultSlowTimeout is how long a slow read may take, waiting included.
	defaultSlowTimeout = 5 * time.Second
)

// lane shares the connections for slow reads between the orgs. It bounds how many
// run and how many wait. Orgs take turns, so that one org with many searches does
// not keep the search of another from running: no org holds more than half of the
// places, a free place goes to the next org in turn, and a read that has run for a
// slice of the deadline is canceled if another org has to wait for it.
type lane struct {
	size, perOrg int
	timeout      time.Duration

	mu      sync.Mutex
	running []*visit            // longest first
	waiting map[string][]*visit // by org, in order of arrival
	turns   []string            // the orgs in waiting, next first
	queued  int

	waits, busy atomic.Int64 // for the metrics
}

// visit is one slow read that runs or waits.
type visit struct {
	org     string
	granted chan struct{} // closed when it has a place
	cancel  context.CancelFunc
	timer   *time.Timer
	overdue bool // it has run for its slice
	evicted bool
}

func newLane(size int, timeout time.Duration) *lane {
	if timeout <= 0 {
		timeout = defaultSlowTimeout
	}
	return &lane{size: size, perOrg: max(1, size/2), timeout: timeout, waiting: map[string][]*visit{}}
}

// errBusy is what a slow read gets beyond its deadline or its org's share.
func errBusy() error {
	e := errs.New(errs.Unavailable, "search.busy",
		"the search took too long, or too many searches are running; narrow it or try again")
	e.RetryAfter = 2 * time.Second
	return e
}

// slow runs a read whose cost grows with the data: a search, a page far from the
// start of a list, a count of rows. fn reads with the reader and the context it is
// given. org is the org of the caller, who pays with its share of the connections.
func (s *db) slow(ctx context.Context, org string, fn func(ctx context.Context, r reader) error) error {
	limited, cancel := context.WithTimeout(ctx, s.lane.timeout)
	defer cancel()
	v := &visit{org: org, granted: make(chan struct{}), cancel: cancel}
	err := s.lane.enter(limited, v)
	if err == nil {
		err = func() error {
			defer s.lane.leave(v)
			return fn(limited, s.eng.slow())
		}()
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil: // the caller has gone
		return ctx.Err()
	case limited.Err() != nil:
		s.lane.busy.Add(1)
		return errBusy()
	}
	return err
}

// slowIf is slow under a condition; otherwise fn reads on the connections of all.
func (s *db) slowIf(ctx context.Context, slow bool, org string, fn func(ctx context.Context, r reader) error) error {
	if slow {
		return s.slow(ctx, org, fn)
	}
	return fn(ctx, s.eng)
}

// large reports whether more than manyRows rows match. It reads no more than that
// many entries of an index, which the condition must begin.
func (s *db) large(ctx context.Context, from string, args ...any) (bool, error) {
	var n int
	return one(ctx, s.eng, []any{&n}, fmt.Sprintf(`SELECT 1 FROM %s LIMIT 1 OFFSET %d`, from, manyRows), args...)
}

// wideRead is from how many bytes of text on a page counts as a slow read.
const wideRead = 256 << 10

// wide reports whether the text of a page is so large that reading it is slow. page
// selects the lengths of the texts: an engine knows them without reading the text.
func (s *db) wide(ctx context.Context, page string, args ...any) (bool, error) {
	var n int64
	_, err := one(ctx, s.eng, []any{&n}, `SELECT CAST(coalesce(sum(n), 0) AS BIGINT) FROM (`+page+`) p`, args...)
	return n > wideRead, err
}

// enter waits for a place.
func (l *lane) enter(ctx context.Context, v *visit) error {
	l.mu.Lock()
	switch {
	case len(l.running) < l.size && l.runs(v.org) < l.perOrg:
		l.start(v) // whoever waits has its share already
		l.mu.Unlock()
		return nil
	case len(l.waiting[v.org]) >= laneQueue || l.queued >= laneQueueAll:
		l.mu.Unlock()
		l.busy.Add(1)
		return errBusy()
	}
	if len(l.waiting[v.org]) == 0 {
		l.turns = append(l.turns, v.org)
	}
	l.waiting[v.org] = append(l.waiting[v.org], v)
	l.queued++
	l.evict()
	l.mu.Unlock()

	l.waits.Add(1)
	select {
	case <-v.granted:
		return nil
	case <-ctx.Done():
		l.giveUp(v)
		return ctx.Err()
	}
}

// start gives v a place; the caller holds the lock.
func (l *lane) start(v *visit) {
	l.running = append(l.running, v)
	v.timer = time.AfterFunc(l.timeout/laneSlices, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		v.overdue = true
		l.evict()
	})
	close(v.granted)
}

// leave frees the place of v.
func (l *lane) leave(v *visit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	v.timer.Stop()
	l.running = without(l.running, v)
	l.toBack(v.org)
	l.schedule()
	l.evict()
}

// giveUp ends the waiting of v, which may have got a place at the same moment.
func (l *lane) giveUp(v *visit) {
	l.mu.Lock()
	select {
	case <-v.granted:
		l.mu.Unlock()
		l.leave(v)
		return
	default:
	}
	defer l.mu.Unlock()
	l.unqueue(v)
}

// schedule gives free places to the orgs in turn.
func (l *lane) schedule() {
	for len(l.running) < l.size {
		org, ok := l.next("")
		if !ok {
			return
		}
		v := l.waiting[org][0]
		l.unqueue(v)
		l.toBack(org)
		l.start(v)
	}
}

// toBack lets the other orgs that wait go first.
func (l *lane) toBack(org string) {
	if len(l.waiting[org]) > 0 {
		l.turns = append(without(l.turns, org), org)
	}
}

// next is the first org in turn that may have another place; not is left out.
func (l *lane) next(not string) (string, bool) {
	for _, org := range l.turns {
		if org != not && l.runs(org) < l.perOrg {
			return org, true
		}
	}
	return "", false
}

// evict cancels one read that is overdue if another org waits for a place. It
// waits for that read to end before it cancels the next.
func (l *lane) evict() {
	if len(l.running) < l.size || slices.ContainsFunc(l.running, func(v *visit) bool { return v.evicted }) {
		return
	}
	for _, v := range l.running {
		if _, other := l.next(v.org); v.overdue && other {
			v.evicted = true
			v.cancel()
			return
		}
	}
}

func (l *lane) runs(org string) (n int) {
	for _, v := range l.running {
		if v.org == org {
			n++
		}
	}
	return n
}

func (l *lane) unqueue(v *visit) {
	l.queued--
	if l.waiting[v.org] = without(l.waiting[v.org], v); len(l.waiting[v.org]) == 0 {
		delete(l.waiting, v.org)
		l.turns = without(l.turns, v.org)
	}
}

// inUse and queue are for the metrics.
func (l *lane) inUse() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.running)
}

func (l *lane) queue() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.queued
}

// without removes the first such item; it keeps the order.
func without[T comparable](list []T, item T) []T {
	if i := slices.Index(list, item); i >= 0 {
		return slices.Delete(list, i, i+1)
	}
	return list
}
