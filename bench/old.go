package main

import (
	"context"
	"fmt"
	"time"
)

const (
	oldSends = "task send → completed among old tasks (limit: without them)"
	oldWork  = "task through HTTP workers among old tasks (limit: without them)"
	// oldAge is less than the time for which a server keeps finished tasks by default.
	oldAge = 20 * 24 * time.Hour

	// usualOld and quickOld are the numbers of old tasks unless one is given.
	usualOld, quickOld = 1_000_000, 50_000
)

// measureOld compares a server whose store has many old tasks with one that has none.
func measureOld(ctx context.Context, set settings, engine, program string) ([]line, error) {
	n := set.tasks
	switch {
	case n > 0:
	case set.quick:
		n = quickOld
	default:
		n = usualOld
	}
	var sides [2]*taskWorld // without and with old tasks
	for i, old := range []int{0, n} {
		data, cleanup, err := newData(ctx, engine)
		if err != nil {
			return nil, err
		}
		defer cleanup()
		w, err := newTaskWorld(ctx, engine, program, data)
		if err != nil {
			return nil, err
		}
		defer w.close()
		if err := w.addOld(ctx, old); err != nil {
			return nil, err
		}
		sides[i] = w
	}
	without, with := sides[0], sides[1]
	sends := func(w *taskWorld) func() (result, error) {
		j := taskJob(w.addr, done, w.taskCalls().sends)
		return func() (result, error) { return beside(ctx, set, nil, j) }
	}
	work := func(w *taskWorld) func() (result, error) {
		return func() (result, error) {
			r, _, err := w.workRound(ctx, set, 0)
			return r, err
		}
	}
	var out []line
	for _, c := range []struct {
		name string
		rate func(*taskWorld) func() (result, error)
	}{{oldSends, sends}, {oldWork, work}} {
		l, err := alternate(set, c.rate(with), c.rate(without))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		l.Engine, l.Rows, l.Name, l.Callers = engine, n, c.name, writers
		progress("%s, %d old tasks, %s: %.0f/s, limit %.0f/s, ratio %.2f", engine, n, l.Name, l.Rate, l.LimitRate, l.Ratio)
		out = append(out, l)
	}
	return out, nil
}

// addOld adds n old tasks of the echo and of the agent with workers, if n is not 0. Each agent gets a
// task first, of which they are copies.
func (w *taskWorld) addOld(ctx context.Context, n int) error {
	if n == 0 {
		return nil
	}
	first := taskJob(w.addr, done, w.taskCalls().sends)
	first.Callers, first.Count = 1, 1
	if _, err := load(ctx, first); err != nil {
		return err
	}
	if _, _, err := w.workRound(ctx, settings{duration: 100 * time.Millisecond}, 0); err != nil {
		return err
	}
	return addOldTasks(ctx, w.engine, w.data, n, oldAge)
}
