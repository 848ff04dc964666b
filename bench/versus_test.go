package main

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestVersus checks that both sides are measured in every round, that they alternate in going
// first with new servers, and how their rates are compared.
func TestVersus(t *testing.T) {
	t.Parallel()
	var order []string
	side := func(name string, rates ...float64) []hotPath {
		n := 0
		return []hotPath{{name: "path", rate: func(context.Context, settings) (float64, error) {
			order = append(order, name)
			n++
			return rates[n-1], nil
		}}}
	}
	renew := func() error {
		order = append(order, "renew")
		return nil
	}
	got, err := versus(t.Context(), settings{rounds: 4}, "sqlite",
		side("base", 100, 200, 100, 100), side("now", 90, 180, 200, 94), renew)
	if err != nil {
		t.Fatal(err)
	}
	if want := "base now renew now base renew base now renew now base"; strings.Join(order, " ") != want {
		t.Errorf("the order is %q; want %q", order, want)
	}
	want := []comparison{{
		Engine: "sqlite", Name: "path", Base: 100, Rate: 137, Ratio: 0.92, Q1: 0.9, Q3: 1.205, Rounds: 4, Verdict: "MISS?",
	}}
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Error(diff)
	}
}

// A round in which the base fails does not count. One in which this revision fails ends the comparison.
func TestVersusFailures(t *testing.T) {
	t.Parallel()
	side := func(rates ...float64) []hotPath {
		n := 0
		return []hotPath{{name: "path", rate: func(context.Context, settings) (float64, error) {
			n++
			return rates[n-1], nil // none: an error
		}}}
	}
	renew := func() error { return nil }
	got, err := versus(t.Context(), settings{rounds: 3}, "sqlite", side(100, 0, 100), side(110, 500, 110), renew)
	want := []comparison{{
		Engine: "sqlite", Name: "path", Base: 100, Rate: 110, Ratio: 1.1, Q1: 1.1, Q3: 1.1, Rounds: 2, Verdict: "ok",
	}}
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-9)); diff != "" || err != nil {
		t.Error(diff, err)
	}
	got, err = versus(t.Context(), settings{rounds: 2}, "sqlite", side(0, 0), side(110, 110), renew)
	want = []comparison{{Engine: "sqlite", Name: "path", Verdict: "base fails"}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if got, err = versus(t.Context(), settings{rounds: 2}, "sqlite", side(100, 100), side(110, 0), renew); err == nil {
		t.Error("this revision failed, and the result is", got)
	}
}

// The verdict is certain if a path is slower in nearly all rounds.
func TestVersusVerdict(t *testing.T) {
	t.Parallel()
	base := []float64{100, 100, 100, 100, 100}
	for want, now := range map[string][]float64{
		"ok":    {90, 95, 96, 97, 120},
		"MISS?": {80, 90, 94, 99, 120},
		"MISS":  {80, 90, 91, 92, 120},
	} {
		if got := compareRounds(base, now).Verdict; got != want {
			t.Errorf("%v: %s; want %s", now, got, want)
		}
	}
}

func TestParseBase(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"-base HEAD":                            "10 700ms [10000]",
		"-base HEAD -quick":                     "10 300ms [10000]",
		"-base HEAD -rounds 3 -duration 2s":     "3 2s [10000]",
		"-base HEAD -quick -rows 1000,2000":     "10 300ms [1000 2000]",
		"-quick":                                "3 1s [1000 60000]",
		"-only a2a -engine postgres -base HEAD": "10 700ms [10000]",
	} {
		set, err := parse(strings.Fields(args))
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(set.rounds, " ", set.duration, " ", set.rows); got != want {
			t.Errorf("%s: %s; want %s", args, got, want)
		}
	}
	if set, err := parse([]string{"-base", "v1", "-head", "v2"}); err != nil || set.base != "v1" || set.head != "v2" {
		t.Errorf("-base v1 -head v2 compares %q with %q, %v", set.head, set.base, err)
	}
	if _, err := parse([]string{"-head", "v2"}); err == nil || !strings.Contains(err.Error(), "-base") {
		t.Errorf("-head alone: %v, want an error that names -base", err)
	}
}
