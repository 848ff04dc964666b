package store

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// Callers share reads, and get no version that was read before they asked.
func TestVersionReadsAreShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var reads atomic.Uint64
		answer := map[string]chan error{"acme": make(chan error), "other": make(chan error)}
		v := newVersionReads(func(_ context.Context, org string) (uint64, error) {
			n := reads.Add(1)
			return n, <-answer[org]
		})
		var wg sync.WaitGroup
		get := func(ctx context.Context, org string, want uint64, failure error) {
			wg.Go(func() {
				n, err := v.get(ctx, org)
				if !errors.Is(err, failure) || err == nil && n != want {
					t.Errorf("%s: %d, %v, want %d, %v", org, n, err, want, failure)
				}
			})
		}
		step := func(failure error) {
			answer["acme"] <- failure
			synctest.Wait()
		}
		get(t.Context(), "acme", 1, nil)
		synctest.Wait()
		get(t.Context(), "other", 2, nil) // does not wait for acme
		synctest.Wait()
		gone, leave := context.WithCancel(t.Context())
		get(gone, "acme", 0, context.Canceled)
		for range 100 {
			get(t.Context(), "acme", 3, nil) // too late for the first read
		}
		synctest.Wait()
		leave()
		step(nil)
		broken := errors.New("broken")
		for range 100 {
			get(t.Context(), "acme", 4, broken)
		}
		synctest.Wait()
		step(nil)
		step(broken)
		answer["other"] <- nil
		wg.Wait()
		if n := reads.Load(); n != 4 {
			t.Errorf("%d reads, want 4", n)
		}
		synctest.Wait()
		get(t.Context(), "acme", 5, nil)
		synctest.Wait()
		step(nil)
		wg.Wait()
		synctest.Wait()
		if len(v.running) != 0 {
			t.Errorf("orgs kept = %d, want 0", len(v.running))
		}
	})
}
