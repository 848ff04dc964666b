package store

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/pgtest"
	"github.com/parley-dev/parley/internal/proposal"
)

// versionOf returns how many changes the data version counts.
func (s *Store) versionOf(t *testing.T, org string) uint64 {
	t.Helper()
	v, err := s.eng.dataVersion(t.Context(), org)
	if err != nil {
		t.Error(err)
	}
	return v - s.started(t)
}

// started returns the term of data versions that says when PostgreSQL was started.
func (s *Store) started(t *testing.T) uint64 {
	t.Helper()
	var at int64
	if _, err := one(t.Context(), s.eng, []any{&at},
		`SELECT CAST(extract(epoch FROM pg_postmaster_start_time()) * 1000000 AS BIGINT)`); err != nil {
		t.Error(err)
	}
	return uint64(at)
}

func (s *Store) touchOrg(t *testing.T, org string) {
	t.Helper()
	if err := s.eng.add(t.Context(), func(x *tx) error { x.touch(org); return nil }); err != nil {
		t.Error(err)
	}
}

// The last version is known without a query, and read again after a change by this process.
func TestTheLastVersionIsReadAgainAfterAChange(t *testing.T) {
	t.Parallel()
	s := openFor(t, Options{URL: pgtest.URL(t)})
	const org = "acme"
	s.touchOrg(t, org)
	if got := s.eng.seenVersion("other"); got.Known || got.Changes != 0 {
		t.Errorf("of an org that was never read: %+v", got)
	}
	v := s.versionOf(t, org) + s.started(t)
	s.touchOrg(t, org)
	got := s.eng.seenVersion(org)
	if want := (proposal.SeenVersion{Version: v, Known: true, Changes: 2}); got != want {
		t.Errorf("after a change: %+v, want %+v", got, want)
	}
	for deadline := time.Now().Add(time.Minute); got.Version <= v && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
		got = s.eng.seenVersion(org)
	}
	if got.Version != v+1 {
		t.Errorf("version %d is seen in the end, want %d", got.Version, v+1)
	}
}

// A server of PostgreSQL that was started anew may have lost commits, and count changes from a lower
// number. A version of the one before must not come back.
func TestVersionsOfAnotherServerAreOthers(t *testing.T) {
	t.Parallel()
	pair := pgtest.StartPair(t)
	s := openFor(t, Options{URL: pair.URL()})
	s.touchOrg(t, "acme")
	read := func() (version uint64) {
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
			v, err := s.eng.dataVersion(t.Context(), "acme")
			if err == nil {
				return v
			}
			if time.Now().After(deadline) {
				t.Fatal(err)
			}
		}
	}
	before := read()
	if again := read(); again != before {
		t.Errorf("version %d without a change, want %d", again, before)
	}
	pair.Primary.Stop(t)
	pair.Replica.Promote(t)
	if after := read(); after == before || after-before < 1000 && before-after < 1000 {
		t.Errorf("version %d of another server, and %d of the one before", after, before)
	}
}

// A version includes every write that finished before the caller asked, on any node.
func TestDataVersionsAreFreshOnAllNodes(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	nodes := []*Store{openFor(t, Options{URL: url}), openFor(t, Options{URL: url})}
	const orgs, writes = 3, 60
	var finished [orgs]atomic.Uint64
	var writers, readers sync.WaitGroup
	done := make(chan struct{})
	for i := range orgs {
		org := fmt.Sprint("org", i)
		writers.Go(func() {
			for n := range writes {
				nodes[n%2].touchOrg(t, org)
				finished[i].Add(1)
			}
		})
		for r := range 6 {
			readers.Go(func() {
				for {
					before := finished[i].Load()
					if got := nodes[r%2].versionOf(t, org); got < before {
						t.Errorf("version %d of %s, want at least %d", got, org, before)
					}
					select {
					case <-done:
						return
					default:
					}
				}
			})
		}
	}
	writers.Wait()
	close(done)
	readers.Wait()
	for i := range orgs {
		for _, s := range nodes {
			if got := s.versionOf(t, fmt.Sprint("org", i)); got != writes {
				t.Errorf("version %d, want %d", got, writes)
			}
		}
	}
}

// A transaction that began before a version was read changes it when it commits.
func TestALateCommitChangesTheDataVersion(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s := openFor(t, Options{URL: url})
	s.touchOrg(t, "acme")
	conn := connect(t, url)
	mustExec(t, conn, `BEGIN`)
	mustExec(t, conn, `UPDATE data_versions SET version = version + 1`)
	for range 3 {
		if got := s.versionOf(t, "acme"); got != 1 {
			t.Errorf("version %d before the commit, want 1", got)
		}
	}
	if got := s.versionOf(t, "unknown"); got != 0 {
		t.Errorf("version %d of an org without writes, want 0", got)
	}
	mustExec(t, conn, `COMMIT`)
	if got := s.versionOf(t, "acme"); got != 2 {
		t.Errorf("version %d after the commit, want 2", got)
	}
}

// A lost connection fails the reads that used it; the next ones take another.
func TestDataVersionsAfterALostConnection(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	proxy := pgtest.NewProxy(t, url)
	s := openFor(t, Options{URL: proxy.URL(t, url)})
	s.touchOrg(t, "acme")
	if got := s.versionOf(t, "acme"); got != 1 {
		t.Fatalf("version %d, want 1", got)
	}
	proxy.Cut()
	var got uint64
	until(t, "a version is read on a new connection", func() (ok bool) {
		v, err := s.eng.dataVersion(t.Context(), "acme")
		got = v
		return err == nil
	})
	if got -= s.started(t); got != 1 {
		t.Errorf("version %d, want 1", got)
	}
}
