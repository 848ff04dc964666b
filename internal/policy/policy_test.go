package policy

import (
	"testing"
	"time"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func TestWhatATaskGets(t *testing.T) {
	t.Parallel()
	retry := Retry{Attempts: 5, Backoff: time.Second, Failed: true}
	for name, c := range map[string]struct {
		given, agent, want Policy
	}{
		"nothing": {},
		"the agent's default": {
			agent: Policy{Timeout: time.Minute, Retry: retry},
			want:  Policy{Deadline: noon.Add(time.Minute), Timeout: time.Minute, Retry: retry},
		},
		"a deadline instead of the agent's timeout": {
			given: Policy{Deadline: noon.Add(time.Hour)}, agent: Policy{Timeout: time.Minute, Retry: retry},
			want: Policy{Deadline: noon.Add(time.Hour), Timeout: time.Hour, Retry: retry},
		},
		"a timeout instead of the agent's": {
			given: Policy{Timeout: time.Hour}, agent: Policy{Timeout: time.Minute},
			want: Policy{Deadline: noon.Add(time.Hour), Timeout: time.Hour},
		},
		"a retry instead of the agent's": {
			given: Policy{Retry: Retry{Attempts: 1, Lost: true}}, agent: Policy{Retry: retry},
			want: Policy{Retry: Retry{Attempts: 1, Lost: true}},
		},
		"in another time zone, with nanoseconds": {
			given: Policy{Deadline: noon.Add(time.Second + 1).In(time.FixedZone("x", 3600))},
			want:  Policy{Deadline: noon.Add(time.Second), Timeout: time.Second},
		},
	} {
		if got := c.given.Or(c.agent).From(noon); got != c.want {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
}

// Another task like it gets as much time from its own start.
func TestAgainHasTheSameTime(t *testing.T) {
	t.Parallel()
	first := Policy{Deadline: noon.Add(time.Hour)}.From(noon)
	again := first.Again().From(noon.Add(24 * time.Hour))
	if want := noon.Add(25 * time.Hour); again.Deadline != want || again.Timeout != time.Hour {
		t.Errorf("got %+v, want the deadline %s", again, want)
	}
}

func TestTheWaitDoublesUpToItsLimit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		backoff time.Duration
		after   int
		want    time.Duration
	}{
		{0, 1, 0},
		{0, 9, 0},
		{5 * time.Second, 1, 5 * time.Second},
		{5 * time.Second, 2, 10 * time.Second},
		{5 * time.Second, 4, 40 * time.Second},
		{10 * time.Minute, 4, MaxBackoff},
		{MaxBackoff, 9, MaxBackoff},
	} {
		if got := (Retry{Attempts: 10, Backoff: c.backoff}).Wait(c.after); got != c.want {
			t.Errorf("wait of %s after %d attempts = %s, want %s", c.backoff, c.after, got, c.want)
		}
	}
}

func TestCheckNamesEveryField(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		p    Policy
		want []string
	}{
		{Policy{}, nil},
		{Policy{Timeout: time.Second, Retry: Retry{Attempts: 1, Lost: true}}, nil},
		{Policy{Timeout: MaxTimeout, Retry: Retry{Attempts: MaxAttempts, Backoff: MaxBackoff, Failed: true}}, nil},
		{Policy{Timeout: time.Millisecond}, []string{"timeout_seconds"}},
		{Policy{Timeout: -time.Second}, []string{"timeout_seconds"}},
		{Policy{Timeout: MaxTimeout + 1}, []string{"timeout_seconds"}},
		{
			Policy{Retry: Retry{Attempts: 11, Backoff: -1}},
			[]string{"retry.max_attempts", "retry.backoff_seconds", "retry.on"},
		},
		{Policy{Retry: Retry{Lost: true}}, []string{"retry.max_attempts"}},
		{Policy{Deadline: noon}.From(noon), []string{"deadline"}},
		{Policy{Deadline: noon.Add(-time.Hour)}.From(noon), []string{"deadline"}},
		{Policy{Deadline: noon.Add(MaxTimeout + time.Second)}.From(noon), []string{"deadline"}},
		{Policy{Deadline: noon.Add(time.Second)}.From(noon), nil},
	} {
		var got []string
		fields := c.p.CheckDeadline()
		if len(fields) == 0 {
			fields = c.p.Check()
		}
		for _, f := range fields {
			got = append(got, f.Path.String())
		}
		if len(got) != len(c.want) {
			t.Errorf("%+v: got %v, want %v", c.p, got, c.want)
			continue
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("%+v: got %v, want %v", c.p, got, c.want)
			}
		}
	}
}
