package store

import (
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/event"
)

// eventsAt adds one pack for each time.
func eventsAt(t *testing.T, s *Store, org string, times ...time.Time) {
	t.Helper()
	for _, at := range times {
		e := noted(org, "agent:a")
		e.At = at
		if err := s.Events().Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFirstSince(t *testing.T) {
	t.Parallel()
	eachEngine(t, Options{}, func(t *testing.T, s *Store) {
		at := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
		eventsAt(t, s, "acme", at, at.Add(time.Second), at.Add(time.Hour))
		for after, want := range map[time.Duration]int64{
			-time.Hour:                      1,
			0:                               1,
			500 * time.Nanosecond:           2, // more exact than the times of events
			time.Second:                     2,
			time.Second + time.Nanosecond:   3,
			time.Minute:                     3,
			time.Hour:                       3,
			time.Hour + time.Nanosecond:     0,
			time.Hour + 999*time.Nanosecond: 0,
		} {
			first, err := s.Events().FirstSince(t.Context(), "acme", at.Add(after))
			if err != nil || first != want {
				t.Errorf("since the first event plus %s: %d, %v, want %d", after, first, err, want)
			}
		}
	})
}

// If the first event is deleted during the search, the search goes on.
func TestFirstSinceBesideExpiry(t *testing.T) {
	t.Parallel()
	eachEngine(t, Options{}, func(t *testing.T, s *Store) {
		at := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
		eventsAt(t, s, "acme", at, at.Add(time.Second), at.Add(time.Hour))
		if _, err := s.Events().Head(t.Context(), "acme"); err != nil { // numbers them
			t.Fatal(err)
		}
		b := &between{engine: s.eng, text: "data FROM event"}
		b.run = func() {
			ev := Events{&db{eng: b.engine, d: s.d, now: s.now}}
			if n, err := ev.Expire(t.Context(), at.Add(time.Minute)); n != 2 || err != nil {
				t.Errorf("expired %d events, %v, want 2", n, err)
			}
		}
		s.eng = b
		first, err := s.Events().FirstSince(t.Context(), "acme", at)
		s.eng = b.engine
		if err != nil || b.run != nil || first != 3 {
			t.Errorf("first = %d, %v, want 3; deleted meanwhile: %t", first, err, b.run == nil)
		}
		p, err := s.Events().Page(t.Context(), "acme", event.Query{Filter: everything, Limit: 10})
		if err != nil || len(p.Events) != 1 {
			t.Errorf("page = %+v, %v, want the last event", p, err)
		}
	})
}
