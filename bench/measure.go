package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/parley-dev/parley/internal/pgtest"
)

const (
	callers   = 4      // of reads
	readers   = 64     // connections of many readers
	deepRow   = 50_000 // where the deep page starts
	trickle   = 20     // votes per second that keep lists from being served from the cache
	warmup    = 200 * time.Millisecond
	listName  = "list 20, nothing written"
	freshName = "list 20, while written"
	manyName  = "list 20, while written, 64 connections"
	coldName  = "list 20, uncached"
	filtName  = "list 20, uncached, other filters and sorts"
	findName  = "search for a rare word, uncached"
	deepName  = "page at row 50,000 (limit: at row 1)"
	getName   = "get"
	subName   = "submit"
	voteName  = "vote"
	rawName   = "submit (limit: bare inserts)"
)

// scenario is one line of the table: two jobs that take turns.
type scenario struct {
	name       string
	parley     job
	limit      job
	background *job // runs during Parley's job
}

func measureEngine(ctx context.Context, set settings, engine, program string) ([]line, error) {
	data, cleanup, err := newData(ctx, engine)
	if err != nil {
		return nil, err
	}
	defer cleanup()
	w, err := newWorld(ctx, engine, program, data)
	if err != nil {
		return nil, err
	}
	defer w.Kill()
	var out []line
	for _, rows := range set.rows {
		if err := w.seed(ctx, rows); err != nil {
			return nil, err
		}
		lines, err := w.measure(ctx, set, rows)
		if err != nil {
			return nil, err
		}
		out = append(out, lines...)
	}
	raw, err := measureRaw(ctx, set, engine)
	if err != nil {
		return nil, fmt.Errorf("bare inserts: %w", err)
	}
	return append(out, raw), nil
}

// addLoops adds the lines whose limit is a bare loop on the same engine.
func (w *world) addLoops(ctx context.Context, set settings, rows int, ids []string, out []line) ([]line, error) {
	query, err := w.comparePages(ctx, set, rows, ids)
	if err != nil || w.engine != "postgres" {
		return append(out, query), err
	}
	insert, err := w.addRowsLoop(ctx, set, rows)
	return append(out, query, insert), err
}

// newData returns the flags for a new store. PostgreSQL has its default durability, as SQLite does.
func newData(ctx context.Context, engine string) ([]string, func(), error) {
	if engine == "sqlite" {
		dir, err := os.MkdirTemp("", "parley-bench")
		return []string{"--data", dir}, func() { _ = os.RemoveAll(dir) }, err
	}
	s, err := pgtest.Start(ctx, pgtest.Durable())
	if err != nil {
		return nil, nil, err
	}
	name, err := s.CreateDatabase(ctx)
	if err != nil {
		s.Close()
		return nil, nil, err
	}
	return []string{"--database", s.URL(name)}, s.Close, nil
}

// measure runs every scenario at the present size, reads before writes.
func (w *world) measure(ctx context.Context, set settings, rows int) ([]line, error) {
	ids, err := w.ids()
	if err != nil {
		return nil, err
	}
	var a answers
	if a.List, err = w.get(path); err != nil {
		return nil, err
	}
	if a.Record, err = w.get(path + "/" + ids[0]); err != nil {
		return nil, err
	}
	bare, err := startBare(ctx, a)
	if err != nil {
		return nil, err
	}
	defer bare.Kill()
	scenarios, err := w.scenarios(ctx, set, rows, bare.addr, ids)
	if err != nil {
		return nil, err
	}
	var out []line
	for _, sc := range scenarios {
		l, err := sc.run(ctx, set)
		if err != nil {
			return nil, fmt.Errorf("%s at %d rows: %w", sc.name, rows, err)
		}
		l.Engine, l.Rows = w.engine, rows
		progress("%s, %d rows, %s: %.0f/s, limit %.0f/s, ratio %.2f",
			w.engine, rows, l.Name, l.Rate, l.LimitRate, l.Ratio)
		out = append(out, l)
	}
	return w.addLoops(ctx, set, rows, ids, out)
}

func (w *world) scenarios(
	ctx context.Context, set settings, rows int, bare string, ids []string,
) ([]scenario, error) {
	read := func(addr string, requests ...[]byte) job {
		return job{Addr: addr, Callers: callers, Requests: requests}
	}
	write := func(addr string, requests ...[]byte) job {
		return job{Addr: addr, Callers: writers, Requests: requests}
	}
	list := request("GET", w.addr, path, w.keys[0], "")
	searches := w.searches() // before further bodies are made
	bareList := read(bare, request("GET", bare, "/list", w.keys[0], ""))
	submits, votes := w.submits(), w.votes(ids)
	var mixed [][]byte
	for i := range submits {
		mixed = append(mixed, submits[i], votes[i%len(votes)])
	}
	votesNow := &job{Addr: w.addr, Callers: 1, Requests: votes, Rate: trickle}
	writes := &job{Addr: w.addr, Callers: callers, Requests: mixed, Rate: set.writeRate}
	many, bareMany := read(w.addr, list), bareList
	many.Callers, bareMany.Callers = readers, readers
	out := []scenario{
		{name: listName, parley: read(w.addr, list), limit: bareList},
		{name: freshName, parley: read(w.addr, list), limit: bareList, background: writes},
		{name: manyName, parley: many, limit: bareMany, background: writes},
	}
	first, err := w.cursors(0)
	if err != nil {
		return nil, err
	}
	out = append(
		out,
		scenario{name: coldName, parley: read(w.addr, first...), limit: bareList, background: votesNow},
		scenario{name: filtName, parley: read(w.addr, w.filters()...), limit: bareList, background: votesNow},
		scenario{name: findName, parley: read(w.addr, searches...), limit: bareList, background: votesNow},
	)
	pages, err := w.pages(ctx, first)
	if err != nil {
		return nil, err
	}
	out = append(out, scenario{
		name: pageName, parley: read(w.addr, pages...), limit: read(w.addr, first...), background: votesNow,
	})
	if rows > deepRow+variety {
		deep, err := w.cursors(deepRow)
		if err != nil {
			return nil, err
		}
		out = append(out, scenario{
			name: deepName, parley: read(w.addr, deep...), limit: read(w.addr, first...), background: votesNow,
		})
	}
	gets := make([][]byte, len(ids))
	for i, id := range ids {
		gets[i] = request("GET", w.addr, path+"/"+id, w.keys[0], "")
	}
	body, err := json.Marshal(w.submission())
	if err != nil {
		return nil, err
	}
	vote, err := json.Marshal(ballot{Vote: "for", Comment: w.words(40)})
	if err != nil {
		return nil, err
	}
	bareGet := request("GET", bare, "/record", w.keys[0], "")
	bareVote := request("POST", bare, "/vote", w.keys[0], string(vote))
	bareSubmit := request("POST", bare, "/submit", w.keys[0], string(body))
	return append(
		out,
		scenario{name: getName, parley: read(w.addr, gets...), limit: read(bare, bareGet)},
		scenario{name: voteName, parley: write(w.addr, votes...), limit: write(bare, bareVote)},
		scenario{name: subName, parley: write(w.addr, submits...), limit: write(bare, bareSubmit)},
	), nil
}

// run measures both sides in turn and returns the medians.
func (sc scenario) run(ctx context.Context, set settings) (line, error) {
	var behind *job
	if sc.name == deepName || sc.name == pageName || sc.name == feedName || sc.name == feed20Name {
		behind = sc.background // here the limit is Parley too
	}
	l, err := alternate(set, func() (result, error) {
		saved := profiles.start(ctx, sc.parley.Addr, sc.name, set.duration)
		r, err := beside(ctx, set, sc.background, sc.parley)
		return r, errors.Join(err, saved())
	}, func() (result, error) {
		return beside(ctx, set, behind, sc.limit)
	})
	l.Name, l.Callers = sc.name, sc.parley.Callers
	return l, err
}

// alternate measures Parley and its limit in turn and returns the medians of the rounds.
func alternate(set settings, parley, limit func() (result, error)) (line, error) {
	var rates, limits, ratios, p50, p99, behinds []float64
	for range set.rounds {
		r, err := parley()
		if err != nil {
			return line{}, err
		}
		most, err := limit()
		if err != nil {
			return line{}, fmt.Errorf("limit: %w", err)
		}
		rates, limits = append(rates, r.rate()), append(limits, most.rate())
		ratios = append(ratios, r.rate()/most.rate())
		p50, p99, behinds = append(p50, r.P50), append(p99, r.P99), append(behinds, r.Behind)
	}
	return line{
		Rate: median(rates), LimitRate: median(limits), Ratio: median(ratios), P50: median(p50), P99: median(p99),
		Behind: median(behinds),
	}, nil
}

// beside runs a job while another one runs in the background.
func beside(ctx context.Context, set settings, background *job, j job) (result, error) {
	j.Warmup, j.Duration = warmup, set.duration
	if background == nil {
		return load(ctx, j)
	}
	b := *background
	b.Duration = set.duration + warmup
	var behind result
	failed := make(chan error, 1)
	go func() {
		var err error
		behind, err = load(ctx, b)
		failed <- err
	}()
	r, err := load(ctx, j)
	if bErr := <-failed; err == nil {
		err = bErr
	}
	if b.Rate > 0 {
		r.Behind = behind.rate() / float64(b.Rate)
	}
	return r, err
}

func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	if n := len(s); n%2 == 0 {
		return (s[n/2-1] + s[n/2]) / 2
	}
	return s[len(s)/2]
}
