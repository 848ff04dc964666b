package store

import (
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/pgtest"
)

// statisticsTest is a store on PostgreSQL, with tables that PostgreSQL does not analyze by itself.
type statisticsTest struct {
	*testing.T
	s   *Store
	url string
}

func newStatisticsTest(t *testing.T, tables ...string) *statisticsTest {
	t.Helper()
	url := pgtest.URL(t)
	st := &statisticsTest{t, openFor(t, Options{URL: url}), url}
	for _, table := range tables {
		st.exec(`ALTER TABLE ` + table + ` SET (autovacuum_enabled = false)`)
	}
	return st
}

func (st *statisticsTest) exec(sql string, args ...any) {
	st.Helper()
	if err := st.s.eng.write(st.Context(), func(x *tx) error {
		x.exec(sql, args...)
		return nil
	}); err != nil {
		st.Fatal(err)
	}
}

// count returns a column of the statistics of a table.
func (st *statisticsTest) count(column, table string) (n int) {
	st.Helper()
	if _, err := one(st.Context(), st.s.eng, []any{&n}, `SELECT `+column+` FROM pg_stat_user_tables
		WHERE schemaname = current_schema() AND relname = $1`, table); err != nil {
		st.Fatal(err)
	}
	return n
}

// until waits until a column of the statistics of a table has at least this value. Sessions report
// what they did with a delay.
func (st *statisticsTest) until(column, table string, value int) {
	st.Helper()
	for deadline := time.Now().Add(time.Minute); st.count(column, table) < value; {
		if time.Now().After(deadline) {
			st.Fatalf("%s of %s is %d after a minute, want %d", column, table, st.count(column, table), value)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// fill adds rows to event_subjects.
func (st *statisticsTest) fill(round, rows int) {
	st.Helper()
	st.exec(`INSERT INTO event_subjects (org_id, subject, last_seq)
		SELECT 'acme', 'agent:' || n, $1 FROM generate_series(1, $2::int) n`, round, rows)
}

// A table that grows is analyzed long before PostgreSQL would do it.
func TestYoungTablesAreAnalyzed(t *testing.T) {
	t.Parallel()
	st := newStatisticsTest(t, "event_subjects")
	for round := 1; round <= 2; round++ {
		st.fill(round, 600*round)
		st.until("analyze_count", "event_subjects", round)
	}
}

// A small table whose rows change often does not grow, and is not analyzed.
func TestASmallTableWithManyChangesIsNotAnalyzed(t *testing.T) {
	t.Parallel()
	st := newStatisticsTest(t, "data_versions", "event_subjects")
	stats := st.s.eng.(*pg).stats
	stats.close() // only the test runs it
	st.exec(`INSERT INTO data_versions (org_id, slot, version) SELECT 'acme', n, 0 FROM generate_series(0, 15) n`)
	const updates = 1000
	for range 10 {
		st.exec(`DO $$ BEGIN FOR i IN 1..100 LOOP
			UPDATE data_versions SET version = version + 1 WHERE org_id = 'acme' AND slot = i % 16;
		END LOOP; END $$`)
	}
	st.until("n_tup_upd", "data_versions", updates)
	st.fill(1, 600)
	st.until("n_live_tup", "event_subjects", 600)
	if err := stats.update(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := st.count("analyze_count", "data_versions"); n != 0 {
		t.Errorf("a table of 16 rows was analyzed %d times after %d updates, want never", n, updates)
	}
	if st.count("analyze_count", "event_subjects") == 0 {
		t.Error("the table that grew was not analyzed: this test shows nothing")
	}
}

// A table that another session has locked is skipped and analyzed later. No other table waits for it.
func TestALockedTableIsNotAnalyzed(t *testing.T) {
	t.Parallel()
	st := newStatisticsTest(t, "data_versions", "event_subjects")
	stats := st.s.eng.(*pg).stats
	stats.close() // only the test runs it
	st.exec(`INSERT INTO data_versions (org_id, slot, version) SELECT 'org' || n, 0, 1 FROM generate_series(1, 600) n`)
	st.fill(1, 600)
	st.until("n_live_tup", "data_versions", 600)
	st.until("n_live_tup", "event_subjects", 600)
	other := connectTo(t, st.url)
	// A vacuum takes the same lock.
	for _, sql := range []string{`BEGIN`, `LOCK TABLE data_versions IN SHARE UPDATE EXCLUSIVE MODE`} {
		if _, err := other.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	update := func(locked, free int) {
		t.Helper()
		if err := stats.update(t.Context()); err != nil {
			t.Fatalf("%v, want the locked table skipped", err)
		}
		if l, f := st.count("analyze_count", "data_versions"), st.count("analyze_count", "event_subjects"); l != locked ||
			f != free {
			t.Errorf("the tables were analyzed %d and %d times, want %d and %d", l, f, locked, free)
		}
	}
	update(0, 1)
	if _, err := other.Exec(t.Context(), `COMMIT`); err != nil {
		t.Fatal(err)
	}
	update(1, 1)
}
