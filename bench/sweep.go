package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-dev/parley/internal/app"
	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/store"
	"github.com/parley-dev/parley/internal/task"
)

const (
	sweepMost    = 20_000 // µs that a sweep may add to a write
	sweepWriters = 8
	sweepPause   = 20 * time.Millisecond // between two writes of a writer: 400 a second
	sweepKeep    = 24 * time.Hour        // retention of finished tasks
	// sweepTasks and quickSweep are the numbers of expired tasks.
	sweepTasks, quickSweep = 200_000, 20_000
)

// measureSweep measures how much longer writes take while expired tasks are deleted. It measures the
// store's time, in this process, with the sweep of a server.
func measureSweep(ctx context.Context, set settings, engine string) ([]cost, error) {
	s, cleanup, err := openStore(ctx, engine)
	if err != nil {
		return nil, err
	}
	defer cleanup()
	if err := s.fill(ctx, org, variety, listed); err != nil {
		return nil, err
	}
	if err := addFinished(ctx, s.Store); err != nil {
		return nil, err
	}
	n := sweepTasks
	if set.quick {
		n = quickSweep
	}
	w := &paced{
		openedStore: s, sweeper: dispatch.New(dispatch.Options{Stores: s.DispatchStores(), Now: app.Now, Node: "bench"}),
	}
	w.next.Store(variety)
	var p99, most, each []float64
	for range min(set.rounds, 3) {
		if err := addOldTasks(ctx, engine, s.data, n, sweepKeep+7*24*time.Hour); err != nil {
			return nil, err
		}
		during, length, err := w.sweep(ctx, n)
		if err != nil {
			return nil, err
		}
		without, err := w.during(ctx, func() error { return sleep(ctx, length) })
		if err != nil {
			return nil, err
		}
		progress("%s: a sweep of %d tasks took %s: writes p99 %.0f µs, max %.0f µs; without p99 %.0f µs, max %.0f µs",
			engine, n, length.Round(time.Millisecond), percentile(during, 0.99), percentile(during, 1),
			percentile(without, 0.99), percentile(without, 1))
		p99 = append(p99, percentile(during, 0.99)-percentile(without, 0.99))
		most = append(most, percentile(during, 1)-percentile(without, 1))
		each = append(each, float64(length.Microseconds())/float64(n))
	}
	out := []cost{{Engine: engine, Name: "delete one expired task", Micros: median(each)}}
	for _, c := range []cost{
		{Name: "a sweep, added to 99 of 100 writes", Micros: median(p99)},
		{Name: "a sweep, added to the slowest write", Micros: median(most)},
	} {
		c.Engine, c.Target, c.Verdict = engine, fmt.Sprintf("≤ %d ms", sweepMost/1000), verdict(c.Micros <= sweepMost)
		out = append(out, c)
	}
	return out, nil
}

// sweep deletes n expired tasks as a server does, and returns how long that and each write beside it
// took.
func (p *paced) sweep(ctx context.Context, n int) (took []time.Duration, length time.Duration, err error) {
	begun, swept := time.Now(), 0
	took, err = p.during(ctx, func() error {
		for {
			deleted, err := p.sweeper.Sweep(ctx, sweepKeep)
			if swept += deleted; err != nil || deleted == 0 {
				return err
			}
		}
	})
	if err == nil && swept < n {
		err = fmt.Errorf("the sweep deleted %d of %d expired tasks", swept, n)
	}
	return took, time.Since(begun), err
}

// addFinished adds a finished task, with a log in two rows as that of the echo.
func addFinished(ctx context.Context, s *store.Store) error {
	now := app.Now()
	text := []task.Part{{Kind: task.TextPart, Text: "the upload retry fails when a token expires during handoff"}}
	sent := task.Task{
		Org: org, UID: "00000000000000000000000000", Agent: bot, Sender: submitter(org), ID: "first", State: task.Submitted,
		Seq: 2, StatusSeq: 2, CreatedAt: now, UpdatedAt: now,
	}
	m := &task.Message{ID: "m", Role: task.RoleUser, Parts: text}
	if err := s.Tasks().Insert(ctx, task.Change{Task: sent, Events: []task.Event{
		{Seq: 1, At: now, Kind: task.TurnEvent, Message: m},
		{Seq: 2, At: now, Kind: task.StatusEvent, State: task.Submitted},
	}}, 0); err != nil {
		return err
	}
	_, err := s.Tasks().Update(ctx, org, sent.UID, 0, func(cur task.Current) (task.Change, error) {
		c := task.Change{Task: cur.Task, Events: []task.Event{
			{Seq: 3, At: now, Kind: task.ArtifactEvent, Artifact: &task.Artifact{ID: "echo", Parts: text}},
			{Seq: 4, At: now, Kind: task.StatusEvent, State: task.Completed},
		}}
		c.Task.State, c.Task.Seq, c.Task.StatusSeq = task.Completed, 4, 4
		return c, nil
	})
	return err
}

// paced submits proposals at a low rate, so that a write waits for nothing but what is measured.
type paced struct {
	*openedStore
	sweeper *dispatch.Service
	next    atomic.Int64 // number of the last proposal
}

// during submits while work runs, and returns how long each took, sorted.
func (p *paced) during(ctx context.Context, work func() error) ([]time.Duration, error) {
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		took []time.Duration
		errs = make([]error, sweepWriters)
		stop = make(chan struct{})
	)
	for i := range sweepWriters {
		wg.Go(func() {
			own, err := p.submit(ctx, sweepPause*time.Duration(i)/sweepWriters, stop)
			mu.Lock()
			defer mu.Unlock()
			took, errs[i] = append(took, own...), err
		})
	}
	err := work()
	close(stop)
	wg.Wait()
	if err = errors.Join(append(errs, err)...); err == nil && len(took) == 0 {
		err = errors.New("the sweep ended before the first write")
	}
	slices.Sort(took)
	return took, err
}

// submit is one writer, which begins after a delay.
func (p *paced) submit(ctx context.Context, delay time.Duration, stop <-chan struct{}) (took []time.Duration, err error) {
	due := time.Now().Add(delay)
	for {
		select {
		case <-stop:
			return took, nil
		case <-time.After(time.Until(due)):
		}
		due = due.Add(sweepPause)
		row := listed(org, p.next.Add(1))
		begun := time.Now()
		if _, err := p.Proposals().Insert(ctx, row, submitter(org), nil); err != nil {
			return took, err
		}
		took = append(took, time.Since(begun))
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
