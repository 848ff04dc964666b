package app

import "testing"

func TestTheCollectorsHeadroomIsBounded(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	for _, c := range []struct {
		live uint64
		want int
	}{
		{0, 300},
		{4 * mib, 300},
		{40 * mib, 300},
		{64 * mib, 200},
		{128 * mib, 100},
		{200 * mib, 64},
		{256 * mib, 50},
		{4096 * mib, 50},
	} {
		if got := gcPercent(c.live); got != c.want {
			t.Errorf("%d MiB live: GOGC %d; want %d", c.live/mib, got, c.want)
		}
	}
}
