package httpx

import (
	"testing"
	"time"
)

// Received waits for a client that still receives the response, however slow it is, but not for one
// that has stopped.
func TestASlowClientIsWaitedForWhileItTakes(t *testing.T) {
	t.Parallel()
	const most = 30 * time.Second
	for name, c := range map[string]struct {
		acked func(at time.Duration) uint64 // 10 is all
		want  bool
		until time.Duration // the latest time of the decision
	}{
		"at once":        {func(time.Duration) uint64 { return 10 }, true, 0},
		"slowly":         {func(at time.Duration) uint64 { return uint64(at / (2 * time.Second)) }, true, 21 * time.Second},
		"not at all":     {func(time.Duration) uint64 { return 0 }, false, 6 * time.Second},
		"half of it":     {func(at time.Duration) uint64 { return min(5, uint64(at/time.Second)) }, false, 11 * time.Second},
		"over the lease": {func(at time.Duration) uint64 { return uint64(at / (4 * time.Second)) }, false, most + time.Second},
	} {
		start := time.Unix(1_700_000_000, 0)
		clock := start
		got := awaitTaken(func() delivery {
			n := c.acked(clock.Sub(start))
			return delivery{acked: n, taken: n >= 10, over: n >= 10}
		}, most, func() time.Time { return clock }, func(d time.Duration) { clock = clock.Add(d) })
		if took := clock.Sub(start); got != c.want || took > c.until {
			t.Errorf("%s: got %v after %v, want %v within %v", name, got, took, c.want, c.until)
		}
	}
}
