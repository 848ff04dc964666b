package stream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/parley-dev/parley/internal/task"
)

func artifactEvent(seq int64, n int) task.Event {
	text := string(make([]byte, n/6)) // a control character takes six bytes
	artifact := &task.Artifact{ID: "a", Parts: []task.Part{{Kind: task.TextPart, Text: text}}}
	return task.Event{Seq: seq, Kind: task.ArtifactEvent, Artifact: artifact}
}

func TestTopicKeepsAsMuchAsItMayAndNoMore(t *testing.T) {
	t.Parallel()
	h := NewHub(nil, nil)
	top := h.Follow(task.Ref{Org: "acme", UID: "1"}, "acme", 0)
	for seq := int64(1); seq <= 100; seq++ {
		top.append([]task.Event{artifactEvent(seq, 6<<10)})
	}
	if n := len(top.recent); n < 10 || top.size > maxRecentSize || top.size != h.kept.Load() {
		t.Errorf("%d events of 6 KiB are kept, %d bytes, %d by the hub", n, top.size, h.kept.Load())
	}
	if _, _, ok := top.after(1); ok {
		t.Error("a reader far behind was not sent to the log")
	}
	if got, _, ok := top.after(99); !ok || len(got) != 1 || got[0].Seq != 100 {
		t.Errorf("the newest event is not at hand: %v, %v", got, ok)
	}
	top.append([]task.Event{artifactEvent(101, 64<<10)})
	if len(top.recent) != 0 || top.last != 101 || h.kept.Load() != 0 {
		t.Errorf("%d events up to %d are kept after one that is too large", len(top.recent), top.last)
	}
	for seq := int64(102); seq <= 1000; seq++ {
		top.append([]task.Event{{Seq: seq, Kind: task.StatusEvent, State: task.Working}})
	}
	if n := len(top.recent); n < maxRecent || n > 2*maxRecent {
		t.Errorf("%d small events are kept", n)
	}
	if joined := top.append([]task.Event{{Seq: 1002}}); joined || top.last != 1000 {
		t.Error("an event that does not join on was taken")
	}
}

func TestHubKeepsABoundedAmountForAllTopics(t *testing.T) {
	t.Parallel()
	h := NewHub(nil, nil)
	var tops []*Topic
	for i := range 1000 {
		top := h.Follow(task.Ref{Org: "acme", UID: string(rune('a' + i))}, "acme", 0)
		tops = append(tops, top)
		for seq := int64(1); seq <= 30; seq++ {
			top.append([]task.Event{artifactEvent(seq, 6<<10)})
		}
		if top.last != 30 {
			t.Fatalf("a topic without room knows of %d events; want 30", top.last)
		}
	}
	if n := h.kept.Load(); n > maxKept || n < maxKept/2 {
		t.Errorf("%d bytes are kept; want at most %d", n, maxKept)
	}
	for _, top := range tops {
		top.Leave()
	}
	if n := h.kept.Load(); n != 0 || len(h.owners) != 0 {
		t.Errorf("%d bytes are kept without a reader, for %d orgs", n, len(h.owners))
	}
}

// TestAFloodOfOneOrgLeavesTheEventsOfOthers floods the hub before and after other orgs publish a
// few events, in tasks of the same agent.
func TestAFloodOfOneOrgLeavesTheEventsOfOthers(t *testing.T) {
	t.Parallel()
	h := NewHub(nil, nil)
	flood := func(name string) {
		for i := range 500 {
			top := h.Follow(task.Ref{Org: "prey", UID: fmt.Sprint(name, i)}, "mallory", 0)
			for seq := int64(1); seq <= 20; seq++ {
				top.append([]task.Event{artifactEvent(seq, 6<<10)})
			}
		}
	}
	flood("before")
	var others []*Topic
	for i := range 20 {
		top := h.Follow(task.Ref{Org: "prey", UID: fmt.Sprint("other", i)}, fmt.Sprint("org", i%4), 0)
		for seq := int64(1); seq <= 10; seq++ {
			top.append([]task.Event{artifactEvent(seq, 6<<10)})
		}
		others = append(others, top)
	}
	flood("after")
	for i, top := range others {
		if events, _, ok := top.after(0); !ok || len(events) != 10 {
			t.Fatalf("%d of 10 events of another org's task %d are kept", len(events), i)
		}
	}
	if n := h.kept.Load(); n > maxKept || n < maxKept/2 {
		t.Errorf("%d bytes are kept; want at most %d", n, maxKept)
	}
}

// TestRoomIsMadeWhileTopicsAreUsed lets orgs publish, and readers leave, at the same time.
func TestRoomIsMadeWhileTopicsAreUsed(t *testing.T) {
	t.Parallel()
	h := NewHub(nil, nil)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 200 {
				top := h.Follow(task.Ref{Org: "prey", UID: fmt.Sprint(i, n)}, fmt.Sprint("org", i), 0)
				for seq := int64(1); seq <= 20; seq++ {
					top.append([]task.Event{artifactEvent(seq, 6<<10)})
				}
				if n >= 150 {
					top.Leave()
				} else {
					defer top.Leave()
				}
			}
		})
	}
	wg.Wait()
	if n := h.kept.Load(); n != 0 || len(h.owners) != 0 {
		t.Errorf("%d bytes are kept without a reader, for %d orgs", n, len(h.owners))
	}
}

func TestSharedValueIsMadeOnceAndDroppedWithItsLastUser(t *testing.T) {
	t.Parallel()
	var s shared[string, int]
	var made, dropped atomic.Int64
	fresh := func(context.Context) (int, func(), error) {
		made.Add(1)
		return 7, func() { dropped.Add(1) }, nil
	}
	var mu sync.Mutex
	var dones []func()
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			v, done, err := s.use(t.Context(), "k", fresh)
			if err != nil || v != 7 {
				t.Errorf("use: %d, %v", v, err)
			}
			mu.Lock()
			defer mu.Unlock()
			dones = append(dones, done)
		})
	}
	wg.Wait()
	for i, done := range dones {
		if made.Load() != 1 || dropped.Load() != 0 {
			t.Fatalf("made %d times and dropped %d times while %d users are left", made.Load(), dropped.Load(), len(dones)-i)
		}
		done()
	}
	if dropped.Load() != 1 || len(s.m) != 0 {
		t.Errorf("dropped %d times, %d entries left", dropped.Load(), len(s.m))
	}
}

func TestSharedValueSurvivesTheOneThatMadeIt(t *testing.T) {
	t.Parallel()
	var s shared[string, int]
	gone, cancel := context.WithCancel(t.Context())
	making, joined := make(chan struct{}), make(chan struct{})
	go func() {
		_, _, _ = s.use(gone, "k", func(ctx context.Context) (int, func(), error) {
			close(making)
			<-joined
			cancel()
			return 0, nil, ctx.Err()
		})
	}()
	<-making
	v, first := s.join("k") // a second reader waits for the first
	if first {
		t.Fatal("the value is not being made")
	}
	s.leave("k", v)
	got := make(chan error)
	go func() {
		_, done, err := s.use(t.Context(), "k", func(context.Context) (int, func(), error) { return 1, nil, nil })
		if err == nil {
			done()
		}
		got <- err
	}()
	close(joined)
	if err := <-got; err != nil {
		t.Errorf("the second reader failed with %v", err)
	}
}

func TestSharedValueIsTriedAgainAfterAnError(t *testing.T) {
	t.Parallel()
	var s shared[string, int]
	fail := func(context.Context) (int, func(), error) { return 0, nil, errors.New("no") }
	if _, _, err := s.use(t.Context(), "k", fail); err == nil {
		t.Error("an error was lost")
	}
	v, done, err := s.use(t.Context(), "k", func(context.Context) (int, func(), error) { return 1, nil, nil })
	if err != nil || v != 1 {
		t.Errorf("second try: %d, %v", v, err)
	}
	done()
}
