package dispatch

import (
	"context"
	"sync"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/task"
)

// Presence is whether an agent can be expected to answer.
type Presence string

// The values of presence.
const (
	Available Presence = "available"
	Busy      Presence = "busy"
	Offline   Presence = "offline"
)

// Presences lists every value.
var Presences = []Presence{Available, Busy, Offline}

const (
	// goneAfter is how long a worker may be silent before it counts as gone.
	goneAfter = 30 * time.Second
	// seeEvery bounds how often the same worker is written down.
	seeEvery = 5 * time.Second
	// loadsFor is how long the loads of all agents are kept in memory.
	loadsFor = 500 * time.Millisecond
)

// Load is what an agent's workers have to do.
type Load struct {
	Capacity int // of the live workers
	Leased   int // tasks under a live lease
}

// presence follows from the load: nobody there, everybody busy, or neither.
func (l Load) presence() Presence {
	switch {
	case l.Capacity == 0:
		return Offline
	case l.Leased >= l.Capacity:
		return Busy
	}
	return Available
}

// sightings remembers which workers were written down lately.
type sightings struct {
	mu   sync.Mutex
	last map[Worker]time.Time
}

func newSightings() *sightings { return &sightings{last: map[Worker]time.Time{}} }

// due reports whether the worker must be written down again, and whether it never was.
func (s *sightings) due(w Worker, now time.Time) (due, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, ok := s.last[w]
	if ok && now.Sub(t) < seeEvery {
		return false, false
	}
	if len(s.last) > 10_000 {
		clear(s.last)
	}
	s.last[w] = now
	return true, !ok
}

func (s *sightings) forget(w Worker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.last, w)
}

// see records that a worker is there, at most every few seconds.
func (s *Workers) see(ctx context.Context, w Worker) error {
	now := s.board.now()
	due, first := s.seen.due(w, now)
	if !due {
		return nil
	}
	limit := 0
	if first {
		limit = s.limit
	}
	seen := w
	seen.SeenAt = now
	err := s.store.See(ctx, seen, limit)
	if err != nil {
		s.seen.forget(w)
	}
	return err
}

// ForgetWorkers is how long a worker must be silent to make room for another one, if its
// agent has as many as it may have.
const ForgetWorkers = 10 * time.Minute

// TooManyWorkers refuses a worker of an agent that has as many as it may have.
func TooManyWorkers(limit int) error {
	e := errs.New(errs.RateLimited, task.CodeWorkers,
		"the agent has %d workers with different names, which is the limit (--max-workers); a worker keeps its name from one claim to the next", limit)
	e.RetryAfter = time.Minute
	return e
}

// loads keeps the loads of all agents for a moment: a card lists many.
type loads struct {
	mu sync.Mutex
	at time.Time
	m  map[task.AgentKey]Load
}

// Presence tells whether an agent is there.
func (s *Workers) Presence(ctx context.Context, agent task.AgentKey) (Presence, error) {
	all, err := s.Presences(ctx)
	if err != nil {
		return Offline, err
	}
	return all(agent), nil
}

// Presences tells of every agent whether it is there, as of one moment.
func (s *Workers) Presences(ctx context.Context) (func(agent task.AgentKey) Presence, error) {
	s.loads.mu.Lock()
	defer s.loads.mu.Unlock()
	if now := s.board.now(); s.loads.m == nil || now.Sub(s.loads.at) > loadsFor {
		m, err := s.store.Loads(ctx, now.Add(-goneAfter))
		if err != nil {
			return nil, err
		}
		s.loads.at, s.loads.m = now, m
	}
	m := s.loads.m // replaced, never changed
	return func(agent task.AgentKey) Presence { return m[agent].presence() }, nil
}
