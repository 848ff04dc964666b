package limit

import (
	"testing"
	"testing/synctest"
	"time"
)

func (l *Keyed[K]) size() (n int) {
	for i := range l.shards {
		n += len(l.shards[i].buckets)
	}
	return n
}

func TestAKeyHasABurstAndThenItsRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := New[string](10, 3, 100)
		for i := range 3 {
			if wait := l.Take("a", 1, time.Now()); wait != 0 {
				t.Fatalf("turn %d of the burst: wait = %s, want 0", i+1, wait)
			}
		}
		if got := l.Take("a", 1, time.Now()).Round(time.Microsecond); got != 100*time.Millisecond {
			t.Errorf("after the burst: wait = %s, want 100ms", got)
		}
		if got := l.Take("b", 1, time.Now()); got != 0 {
			t.Errorf("another key: wait = %s, want 0", got)
		}
		time.Sleep(40 * time.Millisecond)
		if got := l.Take("a", 2, time.Now()).Round(time.Microsecond); got != 160*time.Millisecond {
			t.Errorf("two turns after 40 ms: wait = %s, want 160ms", got)
		}
		time.Sleep(60 * time.Millisecond)
		if got := l.Take("a", 1, time.Now()); got != 0 {
			t.Errorf("after 100 ms: wait = %s, want 0", got)
		}
		time.Sleep(time.Hour)
		if a, b := l.Take("a", 3, time.Now()), l.Take("a", 1, time.Now()); a != 0 || b == 0 {
			t.Errorf("after an hour: waits = %s and %s, want a burst of 3", a, b)
		}
	})
}

func TestCheckUsesNothingAndGiveBackReturnsATurn(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	l := New[string](1, 2, 100)
	for range 5 {
		if got := l.Check("a", now); got != 0 {
			t.Fatalf("a check: wait = %s, want 0", got)
		}
	}
	l.GiveBack("a", 1, now) // no more than the burst
	if a, b, c := l.Take("a", 1, now), l.Take("a", 1, now), l.Take("a", 1, now); a != 0 || b != 0 || c == 0 {
		t.Errorf("waits = %s, %s, %s, want two turns", a, b, c)
	}
	if got := l.Check("a", now); got != time.Second {
		t.Errorf("a check without turns: wait = %s, want 1s", got)
	}
	l.GiveBack("a", 1, now)
	if a, b := l.Take("a", 1, now), l.Take("a", 1, now); a != 0 || b == 0 {
		t.Errorf("waits = %s, %s, want the turn that was given back", a, b)
	}
}

func TestOnlyFullBucketsAreForgotten(t *testing.T) {
	t.Parallel()
	const keys = 16_000
	start := time.Unix(1_700_000_000, 0)
	l := New[int](1, 5, keys)
	for i := range 60_000 {
		l.Take(i, 1, start.Add(time.Duration(i)*time.Microsecond)) // all within 0.06 s: none is full again
		if i%1000 == 0 && l.size() > keys {
			t.Fatalf("%d buckets after %d keys, want at most %d", l.size(), i+1, keys)
		}
	}
	l = New[int](1, 5, keys)
	for range 5 {
		l.Take(-1, 1, start)
	}
	for i := range 40_000 {
		l.Take(i, 1, start.Add(time.Duration(i)*time.Millisecond)) // far apart: most are full again
		if i == 2000 {
			for left := 2; left >= 0; left-- {
				if allowed := l.Take(-1, 1, start.Add(2*time.Second)) == 0; allowed != (left > 0) {
					t.Error("a bucket in use was dropped")
				}
			}
		}
	}
	if got := l.size(); got > 4*firstSweep*shards {
		t.Errorf("%d buckets after a sweep, want few", got)
	}
}

func TestARateOfZeroAllowsEverything(t *testing.T) {
	t.Parallel()
	l := New[int](0, 5, 100)
	now := time.Now()
	l.GiveBack(1, 1, now)
	if l != nil || l.Take(1, 1000, now) != 0 || l.Check(1, now) != 0 {
		t.Error("New with a rate of 0: got a limiter, want nil")
	}
}
