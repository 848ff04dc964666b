package agent

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/errs"
)

// shelf is a store that knows what one org reaches under one id.
type shelf struct {
	DirectoryStore
	found Reached
}

func (s *shelf) Reached(context.Context, string, string) (Reached, error) { return s.found, nil }

// An own agent hides the public one, also while it is disabled.
func TestWhatCallersReach(t *testing.T) {
	t.Parallel()
	own, disabled, public := &Agent{ID: "a", Org: "acme"}, &Agent{ID: "a", Org: "acme", Disabled: true}, &Agent{
		ID:  "a",
		Org: "other", Public: true,
	}
	for name, c := range map[string]struct {
		found  Reached
		want   *Agent // nil: NotFound
		hidden *Agent
		own    *Agent // nil: NotFound
	}{
		"neither":                         {Reached{}, nil, nil, nil},
		"the own one":                     {Reached{Own: own}, own, nil, own},
		"the public one":                  {Reached{Public: public}, public, nil, nil},
		"both":                            {Reached{Own: own, Public: public}, own, public, own},
		"the own one, disabled":           {Reached{Own: disabled}, nil, nil, disabled},
		"the own one, disabled, and both": {Reached{Own: disabled, Public: public}, nil, nil, disabled},
	} {
		for _, id := range []string{"a", "A", "", "../a"} { // an id that cannot be one is not looked up
			d := NewDirectory(&shelf{found: c.found}, time.Now)
			want, hidden, ours, reachable := c.want, c.hidden, c.own, c.found != Reached{}
			if id != "a" {
				want, hidden, ours, reachable = nil, nil, nil, false
			}
			got, alsoHidden, err := d.Reach(t.Context(), "acme", id)
			check(t, name+", reached as "+id, got, err, want)
			if alsoHidden != hidden {
				t.Errorf("%s: hidden: got %+v, want %+v", name, alsoHidden, hidden)
			}
			got, err = d.Own(t.Context(), "acme", id)
			check(t, name+", as the own "+id, got, err, ours)
			if ok, err := d.Reachable(t.Context(), "acme", id); ok != reachable || err != nil {
				t.Errorf("%s, reachable as %q: got %v, %v; want %v", name, id, ok, err, reachable)
			}
		}
	}
}

func check(t *testing.T, name string, got Agent, err error, want *Agent) {
	t.Helper()
	if want == nil {
		if err == nil || errs.KindOf(err) != errs.NotFound {
			t.Errorf("%s: got %+v, %v; want not found", name, got, err)
		}
		return
	}
	if diff := cmp.Diff(*want, got); diff != "" || err != nil {
		t.Errorf("%s: %v (-want +got)\n%s", name, err, diff)
	}
}

// What was found is remembered for a second, on this node until it changes here, and a miss
// never.
func TestHowLongAnAgentIsRemembered(t *testing.T) {
	t.Parallel()
	now := madeAt
	s := &shelf{}
	d := NewDirectory(s, func() time.Time { return now })
	reaches := func(what string, want bool) {
		t.Helper()
		if got, err := d.Reachable(t.Context(), "acme", "a"); got != want || err != nil {
			t.Errorf("%s: got %v, %v; want %v", what, got, err, want)
		}
	}
	reaches("before it is made", false)
	s.found.Own = &Agent{ID: "a", Org: "acme"}
	reaches("as soon as it is made", true)
	s.found.Own = nil
	now = now.Add(rememberFor - 1)
	reaches("within a second of its end on another node", true)
	now = now.Add(1)
	reaches("after that second", false)
	for what, drop := range map[string]func(){
		"its change here":     func() { d.forget("a") },
		"a change of members": d.Forget,
	} {
		s.found.Own = &Agent{ID: "a", Org: "acme"}
		reaches("made again", true)
		s.found.Own = nil
		drop()
		reaches("at once after "+what, false)
	}
}
