package relay

import (
	"fmt"
	"sync/atomic"
	"testing"
)

// TestHangingCancelsDelayNoOtherRelay: one org has many links whose remotes hang.
func TestHangingCancelsDelayNoOtherRelay(t *testing.T) {
	t.Parallel()
	hang, canceled := make(chan struct{}), make(chan string, 2000)
	var hanging atomic.Int32
	q := newCancelQueue(func(l Link) {
		if l.Org == "slow" {
			hanging.Add(1)
			<-hang
		}
		canceled <- l.UID
	})
	for relay := range 10 {
		for i := range 2 * maxCancelQueue {
			q.add(Link{Org: "slow", Agent: fmt.Sprint("a", relay), UID: fmt.Sprint("slow-", relay, "-", i)})
		}
	}
	q.add(Link{Org: "quick", Agent: "a0", UID: "quick"})
	if got := <-canceled; got != "quick" {
		t.Errorf("%s was canceled first, want the link of the other org", got)
	}
	q.mu.Lock()
	if q.orgs["slow"] != maxOrgCancels || len(q.relays) > maxOrgCancels/maxRelayCancels+1 {
		t.Errorf("%d requests of the slow org at %d relays, want %d", q.orgs["slow"], len(q.relays), maxOrgCancels)
	}
	for k, r := range q.relays {
		if r.running > maxRelayCancels || len(r.waiting) > maxCancelQueue {
			t.Errorf("%s: %d requests and %d links, want at most %d and %d", k, r.running, len(r.waiting), maxRelayCancels, maxCancelQueue)
		}
	}
	q.mu.Unlock()
	go func() {
		for range canceled {
		}
	}()
	close(hang)
	q.wait()
	if len(q.known)+len(q.relays)+len(q.orgs)+q.sum != 0 {
		t.Errorf("left over: %d links, %d relays, %d orgs, %d goroutines", len(q.known), len(q.relays), len(q.orgs), q.sum)
	}
}

// TestCancelQueueTakesEachLinkOnce: a link that is due again while it waits or runs is not added.
func TestCancelQueueTakesEachLinkOnce(t *testing.T) {
	t.Parallel()
	started, release := make(chan string, 10), make(chan struct{})
	q := newCancelQueue(func(l Link) {
		started <- l.UID
		<-release
	})
	l := Link{Org: "o", Agent: "a", UID: "u"}
	q.add(l)
	<-started
	q.add(l)
	close(release)
	q.wait()
	if len(started) > 0 {
		t.Error("the link was canceled twice at once")
	}
	q.add(l)
	q.wait()
	if len(started) != 1 {
		t.Error("the link was not canceled again after it was due again")
	}
}
