package store

import "testing"

// Orgs from before 0021 have an empty log.
func TestOlderOrgsGetALog(t *testing.T) {
	t.Parallel()
	eachOlderStore(t, 20, []string{`INSERT INTO orgs (id, name, created_at) VALUES ('acme', 'Acme', 1)`},
		func(t *testing.T, s *Store) {
			if n := countRows(t, s, "event_heads", "acme"); n != 1 {
				t.Errorf("%d heads, want 1", n)
			}
			e := noted("acme", "agent:a")
			if err := s.Events().Append(t.Context(), e); err != nil {
				t.Fatal(err)
			}
			if ids := logOf(t, s, "acme"); len(ids) != 1 || ids[0] != e.ID {
				t.Errorf("events = %q, want %s", ids, e.ID)
			}
		})
}
