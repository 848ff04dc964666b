package store

import (
	"strings"
	"testing"

	"github.com/parley-dev/parley/internal/delivery"
)

// Idle webhooks, possibly of thousands of orgs, cost a claim nothing.
func TestDueWebhooksAreFoundByTheirIndexes(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), Options{Dir: t.TempDir(), Node: "n1"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	a := &asked{engine: s.eng}
	s.eng = a
	lane := delivery.Lane{Free: 8, PerOrg: 8, PerReceiver: 4}
	room := &delivery.Room{Lanes: [2]delivery.Lane{lane, lane}}
	for name, c := range map[string]struct {
		run   func() error
		index []string // one for each query, in order
	}{
		"due orgs": {
			func() error { _, err := s.Webhooks().dueOrgs(t.Context(), nil); return err },
			[]string{"COVERING INDEX webhooks_due (org_id=? AND due_at>?)"},
		},
		"orgs with news": {
			func() error { _, err := s.Webhooks().dueOrgs(t.Context(), []string{"acme", "other"}); return err },
			[]string{"COVERING INDEX webhooks_due", "COVERING INDEX webhooks_idle (org_id=?)"},
		},
		"due webhooks": {
			func() error {
				_, _, err := s.Webhooks().dueIn(t.Context(), dueOrg{org: "acme", due: 1, news: true}, room, [2]int{8, 8})
				return err
			},
			[]string{"INDEX webhooks_idle (org_id=? AND cursor<?)", "INDEX webhooks_due (org_id=? AND due_at>? AND due_at<?)"},
		},
		"lost claims": {
			func() error { return s.Webhooks().Release(t.Context()) },
			[]string{"INDEX webhooks_claimed"},
		},
		"behind": {
			func() error { _, err := s.Webhooks().Behind(t.Context()); return err },
			[]string{"COVERING INDEX webhooks_due", "COVERING INDEX webhooks_failed", "COVERING INDEX webhooks_idle"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			a.queries = nil
			if err := c.run(); err != nil {
				t.Fatal(err)
			}
			if len(a.queries) != len(c.index) {
				t.Fatalf("%d queries, want %d: %q", len(a.queries), len(c.index), a.queries)
			}
			for i, sql := range a.queries {
				steps := strings.Join(plan(t, s, sql), "; ")
				if !strings.Contains(steps, c.index[i]) {
					t.Errorf("plan of %s = %q, want %s", sql, steps, c.index[i])
				}
			}
		})
	}
}
