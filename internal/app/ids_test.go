package app

import (
	"regexp"
	"sync"
	"testing"
	"time"
)

func TestIDsSortEvenWhenTheClockIsSetBack(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	g := newIDs(func() time.Time { now = now.Add(-time.Millisecond); return now })
	shape := regexp.MustCompile(`^prop-[0-9a-z]{26}$`)
	last := ""
	for range 1000 {
		id := g.next("prop-")
		if !shape.MatchString(id) {
			t.Fatalf("id %q has not the shape %s", id, shape)
		}
		if id <= last {
			t.Fatalf("%s came after %s", id, last)
		}
		last = id
	}
}

func TestIDsAreDistinctAcrossGoroutines(t *testing.T) {
	g := newIDs(Now)
	var mu sync.Mutex
	seen := map[string]bool{}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 500 {
				id := g.next("")
				mu.Lock()
				if seen[id] {
					t.Errorf("%s came twice", id)
				}
				seen[id] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
}
