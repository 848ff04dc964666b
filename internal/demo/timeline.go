package demo

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// timeline collects the steps of all stories, and writes them in the order of their times, so that
// ids and the event log are in that order, too.
type timeline struct {
	clock *Clock
	end   time.Time // now
	rand  *rand.Rand
	steps []step
}

func newTimeline(c *Clock, end time.Time) timeline {
	return timeline{clock: c, end: end, rand: newRand()}
}

// newRand returns the same numbers in each demo.
func newRand() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

// step is one change at one time.
type step struct {
	at   time.Time
	what string // for the error
	do   func(context.Context) error
}

// at adds a step.
func (t *timeline) at(at time.Time, what string, do func(context.Context) error) {
	t.steps = append(t.steps, step{at, what, do})
}

// ago returns a time before now.
func (t *timeline) ago(d time.Duration) time.Time { return t.end.Add(-d) }

// about returns a duration that is up to half longer: nothing in a company happens by the clock.
func (t *timeline) about(d time.Duration) time.Duration {
	return d + time.Duration(t.rand.Int64N(int64(d)/2+1))
}

// before returns a time up to half an hour earlier.
func (t *timeline) before(at time.Time) time.Time {
	return at.Add(-time.Duration(t.rand.Int64N(int64(30 * time.Minute))))
}

// play writes all steps. Those of the future are an error of the stories, because a page would show
// them as "in 3 hours".
func (t *timeline) play(ctx context.Context) error {
	slices.SortStableFunc(t.steps, func(a, b step) int { return a.at.Compare(b.at) })
	for _, s := range t.steps {
		if s.at.After(t.end) {
			return fmt.Errorf("%s: %s is after the start of the server", s.what, s.at)
		}
		t.clock.set(s.at)
		if err := s.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", s.what, err)
		}
	}
	t.clock.set(t.end)
	return nil
}
