package web

import (
	"testing"
	"time"
)

// A callback is valid for ten minutes, for the sign-in that started it.
func TestAnErrandWaitsForOneAnswer(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	e := errand{State: "mine", Until: now.Add(errandLifetime).Unix()}
	for _, c := range []struct {
		name  string
		e     errand
		state string
		after time.Duration
		want  bool
	}{
		{"at once", e, "mine", 0, true},
		{"in time", e, "mine", errandLifetime - time.Second, true},
		{"too late", e, "mine", errandLifetime, false},
		{"another state", e, "other", 0, false},
		{"the beginning of the state", e, "min", 0, false},
		{"no state", e, "", 0, false},
		{"nothing was asked", errand{Until: e.Until}, "", 0, false},
	} {
		if got := c.e.waitsFor(c.state, now.Add(c.after)); got != c.want {
			t.Errorf("%s: %t; want %t", c.name, got, c.want)
		}
	}
}
