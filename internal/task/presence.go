package task

import (
	"context"
	"sync"
	"time"
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

// due reports whether the worker must be written down again.
func (s *sightings) due(w Worker, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t, ok := s.last[w]; ok && now.Sub(t) < seeEvery {
		return false
	}
	if len(s.last) > 10_000 {
		clear(s.last)
	}
	s.last[w] = now
	return true
}

// see records that a worker is there, at most every few seconds.
func (s *Tasks) see(ctx context.Context, w Worker) error {
	now := s.Now()
	if !s.seen.due(w, now) {
		return nil
	}
	w.SeenAt = now
	return s.Store.SeeWorker(ctx, w)
}

// loads keeps the loads of all agents for a moment: a card lists many.
type loads struct {
	mu sync.Mutex
	at time.Time
	m  map[string]Load
}

// Presence tells whether an agent is there.
func (s *Tasks) Presence(ctx context.Context, agent string) (Presence, error) {
	s.loads.mu.Lock()
	defer s.loads.mu.Unlock()
	if now := s.Now(); s.loads.m == nil || now.Sub(s.loads.at) > loadsFor {
		m, err := s.Store.Loads(ctx, "", now.Add(-goneAfter))
		if err != nil {
			return Offline, err
		}
		s.loads.at, s.loads.m = now, m
	}
	return s.loads.m[agent].presence(), nil
}

// Expected reports whether a task that is sent now can be expected to be worked on
// soon. A caller that would wait for one that nobody works on is better told at
// once that it waits in the queue.
func (s *Tasks) Expected(ctx context.Context, c Call) bool {
	if s.runners.get(c.target.ID) != nil || s.desk.waits(c.target.ID) {
		return true
	}
	p, err := s.Presence(ctx, c.target.ID)
	return err != nil || p != Offline
}
