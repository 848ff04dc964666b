package dispatch

import (
	"context"
	"sync"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/task"
)

// Presence says whether an agent has workers.
type Presence string

// The values of presence.
const (
	Available Presence = "available"
	Busy      Presence = "busy"
	Offline   Presence = "offline"
)

// Presences lists every value.
var Presences = []Presence{Available, Busy, Offline}

// GoneAfter is how long a worker may be silent before it is considered gone.
const GoneAfter = 30 * time.Second

const (
	// seeEvery limits how often the same worker is recorded in the store.
	seeEvery = 5 * time.Second
	// loadsFor is how long the loads of all agents are cached.
	loadsFor = 500 * time.Millisecond
	// seeWaiting is how often a worker is recorded that waits for work.
	seeWaiting = 20 * time.Second
	// presenceEvery is how often agents are sought that went offline.
	presenceEvery = 5 * time.Second
)

// Load is the capacity and the load of an agent's workers.
type Load struct {
	Capacity int // of the live workers
	Leased   int // tasks with a live lease
}

// Presence derives the presence from the load.
func (l Load) Presence() Presence {
	switch {
	case l.Capacity == 0:
		return Offline
	case l.Leased >= l.Capacity:
		return Busy
	}
	return Available
}

// sightings remembers which workers were recorded lately.
type sightings struct {
	mu   sync.Mutex
	last map[Worker]time.Time
}

func newSightings() *sightings { return &sightings{last: map[Worker]time.Time{}} }

// due reports whether the worker must be recorded again, and whether it is new here or comes back.
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
	return true, !ok || now.Sub(t) >= GoneAfter
}

func (s *sightings) forget(w Worker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.last, w)
}

// see records that a worker is alive, at most every few seconds.
func (s *Workers) see(ctx context.Context, w Worker) error {
	now := s.board.now()
	due, first := s.seen.due(w, now)
	if !due {
		return nil
	}
	seen := w
	seen.SeenAt = now
	var err error
	if first {
		err = s.store.See(ctx, seen, s.limit)
	} else {
		err = s.store.SeeAgain(ctx, seen)
	}
	if err != nil {
		s.seen.forget(w)
	}
	return err
}

// ForgetWorkers is how long a worker must be silent before a new one may replace it, if the
// agent has reached its limit.
const ForgetWorkers = 10 * time.Minute

// TooManyWorkers refuses a worker of an agent that has reached its limit.
func TooManyWorkers(limit int) error {
	e := errs.New(errs.RateLimited, task.CodeWorkers,
		"the agent has %d workers with different names, which is the limit (--max-workers); "+
			"a worker keeps its name from one claim to the next", limit)
	e.RetryAfter = time.Minute
	return e
}

// loads caches the loads of all agents for a moment, because a card lists many.
type loads struct {
	mu sync.Mutex
	at time.Time
	m  map[task.AgentKey]Load
}

// Presence returns the presence of an agent.
func (s *Workers) Presence(ctx context.Context, agent task.AgentKey) (Presence, error) {
	all, err := s.Presences(ctx)
	if err != nil {
		return Offline, err
	}
	return all(agent), nil
}

// Presences returns a function for the presence of any agent, as of one moment.
func (s *Workers) Presences(ctx context.Context) (func(agent task.AgentKey) Presence, error) {
	s.loads.mu.Lock()
	defer s.loads.mu.Unlock()
	if now := s.board.now(); s.loads.m == nil || now.Sub(s.loads.at) > loadsFor {
		m, err := s.store.Loads(ctx, now.Add(-GoneAfter))
		if err != nil {
			return nil, err
		}
		s.loads.at, s.loads.m = now, m
	}
	m := s.loads.m // replaced, never changed
	return func(agent task.AgentKey) Presence { return m[agent].Presence() }, nil
}
