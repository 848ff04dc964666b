package store

import (
	"testing"
	"testing/synctest"
	"time"
)

// beginning starts to wait for a batch, and returns a function that reports whether it has begun.
func beginning(p *pace) (begun func() bool, end func()) {
	started := make(chan func(int, time.Duration), 1)
	go func() { started <- p.begin() }()
	var ends func(int, time.Duration)
	begun = func() bool {
		synctest.Wait()
		select {
		case ends = <-started:
		default:
		}
		return ends != nil
	}
	return begun, func() { ends(1, time.Second) }
}

// A batch waits for the one that runs, unless many writes wait or the other is slow.
func TestABatchWaitsForTheRunningOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		want := func(what string, begun func() bool, want bool) {
			t.Helper()
			if got := begun(); got != want {
				t.Errorf("%s: begun = %t, want %t", what, got, want)
			}
		}
		p := newPace()
		first, endFirst := beginning(p)
		want("the first batch", first, true)
		second, endSecond := beginning(p)
		want("the second one", second, false)
		p.arrived(manyWaiting - 1)
		want("the second one with few writes", second, false)
		endFirst()
		want("the second one after the first", second, true)

		third, endThird := beginning(p)
		want("the third one", third, false)
		p.arrived(manyWaiting)
		want("the third one with many writes", third, true)
		fourth, endFourth := beginning(p)
		want("the fourth one, after the crowd", fourth, false)
		time.Sleep(slowBatch)
		want("the fourth one beside a slow one", fourth, true)
		endThird()
		endFourth()
		endSecond()
		last, endLast := beginning(p)
		want("one with nothing running", last, true)
		endLast()
	})
}

// After a large batch the next one waits for more writes, for a limited time.
func TestABatchGathersUnderLoad(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			writes     int
			took, want time.Duration
		}{
			{busyBatch - 1, time.Second, 0},
			{busyBatch, 2 * time.Millisecond, time.Millisecond},
			{busyBatch, time.Second, maxGathering},
		} {
			p := newPace()
			p.begin()(c.writes, c.took)
			start := time.Now()
			p.begin()(1, 0)
			if got := time.Since(start); got != c.want {
				t.Errorf("after %d writes in %v: waited for %v, want %v", c.writes, c.took, got, c.want)
			}
		}
		p := newPace()
		p.begin()(busyBatch, time.Second)
		begun, end := beginning(p)
		if begun() {
			t.Error("the batch did not wait for more writes")
		}
		p.arrived(manyWaiting)
		if !begun() {
			t.Error("the batch waits although many writes wait")
		}
		end()
		var none *pace
		none.arrived(manyWaiting)
		none.begin()(busyBatch, time.Second)
		none.lead()()
	})
}

// One worker at a time waits for writes.
func TestOneWorkerLeads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPace()
		followed := p.lead()
		second := make(chan func(), 1)
		go func() { second <- p.lead() }()
		synctest.Wait()
		select {
		case <-second:
			t.Error("two workers lead")
		default:
		}
		followed()
		(<-second)()
	})
}
