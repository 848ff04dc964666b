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
	// laneQueue limits the waiting slow reads of one org, laneQueueAll those of all orgs
	// together. Further reads are refused at once.
	laneQueue    = 256
	laneQueueAll = 1024
	// laneSlices is the number of slices of the deadline. After one slice a slow read gives
	// its place to another org that waits.
	laneSlices = 5
	// defaultSlowTimeout limits a slow read, including the wait for a place.
	defaultSlowTimeout = 5 * time.Second
)

// lane shares the connections for slow reads among the orgs. It limits how many reads run and
// how many wait. Orgs take turns, so that one org with many searches cannot block those of
// another: no org holds more than half of the places, a free place goes to the next org in
// turn, and a read that has run for one slice of the deadline is canceled if another org
// waits for a place.
type lane struct {
	size, perOrg int
	timeout      time.Duration

	mu      sync.Mutex
	running []*visit            // oldest first
	waiting map[string][]*visit // by org, in order of arrival
	turns   []string            // the orgs in waiting, next first
	queued  int

	waits, busy atomic.Int64 // for the metrics
}

// visit is one slow read that runs or waits.
type visit struct {
	org     string
	granted chan struct{} // closed when the visit gets a place
	cancel  context.CancelFunc
	timer   *time.Timer
	overdue bool // the visit has run for one slice
	evicted bool
}

func newLane(size int, timeout time.Duration) *lane {
	if timeout <= 0 {
		timeout = defaultSlowTimeout
	}
	return &lane{size: size, perOrg: max(1, size/2), timeout: timeout, waiting: map[string][]*visit{}}
}

// errBusy is the error of a slow read that exceeds its deadline or its org's share.
func errBusy() error {
	e := errs.New(errs.Unavailable, "search.busy",
		"the search took too long, or too many searches are running; narrow it or try again")
	e.RetryAfter = 2 * time.Second
	return e
}

// slow runs a read whose cost grows with the data: a search, a page far from the start of a
// list, a count of rows. fn must use the reader and the context that it is given. org is the
// caller's org; the read uses its share of the connections.
func (s *db) slow(ctx context.Context, org string, fn func(ctx context.Context, r reader) error) error {
	return s.inLane(ctx, org, s.eng.slow, fn)
}

// stale is slow for a read that may see data which is some seconds old. Its result must not be cached
// for a version of the data.
func (s *db) stale(ctx context.Context, org string, fn func(ctx context.Context, r reader) error) error {
	return s.inLane(ctx, org, s.eng.stale, fn)
}

func (s *db) inLane(
	ctx context.Context, org string, on func() reader, fn func(ctx context.Context, r reader) error,
) error {
	limited, cancel := context.WithTimeout(ctx, s.lane.timeout)
	defer cancel()
	v := &visit{org: org, granted: make(chan struct{}), cancel: cancel}
	err := s.lane.enter(limited, v)
	if err == nil {
		err = func() error {
			defer s.lane.leave(v)
			return fn(limited, on())
		}()
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil: // the caller is gone
		return ctx.Err()
	case limited.Err() != nil:
		s.lane.busy.Add(1)
		return errBusy()
	}
	return err
}

// slowIf calls slow if the condition holds; otherwise fn uses the ordinary connections.
func (s *db) slowIf(ctx context.Context, slow bool, org string, fn func(ctx context.Context, r reader) error) error {
	if slow {
		return s.slow(ctx, org, fn)
	}
	return fn(ctx, s.eng)
}

// large reports whether more than manyRows rows match. It reads at most that many entries of
// an index, whose first columns the condition must name.
func (s *db) large(ctx context.Context, from string, args ...any) (bool, error) {
	var n int
	return one(ctx, s.eng, []any{&n}, fmt.Sprintf(`SELECT 1 FROM %s LIMIT 1 OFFSET %d`, from, manyRows), args...)
}

// wideRead is the size of text in bytes from which a page is a slow read.
const wideRead = 256 << 10

// wide reports whether the text of a page is so large that reading it is slow. page selects
// the lengths of the texts as n. An engine knows them without reading the text.
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
		l.start(v) // every waiting org has its full share
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

// start gives v a place. The caller holds l.mu.
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

// giveUp ends the wait of v, which may have got a place at the same moment.
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

// schedule gives free places to the waiting orgs in turn.
func (l *lane) schedule() {
	for len(l.running) < l.size {
		org, ok := l.next(anyOrg)
		if !ok {
			return
		}
		v := l.waiting[org][0]
		l.unqueue(v)
		l.toBack(org)
		l.start(v)
	}
}

// toBack moves a waiting org to the end of the turns.
func (l *lane) toBack(org string) {
	if len(l.waiting[org]) > 0 {
		l.turns = append(without(l.turns, org), org)
	}
}

// anyOrg is no org, not even that of reads which belong to none, whose org is empty.
const anyOrg = "\x00"

// next returns the first org in turn, other than not, that may have another place.
func (l *lane) next(not string) (string, bool) {
	for _, org := range l.turns {
		if org != not && l.runs(org) < l.perOrg {
			return org, true
		}
	}
	return "", false
}

// evict cancels one overdue read if another org waits for a place. It cancels the next one
// only after that read has ended.
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

// inUse returns the number of running reads, for the metrics.
func (l *lane) inUse() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.running)
}

// queue returns the number of waiting reads, for the metrics.
func (l *lane) queue() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.queued
}

// without removes the first occurrence of item and keeps the order.
func without[T comparable](list []T, item T) []T {
	if i := slices.Index(list, item); i >= 0 {
		return slices.Delete(list, i, i+1)
	}
	return list
}
