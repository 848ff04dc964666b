package store

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/delivery"
	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/pgtest"
	"github.com/parley-dev/parley/internal/task"
)

// Counts for quotas and the search for due pushes must read only the rows in question, by the
// index that was made for each. A count that reads the rows of others, or many rows, must be a
// slow read.
func TestQuotasAndPushesAreFoundByTheirIndexes(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	a := &asked{engine: s.eng}
	s.eng = a
	who := identity.Principal{Org: "acme", Kind: identity.User, ID: "ann"}
	key := identity.Key{Principal: who, CreatedAt: s.now()}
	lane := delivery.Lane{
		Free: 8, PerOrg: 8, PerReceiver: 1, Receivers: map[delivery.Target]int{{Owner: "acme", Receiver: "r"}: 1},
	}
	slow := lane
	slow.Receivers = nil // with some, the rows of the window are sorted
	room := &delivery.Room{Lanes: [2]delivery.Lane{lane, slow}}
	for name, c := range map[string]struct {
		run   func() error
		index []string // one for each query, in order
		slow  bool
	}{
		"live tasks": {
			func() error { _, err := s.Tasks().CountLive(t.Context(), who, 10); return err },
			[]string{"SCAN tasks USING INDEX tasks_queue", "tasks_leases", "tasks_wake", "tasks_asking (sender_org=? AND sender=?)"},
			true,
		},
		"stored tasks": {
			func() error { _, err := s.Tasks().Count(t.Context(), "acme", 10); return err },
			[]string{"(org_id=?)"},
			true,
		},
		"sender's pushes": {
			func() error { _, err := s.Pushes().CountActive(t.Context(), who, 10); return err },
			[]string{"push_active (sender_org=? AND sender=?)"},
			false,
		},
		"all pushes": {
			func() error { _, _, err := s.Deliveries().Count(t.Context()); return err },
			[]string{"COVERING INDEX push_due (sender_org=? AND due_at>? AND due_at<?)", "push_dead"},
			true,
		},
		"org's pushes": {
			func() error {
				_, err := s.Pushes().CountActive(t.Context(), identity.Principal{Org: "acme"}, 10)
				return err
			},
			[]string{"push_active (sender_org=?)"},
			false,
		},
		"due orgs": {
			func() error { _, err := s.Deliveries().dueOrgs(t.Context(), &delivery.Room{}); return err },
			[]string{"COVERING INDEX push_due"},
			false,
		},
		"due pushes": {
			func() error { _, err := s.Deliveries().duePushes(t.Context(), "acme", room, [2]int{8, 8}); return err },
			[]string{"COVERING INDEX push_due (sender_org=? AND due_at>? AND due_at<?)"},
			false,
		},
		"public agents": {
			func() error { _, err := s.Agents().Page(t.Context(), agent.Page{Others: true, Limit: 10}); return err },
			[]string{"agents_public (id>?)"},
			false,
		},
		"agents of an org": {
			func() error { _, err := s.Agents().Page(t.Context(), agent.Page{Org: "acme", Limit: 10}); return err },
			[]string{"sqlite_autoindex_agents_1 (org_id=? AND id>?)"},
			false,
		},
		"own tasks": {
			func() error {
				_, err := s.Tasks().Own(t.Context(), dispatch.OwnFilter{
					Key: task.Key{Org: "acme", Agent: "bob", Sender: who}, HiddenOrg: "other", Limit: 10,
				})
				return err
			},
			[]string{
				"tasks_own (sender_org=? AND sender=? AND agent_id=?",
				"tasks_key (org_id=? AND agent_id=? AND sender_org=? AND sender=?)",
				"tasks_own (sender_org=? AND sender=? AND agent_id=?",
			},
			false,
		},
		"agents by id": {
			func() error { _, err := s.Agents().Reached(t.Context(), "acme", "bob"); return err },
			[]string{"agents_public (id=?)"},
			false,
		},
		"keys": {
			func() error {
				return newTx(a, s.d, s.hooks).keysWithinQuota(t.Context(), key, []identity.Quota{{Most: 5}, {Most: 5, PerPrincipal: true}})
			},
			[]string{
				"keys_live (org_id=? AND expires_at=?)", "keys_live (org_id=? AND expires_at>?)",
				"keys_live_principal (org_id=? AND kind=? AND principal_id=? AND expires_at=?)",
				"keys_live_principal (org_id=? AND kind=? AND principal_id=? AND expires_at>?)",
			},
			false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			a.queries, a.slowly = nil, false
			if err := c.run(); err != nil {
				t.Fatal(err)
			}
			if a.slowly != c.slow {
				t.Errorf("a slow read: %v, want %v", a.slowly, c.slow)
			}
			if len(a.queries) != len(c.index) {
				t.Fatalf("%d queries, want %d: %q", len(a.queries), len(c.index), a.queries)
			}
			for i, sql := range a.queries {
				used := false
				for _, step := range plan(t, s, sql) {
					used = used || strings.Contains(step, c.index[i])
					for _, table := range []string{"tasks", "push_configs", "agents", "keys", "p", "t"} {
						if step == "SCAN "+table || !c.slow && strings.HasPrefix(step, "SCAN "+table+" ") {
							t.Errorf("%s scans %s, want a search by an index", sql, table)
						}
					}
					if strings.Contains(step, "TEMP B-TREE") && !strings.Contains(sql, "RECURSIVE") {
						t.Errorf("%s sorts: %s, want the order of an index", sql, step)
					}
				}
				if !used {
					t.Errorf("plan of %s = %q, want %s", sql, plan(t, s, sql), c.index[i])
				}
			}
		})
	}
}

// plan returns the plan of a query; the values of its parameters do not matter.
func plan(t *testing.T, s *Store, sql string) []string {
	t.Helper()
	n := 0
	for strings.Contains(sql, fmt.Sprintf("$%d", n+1)) {
		n++
	}
	args := make([]any, n)
	for i := range args {
		args[i] = int64(1)
	}
	return explain(t, s, func(r rows) (detail string, err error) {
		var id, parent, unused int64
		err = r.Scan(&id, &parent, &unused, &detail)
		return detail, err
	}, `EXPLAIN QUERY PLAN `+sql, args...)
}

// On PostgreSQL, too, the due rows are a range of the index.
func TestPostgresFindsDuePushesByARangeOfTheIndex(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), Options{URL: pgtest.URL(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	now := s.d.clockNow(s.now).sql
	for name, sql := range map[string]string{
		"count": fmt.Sprintf(countDue, now),
		"search": strings.ReplaceAll(
			fmt.Sprintf(duePushes, 1, now, 10, "d.attempts = 0", "d.due_at", 10), "$1", "'acme'"),
	} {
		plan := strings.Join(explain(t, s, func(r rows) (step string, err error) {
			err = r.Scan(&step)
			return step, err
		}, `EXPLAIN (COSTS off) `+sql), "\n")
		if !regexp.MustCompile(`Index Cond: \(\(sender_org = [^\n]* AND \(due_at <= `).MatchString(plan) {
			t.Errorf("%s: plan =\n%s\nwant an index condition on sender_org and due_at", name, plan)
		}
	}
}
