package store

import (
	"slices"
	"strings"
	"testing"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/event"
	"github.com/parley-dev/parley/internal/identity"
)

// manyAgents adds agents, of which every 1000th has a worker and is online.
func manyAgents(t *testing.T, s *Store) {
	t.Helper()
	const numbers = `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 20000) `
	if err := s.eng.write(t.Context(), func(x *tx) error {
		x.exec(`INSERT INTO orgs (id, name, created_at) VALUES ('a', 'A', 1)`)
		x.exec(numbers + `INSERT INTO agents (org_id, id, name, description, skills, public, created_at, online)
			SELECT 'a', 'agent-' || n, 'Agent', '', '[]', 0, 1, CASE WHEN n % 1000 = 0 THEN 1 ELSE 0 END FROM numbers`)
		x.exec(numbers+`INSERT INTO workers (org_id, agent_id, name, capacity, seen_at)
			SELECT 'a', 'agent-' || n, 'w', 1, $1 FROM numbers WHERE n % 1000 = 0`, micros(s.now()))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := s.eng.write(t.Context(), func(x *tx) error {
		x.exec(`ANALYZE agents`)
		x.exec(`ANALYZE workers`)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// The search for agents that went online or offline runs all the time. It does not read the agents
// that have no worker.
func TestPresenceChangesAreFoundByIndexes(t *testing.T) {
	t.Parallel()
	eachEngine(t, Options{}, func(t *testing.T, s *Store) {
		manyAgents(t, s)
		a := &asked{engine: s.eng}
		s.eng = a
		_, err := s.Workers().UpdatePresences(t.Context(), s.now())
		s.eng = a.engine
		if err != nil || len(a.queries) != 2 {
			t.Fatalf("queries = %q, %v, want 2", a.queries, err)
		}
		for _, sql := range a.queries {
			if s.d == &sqliteDialect {
				steps := plan(t, s, sql)
				for _, step := range steps {
					if strings.HasPrefix(step, "SCAN agents") && !strings.Contains(step, "agents_online") {
						t.Errorf("plan of %s = %q, want no scan of all agents", sql, steps)
					}
				}
				continue
			}
			plan, pages := buffers(t, s, statement{sql: sql, args: []any{int64(1)}})
			if strings.Contains(plan, "Seq Scan on agents") || pages > 100 {
				t.Errorf("%s reads %d pages, want few, by an index:\n%s", sql, pages, plan)
			}
		}
	})
}

// A change of an agent that was refused is in the audit log, but it is no event.
func TestARefusedChangeOfAnAgentIsNoEvent(t *testing.T) {
	t.Parallel()
	eachEngine(t, Options{}, func(t *testing.T, s *Store) {
		entry := func(o identity.AuditOutcome, action identity.AuditAction) identity.AuditEntry {
			e := identity.NewEntry(t.Context(), s.now(), "acme", action, "scout", "")
			e.Outcome = o
			return e
		}
		entries := []identity.AuditEntry{
			entry(identity.Refused, identity.AgentDisable), entry(identity.Done, identity.AgentUpdate),
		}
		if err := s.eng.write(t.Context(), func(x *tx) error {
			return x.emitAgentChanges(t.Context(), entries, &agent.Agent{Org: "acme", ID: "scout", UpdatedAt: s.now()})
		}); err != nil {
			t.Fatal(err)
		}
		page, err := s.Events().Page(t.Context(), "acme", event.Query{Filter: everything, Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		var got []event.Type
		for i := range page.Events {
			got = append(got, page.Events[i].Type)
		}
		if !slices.Equal(got, []event.Type{event.AgentChanged}) {
			t.Errorf("events = %v, want only that of the change that was made", got)
		}
	})
}
