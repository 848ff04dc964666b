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
	var steps []string
	err = each(t.Context(), s.eng, func(r rows) error {
		var id, parent, unused int64
		var detail string
		err := r.Scan(&id, &parent, &unused, &detail)
		steps = append(steps, detail)
		return err
	}, `EXPLAIN QUERY PLAN `+keyColumns+`k.hash = $1`, "x")
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range steps {
		if !strings.HasPrefix(step, "SEARCH ") {
			t.Errorf("the plan reads through a table: %q", steps)
		}
	}
	if len(steps) == 0 || !strings.Contains(steps[0], "hash=?") {
		t.Errorf("the plan does not begin with the hash: %q", steps)
	}
}
