package store

import (
	"strings"
	"testing"
)

// Whoever sends wrong keys must not make the store read more than one entry of an
// index.
func TestAKeyIsFoundByItsIndex(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	steps := plan(t, s, keyColumns+`k.hash = $1`, "x")
	if len(steps) == 0 || !strings.Contains(steps[0], "hash=?") {
		t.Errorf("the plan does not begin with the hash: %q", steps)
	}
}

// plan is how SQLite would find the rows; it fails if that reads through a table, or
// sorts what an index has in order.
func plan(t *testing.T, s *Store, query string, args ...any) (steps []string) {
	t.Helper()
	err := each(t.Context(), s.eng, func(r rows) error {
		var id, parent, unused int64
		var detail string
		err := r.Scan(&id, &parent, &unused, &detail)
		steps = append(steps, detail)
		return err
	}, `EXPLAIN QUERY PLAN `+query, args...)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range steps {
		if !strings.HasPrefix(step, "SEARCH ") {
			t.Errorf("the plan reads through a table: %q", steps)
		}
	}
	return steps
}

func TestClientsAndProgramsAreFoundByTheirIndexes(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	plan(t, s, clientsOf+`org_id = $1 AND org_id <> '' AND id < $2 ORDER BY id DESC`, "acme", "client-1")
	plan(t, s, programsOf, "acme", "user", "ann", 1)
	plan(t, s, `SELECT 1 FROM oauth_grants WHERE client_id = $1 AND org_id = $2 AND revoked_at = 0`, "client-1", "acme")
}
