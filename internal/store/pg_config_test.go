package store

import (
	"encoding/json"
	"testing"

	"github.com/parley-dev/parley/internal/pgtest"
)

// PostgreSQL compiles statements that it thinks are expensive, and a scan of a table with one row
// seems so to it, because scans are off. Every beat of a node cost a hundred milliseconds that way.
func TestPostgresCompilesNoStatement(t *testing.T) {
	t.Parallel()
	s := openAt(t, Options{URL: pgtest.URL(t), Node: "node-1"})
	if _, err := s.Beat(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]reader{"pool": s.eng, "slow pool": s.eng.slow()} {
		var text string
		found, err := one(t.Context(), r, []any{&text}, `EXPLAIN (ANALYZE, FORMAT JSON) SELECT seen_at FROM nodes`)
		if err != nil || !found {
			t.Fatalf("%s: explain = %v, %v", name, found, err)
		}
		var plans []struct {
			JIT *struct{ Functions int }
		}
		if err := json.Unmarshal([]byte(text), &plans); err != nil {
			t.Fatal(err)
		}
		if len(plans) != 1 || plans[0].JIT != nil {
			t.Errorf("%s: the plan of a scan is compiled:\n%s", name, text)
		}
	}
}
