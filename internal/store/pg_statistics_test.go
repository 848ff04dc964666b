package store

import (
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/pgtest"
)

// A table that grows is analyzed long before PostgreSQL would do it.
func TestYoungTablesAreAnalyzed(t *testing.T) {
	t.Parallel()
	s := openFor(t, Options{URL: pgtest.URL(t)})
	analyzed := func() (n int) {
		t.Helper()
		if _, err := one(t.Context(), s.eng, []any{&n},
			`SELECT analyze_count FROM pg_stat_user_tables WHERE relname = 'event_subjects'`); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for round := 1; round <= 2; round++ {
		if err := s.eng.write(t.Context(), func(x *tx) error {
			x.exec(`INSERT INTO event_subjects (org_id, subject, last_seq)
				SELECT 'acme', 'agent:' || n, $1 FROM generate_series(1, 600) n`, round)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(time.Minute); analyzed() < round; {
			if time.Now().After(deadline) {
				t.Fatalf("round %d: the table was not analyzed", round)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
}
