package main

import (
	"context"
	"encoding/json"
	"errors"
	"time"
)

const (
	floodName = "submit, sustained flood (limit: bare POST echo)"
	// floodRounds are enough: a flood is long, so its rates differ little.
	floodRounds = 3
)

// measureFlood measures submits for so long that the text index has to keep up with them. A burst of
// a few seconds can leave that work for later.
func measureFlood(ctx context.Context, set settings, engine, program string) ([]line, error) {
	rows := set.rows[0]
	w, cleanup, err := seeded(ctx, engine, program, rows)
	if err != nil {
		return nil, err
	}
	defer cleanup()
	bare, err := startBare(ctx, answers{})
	if err != nil {
		return nil, err
	}
	defer bare.Kill()
	body, err := json.Marshal(w.submission())
	if err != nil {
		return nil, err
	}
	echo := job{
		Addr: bare.addr, Callers: writers, Warmup: warmup, Duration: set.duration,
		Requests: [][]byte{request("POST", bare.addr, "/submit", w.keys[0], string(body))},
	}
	flood := job{Addr: w.addr, Callers: writers, Requests: w.submits(), Warmup: warmup, Duration: set.flood}
	rounds := set
	rounds.rounds = min(set.rounds, floodRounds)
	l, err := alternate(rounds, func() (result, error) {
		if err := w.settle(ctx); err != nil {
			return result{}, err
		}
		saved := profiles.start(ctx, w.addr, floodName, min(set.flood, 10*time.Second))
		r, err := load(ctx, flood)
		return r, errors.Join(err, saved())
	}, func() (result, error) {
		// What the flood has left for later must not take time from the echo.
		if err := w.settle(ctx); err != nil {
			return result{}, err
		}
		return load(ctx, echo)
	})
	l.Engine, l.Rows, l.Name, l.Callers = engine, rows, floodName, writers
	progress("%s, %s of %s: %.0f/s, limit %.0f/s, ratio %.2f", engine, l.Name, set.flood, l.Rate, l.LimitRate, l.Ratio)
	return []line{l}, err
}
