package store

import (
	"regexp"
	"strings"
	"testing"

	"github.com/parley-dev/parley/internal/identity"
)

// scansOrSorts matches plans of SQLite that read a whole table, or sort.
var scansOrSorts = regexp.MustCompile(`SCAN (tasks|h|p|t)\b|TEMP B-TREE`)

// What the overview of an org reads is found by indexes, whatever the size of the org.
func TestTheOverviewIsFoundByItsIndexes(t *testing.T) {
	t.Parallel()
	eachEngine(t, Options{}, func(t *testing.T, s *Store) {
		if s.d != &sqliteDialect {
			fillOverview(t, s)
		}
		for name, c := range map[string]struct {
			run   func() error
			args  []any
			index string
		}{
			"decisions": {
				func() error {
					_, _, err := s.Proposals().Decisions(t.Context(), "acme", s.now(), 100)
					return err
				},
				[]any{"acme", int64(19_900)},
				"history_decisions",
			},
			"own questions": {
				func() error { _, err := s.Tasks().Asking(t.Context(), annOf("acme"), 6); return err },
				[]any{"acme", "user:ann"},
				"tasks_asking",
			},
			"questions of an org": {
				func() error { _, err := s.Tasks().Asking(t.Context(), identity.Principal{Org: "acme"}, 6); return err },
				[]any{"acme"},
				"tasks_asking",
			},
			"queues": {
				func() error { _, err := s.Tasks().Queued(t.Context(), "acme", 10); return err },
				[]any{"acme"},
				"tasks_queue",
			},
		} {
			a := &asked{engine: s.eng}
			s.eng = a
			err := c.run()
			s.eng = a.engine
			if err != nil || len(a.queries) != 1 {
				t.Fatalf("%s: queries = %q, %v, want 1", name, a.queries, err)
			}
			if s.d == &sqliteDialect {
				steps := strings.Join(plan(t, s, a.queries[0]), "\n")
				if !strings.Contains(steps, c.index) || scansOrSorts.MatchString(steps) {
					t.Errorf("%s: plan =\n%s\nwant %s without a scan or a sort", name, steps, c.index)
				}
				continue
			}
			plan, pages := buffers(t, s, statement{sql: a.queries[0], args: c.args})
			if !strings.Contains(plan, c.index) || strings.Contains(plan, "Seq Scan") || pages > 600 {
				t.Errorf("%s reads %d pages, want few, by %s:\n%s", name, pages, c.index, plan)
			}
		}
	})
}

// fillOverview fills a PostgreSQL store with proposals, decisions and tasks of one large org.
func fillOverview(t *testing.T, s *Store) {
	t.Helper()
	if err := s.eng.write(t.Context(), func(x *tx) error {
		x.exec(`INSERT INTO proposals (org_id, id, status, category, priority, submitted_by, submitted_at, submitted_as,
				updated_at, votes_for, votes_against, score, version, followup_id, title, problem, suggested_fix,
				resolution_note)
			SELECT 'acme', 'prop-' || n, 'approved', 'process', 1, 'user:ann', n, 'open', n, 0, 0, 0, 2, '', 't', 'p', 'f', ''
			FROM generate_series(1, 20000) n`)
		x.exec(`INSERT INTO history (org_id, proposal_id, seq, at, actor, kind, data)
			SELECT 'acme', 'prop-' || n, 2, n, 'user:ann', 'status_changed', '{"From":"open","To":"approved"}'
			FROM generate_series(1, 20000) n`)
		x.exec(`INSERT INTO tasks (org_id, uid, agent_id, sender_org, sender, id, context_id, state, queued, seq, size,
				lease, lease_worker, lease_expires, delivered, last_turn, created_at, updated_at)
			SELECT 'acme', 'uid' || n, 'agent' || n % 7, 'acme', 'user:ann', 'id' || n, 'c',
				CASE WHEN n % 1000 = 0 THEN 'input-required' WHEN n % 10 = 0 THEN 'submitted' ELSE 'completed' END,
				CASE WHEN n % 10 = 0 AND n % 1000 > 0 THEN 1 ELSE 0 END, 1, 1, '', '', 0, 1, '', 1, 1
			FROM generate_series(1, 20000) n`)
		x.exec(`UPDATE tasks SET listed = state WHERE state = 'input-required'`)
		x.exec(`ANALYZE tasks, history, proposals`)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}
