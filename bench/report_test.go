package main

import (
	"strings"
	"testing"
)

// TestPromisedTargets has the numbers of issue 19: a line below one is a miss, a line at it is not.
func TestPromisedTargets(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		engine, name string
		least        float64
	}{
		{"postgres", listName, 0.6},
		{"postgres", freshName, 0.35},
		{"postgres", getName, 0.35},
		{"postgres", rowsName, 0.5},
		{"postgres", voteName, 0.12},
		{"postgres", taskSends, 1.5},
		{"postgres", lifeName, 0.5},
		{"sqlite", pageQueryName, 0.5},
		{"sqlite", getName, 0.55},
		{"sqlite", voteName, 0.25},
		{"sqlite", floodName, 0.4},
		{"sqlite", manyName, 0.5},
		{"sqlite", lifeName, 0.7},
		{"sqlite", taskFew, 3},
		{"sqlite", taskSends, 4},
	} {
		for ratio, want := range map[float64]string{c.least: "ok", c.least - 0.01: "MISS"} {
			r := report{Lines: []line{{Engine: c.engine, Name: c.name, Ratio: ratio}}}
			r.judge()
			if got := r.Lines[0]; got.Verdict != want || got.Target == "" {
				t.Errorf("%s, %s with ratio %.2f: %q, target %q, want %s", c.engine, c.name, ratio, got.Verdict, got.Target, want)
			}
		}
	}
}

func TestPromisedRate(t *testing.T) {
	t.Parallel()
	for rate, want := range map[float64]string{6000: "ok", 5999: "MISS"} {
		r := report{Lines: []line{{Engine: "sqlite", Name: taskWork, Rate: rate}}}
		r.judge()
		if got := r.Lines[0].Verdict; got != want {
			t.Errorf("%.0f tasks per second: %q, want %s", rate, got, want)
		}
	}
}

func TestAMissIsPrinted(t *testing.T) {
	t.Parallel()
	r := report{
		Costs: []cost{{Engine: "sqlite", Name: "slow", Target: "< 1 ms", Verdict: verdict(false)}},
		Lines: []line{{Engine: "sqlite", Name: getName, Ratio: 0.1}, {Engine: "sqlite", Name: listName, Ratio: 0.9}},
	}
	r.judge()
	var out strings.Builder
	if err := r.print(&out); err != nil {
		t.Fatal(err)
	}
	for what, want := range map[string]string{"slow": "MISS", getName: "MISS", listName: "ok"} {
		if !lineWith(out.String(), "  "+what, " "+want+" ") {
			t.Errorf("no line with %s and %q:\n%s", want, what, &out)
		}
	}
}

func lineWith(text, end, part string) bool {
	for l := range strings.Lines(text) {
		if l = strings.TrimSpace(l); strings.HasSuffix(l, end) && strings.Contains(l, part) {
			return true
		}
	}
	return false
}

// TestTooFewWritesAreAMiss has a line whose reads look fast because fewer writes ran beside them.
func TestTooFewWritesAreAMiss(t *testing.T) {
	t.Parallel()
	for behind, want := range map[float64]string{0: "ok", 1: "ok", 0.5: "MISS"} {
		r := report{Lines: []line{{Engine: "sqlite", Name: freshName, Ratio: 0.9, Behind: behind}}}
		r.judge()
		if got := r.Lines[0]; got.Verdict != want {
			t.Errorf("with %.0f %% of the writes: %q, want %s", 100*behind, got.Verdict, want)
		}
	}
}

func TestTargetsThatWereNotMeasuredAreMissed(t *testing.T) {
	t.Parallel()
	var r report
	for name := range targets["sqlite"] {
		if name != floodName {
			r.Lines = append(r.Lines, line{Engine: "sqlite", Name: name, Ratio: 9})
		}
	}
	// The other engine's lines do not count.
	r.Lines = append(r.Lines, line{Engine: "postgres", Name: floodName, Ratio: 9})
	measured := len(r.Lines)
	r.addUnmeasured([]string{"sqlite"})
	var got []string
	for _, l := range r.Lines[measured:] {
		got = append(got, l.Verdict+" "+l.Engine+" "+l.Name)
	}
	want := "MISS sqlite " + floodName + " (not measured)\nMISS sqlite " + taskWork + " (not measured)"
	if strings.Join(got, "\n") != want {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
}
