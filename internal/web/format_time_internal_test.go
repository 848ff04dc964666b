package web

import (
	"testing"
	"time"
)

func TestElapsedHasTwoUnitsAtMost(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0:                                        "under 1 ms",
		999 * time.Microsecond:                   "under 1 ms",
		time.Millisecond:                         "1 ms",
		time.Second - 1:                          "999 ms",
		time.Second:                              "1.0 s",
		time.Minute - 1:                          "59.9 s",
		time.Minute:                              "1 min 0 s",
		time.Hour - 1:                            "59 min 59 s",
		26*time.Hour + 5*time.Minute:             "26 h 5 min",
		2*oneDay - 1:                             "47 h 59 min",
		2 * oneDay:                               "2 days 0 h",
		40*oneDay + 3*time.Hour + 59*time.Minute: "40 days 3 h",
	} {
		if got := elapsed(d); got != want {
			t.Errorf("%s is %q, want %q", d, got, want)
		}
	}
}
