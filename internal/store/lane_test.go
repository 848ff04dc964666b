package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/pgtest"
	"github.com/parley-dev/parley/internal/proposal"
)

// endless is a query that ends only if it is canceled.
const endless = `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT 1 FROM n) SELECT count(*) FROM n`

func readEndlessly(ctx context.Context, r reader) error {
	var n int64
	_, err := one(ctx, r, []any{&n}, endless)
	return err
}

// eachEngine opens a store on each engine with one proposal in each of the orgs a and b.
func eachEngine(t *testing.T, o Options, test func(t *testing.T, s *Store)) {
	for name, where := range map[string]func(t *testing.T, o *Options){
		"sqlite":   func(t *testing.T, o *Options) { o.Dir = t.TempDir() },
		"postgres": func(t *testing.T, o *Options) { o.URL = pgtest.URL(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := o
			where(t, &o)
			s, err := Open(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			addProposals(t, s, "a", 1)
			addProposals(t, s, "b", 1)
			test(t, s)
		})
	}
}

// addProposals creates the proposals prop-1 to prop-n of an org, and their user.
func addProposals(t *testing.T, s *Store, org string, n int) {
	t.Helper()
	var wg sync.WaitGroup
	for part := range 16 {
		wg.Go(func() {
			for i := 1 + part; i <= n; i += 16 {
				now := time.Now().UTC()
				p := proposal.Proposal{
					Org: org, ID: propID(i), Title: "the upload fails", Status: proposal.Open, Category: proposal.Reliability,
					Priority: proposal.Normal, SubmittedBy: "user:ann", SubmittedAt: now, UpdatedAt: now, Version: 1,
				}
				if _, err := s.Proposals().Insert(t.Context(), p, annOf(org), nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

func propID(i int) string { return fmt.Sprintf("prop-%026d", i) }

func annOf(org string) identity.Principal {
	return identity.Principal{Org: org, Kind: identity.User, ID: "ann"}
}

func search(ctx context.Context, s *Store, org string) (int64, error) {
	found, err := s.Proposals().Search(ctx, proposal.Filter{
		Org: org, Viewer: proposal.Viewer{Principal: annOf(org)}, Words: []string{"upl"},
		Sort: proposal.SortNewest, Limit: 20,
	})
	return found.Total, err
}

// flood keeps more slow reads of the orgs running and waiting than there are connections, until
// stop is called.
func flood(t *testing.T, s *Store, orgs ...string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for _, org := range orgs {
		for range 20 {
			wg.Go(func() {
				for ctx.Err() == nil {
					err := s.slow(ctx, org, readEndlessly)
					if ctx.Err() == nil && errs.As(err).Code != "search.busy" {
						t.Errorf("slow read = %v, want code search.busy", err)
						return
					}
				}
			})
		}
	}
	waitFor(t, func() bool { return s.lane.queue() > 0 })
	return func() {
		cancel()
		wg.Wait()
	}
}

func waitFor(t *testing.T, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the condition is still false after 20 s")
		}
	}
}

func TestSlowReadsLeaveConnectionsToOtherRequests(t *testing.T) {
	t.Parallel()
	eachEngine(t, Options{SearchTimeout: time.Minute}, func(t *testing.T, s *Store) {
		defer flood(t, s, "a", "c", "d")()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		for range 50 {
			if _, err := s.Proposals().Get(ctx, "b", propID(1), annOf("b")); err != nil {
				t.Fatalf("Get = %v, want no error", err)
			}
		}
		f := proposal.Filter{Org: "b", Viewer: proposal.Viewer{Principal: annOf("b")}, Sort: proposal.SortReview, Limit: 20}
		if items, total, err := s.Proposals().List(ctx, f); err != nil || len(items) != 1 || total != 1 {
			t.Fatalf("List = %d items of %d, %v, want 1 of 1", len(items), total, err)
		}
		addProposals(t, s, "e", 1)
	})
}

func TestASlowReadEndsAtItsDeadline(t *testing.T) {
	t.Parallel()
	eachEngine(t, Options{SearchTimeout: 250 * time.Millisecond}, func(t *testing.T, s *Store) {
		for range s.lane.size + 1 { // more than there are connections
			err := s.slow(t.Context(), "a", readEndlessly)
			if e := errs.As(err); e.Kind != errs.Unavailable || e.Code != "search.busy" || e.RetryAfter <= 0 {
				t.Fatalf("endless read = %v, want code search.busy with a retry time", err)
			}
		}
		if s.lane.inUse() != 0 {
			t.Fatalf("connections in use = %d, want 0", s.lane.inUse())
		}
		waitFor(t, func() bool { // to open a connection may take longer than this deadline
			n, err := search(t.Context(), s, "b")
			return err == nil && n == 1
		})
	})
}

func TestASlowReadEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	eachEngine(t, Options{SearchTimeout: time.Minute}, func(t *testing.T, s *Store) {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- s.slow(ctx, "a", readEndlessly) }()
		waitFor(t, func() bool { return s.lane.inUse() == 1 })
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Fatalf("read = %v, want %v", err, context.Canceled)
		}
		if n, err := search(t.Context(), s, "b"); err != nil || n != 1 {
			t.Fatalf("search = %d, %v, want 1", n, err)
		}
	})
}

func TestOneOrgDoesNotKeepAnotherFromSearching(t *testing.T) {
	t.Parallel()
	eachEngine(t, Options{SearchTimeout: 10 * time.Second}, func(t *testing.T, s *Store) {
		defer flood(t, s, "a")()
		searches := 3
		if testing.Short() {
			searches = 1 // each takes seconds of CPU time
		}
		for range searches {
			if n, err := search(t.Context(), s, "b"); err != nil || n != 1 {
				t.Fatalf("search = %d, %v, want 1", n, err)
			}
		}
	})
}

// Writes that wait for a lock may hold connections for a long time.
func TestSlowWritesLeaveConnectionsToReads(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), Options{URL: pgtest.URL(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	addProposals(t, s, "b", 1)
	release := make(chan struct{})
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			_ = s.eng.write(t.Context(), func(*tx) error { <-release; return nil })
		})
	}
	e := s.eng.(*pg)
	waitFor(t, func() bool { return len(e.writes) == cap(e.writes) })
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	_, err = s.Proposals().Get(ctx, "b", propID(1), annOf("b"))
	close(release)
	wg.Wait()
	if err != nil {
		t.Fatal(err)
	}
}

// TestSearchWaitsForItsOwnOrgOnly stops the indexer while another org writes.
func TestSearchWaitsForItsOwnOrgOnly(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), Options{Dir: t.TempDir(), SearchTimeout: 3 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	addProposals(t, s, "large", fewWaiting+1)
	waitFor(t, func() bool { // until the indexer has caught up
		n, err := search(t.Context(), s, "large")
		return err == nil && n == fewWaiting+1
	})
	done, err := s.search.turn(t.Context(), "busy")
	if err != nil {
		t.Fatal(err)
	}
	addProposals(t, s, "busy", fewWaiting+1)
	addProposals(t, s, "small", 3)
	for org, want := range map[string]int64{"small": 3, "large": fewWaiting + 1} {
		if n, err := search(t.Context(), s, org); err != nil || n != want {
			t.Errorf("%s: %d found, %v, want %d", org, n, err, want)
		}
	}
	if n, err := search(t.Context(), s, "busy"); err != nil || n != fewWaiting+1 { // without the indexer
		t.Errorf("search in busy = %d, %v, want %d", n, err, fewWaiting+1)
	}
	done()
	if n, err := search(t.Context(), s, "busy"); err != nil || n != fewWaiting+1 {
		t.Errorf("search in busy = %d, %v, want %d", n, err, fewWaiting+1)
	}
}

// TestTurns has one place: an org that waits comes before the next read of the org that just had
// the place.
func TestTurns(t *testing.T) {
	t.Parallel()
	l := newLane(1, time.Minute)
	enter := func(org string) *visit {
		v := &visit{org: org, granted: make(chan struct{}), cancel: func() {}}
		queued := l.queue()
		running := l.inUse()
		go func() { _ = l.enter(t.Context(), v) }()
		waitFor(t, func() bool { return l.queue() > queued || l.inUse() > running })
		return v
	}
	var names []string
	visits := map[string]*visit{}
	for _, name := range []string{"a1", "a2", "a3", "b1", "b2", "c1"} {
		visits[name] = enter(name[:1])
	}
	for range visits {
		for name, v := range visits {
			if l.running[0] == v {
				names = append(names, name)
				defer delete(visits, name)
				l.leave(v)
				break
			}
		}
	}
	if got, want := fmt.Sprint(names), "[a1 b1 c1 a2 b2 a3]"; got != want {
		t.Errorf("the turns are %s, want %s", got, want)
	}
}

func TestALaneBoundsWhatWaits(t *testing.T) {
	t.Parallel()
	l := newLane(2, time.Minute)
	for i := range laneQueue + 1 { // one runs: half of the places
		go func() {
			_ = l.enter(t.Context(), &visit{org: "a", granted: make(chan struct{}), cancel: func() {}})
		}()
		waitFor(t, func() bool { return l.queue()+l.inUse() > i })
	}
	err := l.enter(t.Context(), &visit{org: "a"})
	if e := errs.As(err); e.Kind != errs.Unavailable || e.RetryAfter <= 0 {
		t.Errorf("read beyond the queue = %v, want it unavailable with a retry time", err)
	}
	b := &visit{org: "b", granted: make(chan struct{}), cancel: func() {}}
	if err := l.enter(t.Context(), b); err != nil || l.inUse() != 2 {
		t.Errorf("read of another org = %v with %d running, want no error and 2", err, l.inUse())
	}
}

// Reads that belong to no org, such as those of metrics, wait for their turn like those of an org.
func TestReadsOfNoOrgGetTheirTurn(t *testing.T) {
	t.Parallel()
	l := newLane(1, time.Hour)
	for _, orgs := range [][2]string{{"", ""}, {"a", ""}, {"", "a"}} {
		first := &visit{org: orgs[0], granted: make(chan struct{}), cancel: func() {}}
		second := &visit{org: orgs[1], granted: make(chan struct{}), cancel: func() {}}
		if err := l.enter(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		entered := make(chan error, 1)
		waits := l.waits.Load()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		go func() { entered <- l.enter(ctx, second) }()
		for l.waits.Load() == waits {
			time.Sleep(time.Millisecond)
		}
		l.leave(first)
		select {
		case <-second.granted:
			if err := <-entered; err != nil {
				t.Errorf("%q: %v", orgs, err)
			}
		case <-time.After(10 * time.Second):
			t.Errorf("a read of org %q gets no turn after one of org %q", orgs[1], orgs[0])
		}
		cancel()
		l.leave(second)
	}
}
