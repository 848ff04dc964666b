package store

import (
	"fmt"
	"strings"
	"testing"

	"github.com/parley-dev/parley/internal/event"
)

// Pages that are read backwards find their packs by the keys of the log.
func TestEventsAreReadBackwardsByTheirIndexes(t *testing.T) {
	t.Parallel()
	eachEngine(t, Options{}, func(t *testing.T, s *Store) {
		for org := range 20 {
			var list []event.Event
			for i := range 2000 {
				list = append(list, noted(fmt.Sprint("org", org), fmt.Sprint("agent:", i)))
			}
			if err := s.Events().Append(t.Context(), list...); err != nil {
				t.Fatal(err)
			}
			logOf(t, s, fmt.Sprint("org", org))
		}
		for n := 1; n > 0; {
			var err error
			if n, err = s.Events().IndexSubjects(t.Context(), "org7"); err != nil {
				t.Fatal(err)
			}
		}
		window := []any{"org7", int64(1900), int64(2000), int64(0)}
		for name, c := range map[string]struct {
			query event.BackQuery
			index string
			args  []any // of the last query
		}{
			"all": {event.BackQuery{Filter: everything, Limit: 100}, "events_pkey", window},
			"types": {
				event.BackQuery{Filter: event.Filter{Types: event.AgentChanged.Bit()}, Limit: 100}, "events_pkey", window,
			},
			"subject": {
				event.BackQuery{Filter: event.Filter{Subject: "agent:500"}, Limit: 10},
				"event_subjects_pkey",
				[]any{"org7", "agent:500", int64(1), int64(2000)},
			},
		} {
			a := &asked{engine: s.eng}
			s.eng = a
			page, err := s.Events().PageBack(t.Context(), "org7", c.query)
			s.eng = a.engine
			if err != nil || len(a.queries) != 2 || len(page.Events) == 0 {
				t.Fatalf("%s: %d events, queries = %q, %v, want the head and one more", name, len(page.Events), a.queries, err)
			}
			if s.d == &sqliteDialect {
				searches(t, s, a.queries[1], c.args...)
				continue
			}
			plan, pages := buffers(t, s, statement{sql: a.queries[1], args: c.args})
			if !strings.Contains(plan, c.index) || pages > 150 || strings.Contains(plan, "Seq Scan on events ") {
				t.Errorf("%s reads %d pages, want few, by %s:\n%s", name, pages, c.index, plan)
			}
		}
	})
}

// A filter that selects nothing reads a bounded part of a long log, and says how far it came.
func TestPagesBackwardsAreBounded(t *testing.T) {
	t.Parallel()
	eachEngine(t, Options{}, func(t *testing.T, s *Store) {
		const total = scanWindow + 5000
		for range total / 5000 {
			var list []event.Event
			for range 5000 {
				list = append(list, noted("acme", "agent:a"))
			}
			if err := s.Events().Append(t.Context(), list...); err != nil {
				t.Fatal(err)
			}
		}
		q := event.BackQuery{Filter: event.Filter{Types: event.KeyCreated.Bit()}, Limit: 50}
		p, err := s.Events().PageBack(t.Context(), "acme", q)
		if err != nil || len(p.Events) > 0 || p.First != total+1-scanWindow || !p.More() {
			t.Fatalf("page = %+v, %v, want one that reaches %d numbers back", p, err, scanWindow)
		}
		q.Before = p.First
		if p, err = s.Events().PageBack(t.Context(), "acme", q); err != nil || p.More() {
			t.Errorf("page = %+v, %v, want the beginning of the log", p, err)
		}
	})
}
