package store

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/parley-dev/parley/internal/pgtest"
)

func (s *Store) versionOf(t *testing.T, org string) uint64 {
	t.Helper()
	v, err := s.eng.dataVersion(t.Context(), org)
	if err != nil {
		t.Error(err)
	}
	return v
}

func (s *Store) touchOrg(t *testing.T, org string) {
	t.Helper()
	if err := s.eng.add(t.Context(), func(x *tx) error { x.touch(org); return nil }); err != nil {
		t.Error(err)
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
	if got != 1 {
		t.Errorf("version %d, want 1", got)
	}
}
