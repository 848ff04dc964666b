package proposal

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPaceIsTheMedianTimeToADecision(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	after := func(hours int, approved bool) Decided {
		return Decided{SubmittedAt: start, At: start.Add(time.Duration(hours) * time.Hour), Approved: approved}
	}
	for name, c := range map[string]struct {
		list []Decided
		want Pace
	}{
		"none": {nil, Pace{}},
		"one":  {[]Decided{after(3, true)}, Pace{Decided: 1, Approved: 1, Median: 3 * time.Hour}},
		"two":  {[]Decided{after(4, false), after(2, true)}, Pace{Decided: 2, Approved: 1, Median: 3 * time.Hour}},
		"an outlier does not count": {
			[]Decided{after(1000, false), after(1, false), after(2, false)}, Pace{Decided: 3, Median: 2 * time.Hour},
		},
	} {
		if diff := cmp.Diff(c.want, paceOf(c.list, false)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
