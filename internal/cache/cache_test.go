package cache

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestTheLeastRecentlyUsedIsForgottenFirst(t *testing.T) {
	t.Parallel()
	c := New(Options[string, int]{Max: 3, Shards: 1})
	for i, k := range []string{"a", "b", "c"} {
		c.Set(k, i)
	}
	c.Get("a")
	c.Set("d", 3)
	for k, want := range map[string]bool{"a": true, "b": false, "c": true, "d": true} {
		if _, ok := c.Get(k); ok != want {
			t.Errorf("%s is kept: got %v, want %v", k, ok, want)
		}
	}
	c.Set("a", 9)
	if v, _ := c.Get("a"); v != 9 || c.Len() != 3 {
		t.Errorf("got %d of %d values, want 9 of 3", v, c.Len())
	}
}

// A second look changes neither the counts nor the order, and finds no old values.
func TestPeekLeavesNoTrace(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	c := New(Options[string, int]{Max: 2, Shards: 1, For: time.Minute, Now: func() time.Time { return now }})
	c.Set("a", 1)
	c.Set("b", 2)
	if v, ok := c.Peek("a"); v != 1 || !ok {
		t.Errorf("a = %d, %t", v, ok)
	}
	c.Set("c", 3)
	if v, ok := c.Peek("a"); ok {
		t.Errorf("a = %d is still kept, want it to be the oldest", v)
	}
	if got := c.Stats(); got != (Stats{}) {
		t.Errorf("%+v are counted, want none", got)
	}
	now = now.Add(time.Minute)
	if v, ok := c.Peek("b"); ok {
		t.Errorf("b = %d after a minute, want none", v)
	}
}

func TestSizesAreBounded(t *testing.T) {
	t.Parallel()
	c := New(Options[int, string]{Max: 16 * 100, Size: func(_ int, v string) int64 { return int64(len(v)) }})
	held := func() (n int64) {
		for i := range c.shards {
			n += c.shards[i].size
		}
		return n
	}
	for i := range 10_000 {
		c.Set(i, strings.Repeat("x", i%60))
	}
	if n := held(); n > c.o.Max || n < c.o.Max/2 {
		t.Errorf("%d bytes are kept of at most %d", n, c.o.Max)
	}
	c.Set(-1, strings.Repeat("x", 100))
	if _, ok := c.Get(-1); !ok {
		t.Error("a value that fills its part is not kept")
	}
	c.Set(-1, strings.Repeat("x", 101))
	if _, ok := c.Get(-1); ok {
		t.Error("a value that is larger than its part, or the one before it, is kept")
	}
	c.Clear()
	if c.Len() != 0 || held() != 0 {
		t.Errorf("%d values of %d bytes after Clear", c.Len(), held())
	}
	c.Set(1, "x")
	if _, ok := c.Get(1); !ok {
		t.Error("nothing is kept after Clear")
	}
}

func TestValuesAge(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := New(Options[string, int]{Max: 10, For: time.Second, Shards: 1})
		m := c.Mark("read")
		time.Sleep(600 * time.Millisecond)
		c.Set("set", 1)
		c.Put("read", 1, m)
		time.Sleep(399 * time.Millisecond)
		for _, k := range []string{"set", "read"} {
			if _, ok := c.Get(k); !ok {
				t.Errorf("%s was forgotten too early", k)
			}
		}
		time.Sleep(time.Millisecond)
		if _, ok := c.Get("read"); ok {
			t.Error("a value is older than its mark allows")
		}
		if _, ok := c.Get("set"); !ok {
			t.Error("set was forgotten too early")
		}
		time.Sleep(600 * time.Millisecond)
		if _, ok := c.Get("set"); ok || c.Len() != 0 {
			t.Errorf("an old value is kept, among %d", c.Len())
		}
	})
}

func TestWhatWasReadBeforeADropIsNotKept(t *testing.T) {
	t.Parallel()
	for name, drop := range map[string]func(*Cache[string, int]){
		"Drop":     func(c *Cache[string, int]) { c.Drop("a") },
		"DropFunc": func(c *Cache[string, int]) { c.DropFunc(func(k string) bool { return k == "a" }) },
		"Clear":    func(c *Cache[string, int]) { c.Clear() },
	} {
		c := New(Options[string, int]{Max: 160})
		c.Put("a", 1, c.Mark("a"))
		if v, ok := c.Get("a"); !ok || v != 1 {
			t.Fatalf("%s: got %d, %v", name, v, ok)
		}
		m := c.Mark("a")
		drop(c)
		if _, ok := c.Get("a"); ok {
			t.Errorf("%s did not forget", name)
		}
		c.Put("a", 1, m)
		if _, ok := c.Get("a"); ok {
			t.Errorf("%s: what was read before it is kept", name)
		}
		c.Put("a", 2, c.Mark("a"))
		if v, _ := c.Get("a"); v != 2 {
			t.Errorf("%s: what was read after it is not kept", name)
		}
	}
}

func TestOneMakesAndTheOthersWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var f Flights[string, int]
		first, ok := f.Join("a")
		if !ok {
			t.Fatal("the first has nothing to make")
		}
		if _, ok := f.Join("b"); !ok {
			t.Error("another key waits")
		}
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				other, ok := f.Join("a")
				if v, err := other.Wait(t.Context()); ok || v != 7 || err != nil {
					t.Errorf("got %d, %v; makes it: %v", v, err, ok)
				}
			})
		}
		gone, cancel := context.WithCancel(t.Context())
		wg.Go(func() {
			other, _ := f.Join("a")
			if _, err := other.Wait(gone); !errors.Is(err, context.Canceled) {
				t.Errorf("who has gone away waited: %v", err)
			}
		})
		synctest.Wait()
		cancel()
		synctest.Wait()
		first.Land(7, nil)
		first.Land(8, nil)
		first.Abandon()
		wg.Wait()
		if _, ok := f.Join("a"); !ok {
			t.Error("the next does not make a new one")
		}
	})
}

func TestAbandonedFlightsSaySo(t *testing.T) {
	t.Parallel()
	var f Flights[string, int]
	flight, _ := f.Join("a")
	func() {
		defer func() { _ = recover() }()
		defer flight.Abandon()
		panic("boom")
	}()
	if _, err := flight.Wait(t.Context()); !errors.Is(err, ErrAbandoned) {
		t.Errorf("got %v, want %v", err, ErrAbandoned)
	}
}

func BenchmarkGet(b *testing.B) {
	c := New(Options[string, int]{Max: 10_000})
	keys := make([]string, 1000)
	for i := range keys {
		keys[i] = fmt.Sprint("key-", i)
		c.Set(keys[i], i)
	}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			c.Get(keys[i%len(keys)])
		}
	})
}

func TestStatsCountLookUps(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	c := New(Options[int, int]{Max: 160, For: time.Minute, Now: func() time.Time { return now }})
	for i := range 10 {
		c.Set(i, i)
	}
	for i := range 12 {
		c.Get(i)
	}
	now = now.Add(time.Minute)
	c.Get(0) // too old
	if got, want := c.Stats(), (Stats{Hits: 10, Misses: 3}); got != want {
		t.Errorf("Stats = %+v, want %+v", got, want)
	}
}
