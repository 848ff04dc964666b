package store

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/event"
	"github.com/parley-dev/parley/internal/pgtest"
)

// While an old snapshot keeps PostgreSQL from cleaning up, the search for packs without a number
// does not step over those that had one before.
func TestTheSearchForNewEventsSkipsOldOnes(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s := openFor(t, Options{URL: url})
	backup := connectTo(t, url)
	if _, err := backup.Exec(t.Context(), `BEGIN ISOLATION LEVEL REPEATABLE READ`); err != nil {
		t.Fatal(err)
	}
	var n int
	// A transaction that writes stays open, too.
	open := noted("acme", "agent:open")
	insertAndStayOpen(t, url, &open)
	if err := backup.QueryRow(t.Context(), `SELECT count(*) FROM events_new`).Scan(&n); err != nil { // takes the snapshot
		t.Fatal(err)
	}
	if err := s.Events().Append(t.Context(), noted("acme", "agent:a")); err != nil {
		t.Fatal(err)
	}
	logOf(t, s, "acme")
	const packs = 5*maxNumbered + 1
	if err := s.eng.write(t.Context(), func(x *tx) error {
		x.exec(fillPacks, packs)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if got := len(logOf(t, s, "acme")); got != packs+1 {
		t.Fatalf("%d events, want %d", got, packs+1)
	}
	head := `SELECT seq, kept, indexed, ` + s.d.unnumbered + ` FROM event_heads h WHERE org_id = $1`
	queries := map[string]statement{
		"page":   {sql: head, args: []any{"acme"}},
		"stray":  {sql: `SELECT org_id FROM event_heads h WHERE EXISTS (` + newPacks("1") + `)`},
		"number": {sql: numberPacks, args: []any{"acme", int64(maxNumbered)}},
	}
	for name, q := range queries {
		plan, pages := buffers(t, s, q)
		if pages > 40 || strings.Contains(plan, "Seq Scan on events_new") || !strings.Contains(plan, "events_new_pkey") {
			t.Errorf("%s reads %d pages, want few, by the index:\n%s", name, pages, plan)
		}
	}
	// From the beginning it would step over all of them.
	if _, err := connectTo(t, url).Exec(t.Context(), `UPDATE event_heads SET seen = DEFAULT`); err != nil {
		t.Fatal(err)
	}
	if plan, pages := buffers(t, s, queries["page"]); pages < 60 {
		t.Errorf("a search from the beginning reads %d pages: this test shows nothing\n%s", pages, plan)
	}
}

var sharedPages = regexp.MustCompile(`shared (?:hit=(\d+))?(?: ?read=(\d+))?`)

// buffers returns the plan of a query and how many pages it reads.
func buffers(t *testing.T, s *Store, q statement) (plan string, pages int) {
	t.Helper()
	steps := explain(t, s, func(r rows) (step string, err error) {
		err = r.Scan(&step)
		return step, err
	}, `EXPLAIN (ANALYZE, COSTS off, TIMING off, SUMMARY off, BUFFERS on) `+q.sql, q.args...)
	plan = strings.Join(steps, "\n")
	for _, step := range steps { // the first one includes the others
		if m := sharedPages.FindStringSubmatch(step); m != nil {
			hit, _ := strconv.Atoi(m[1]) // may be missing
			read, _ := strconv.Atoi(m[2])
			return plan, hit + read
		}
	}
	return plan, 0
}

// A log that was restored into a new cluster, which counts transactions anew, loses nothing.
func TestASnapshotOfTheFutureLosesNothing(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	dead := openFor(t, Options{URL: url})
	dead.eng.(*pg).numberer.close() // so that only reads give numbers
	conn := connectTo(t, url)
	restored := func() {
		t.Helper()
		if _, err := conn.Exec(t.Context(), `UPDATE event_heads
			SET seen = '9000000000000000000:9000000000000000010:9000000000000000005'`); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 {
		if err := dead.Events().Append(t.Context(), noted("acme", "agent:a")); err != nil {
			t.Fatal(err)
		}
		if i == 1 { // packs of the old cluster have its transactions
			if _, err := conn.Exec(t.Context(), `UPDATE events_new SET xid = '9000000000000000005'`); err != nil {
				t.Fatal(err)
			}
		}
		restored()
		if ids := logOf(t, dead, "acme"); len(ids) != i+1 {
			t.Fatalf("%d events, want %d", len(ids), i+1)
		}
	}
	restored()
	next := openFor(t, Options{URL: url})
	late := time.After(time.Minute)
	for found := true; found; { // until it has started
		var err error
		if found, err = newTx(next.eng, next.d, next.hooks).exists(t.Context(),
			`SELECT 1 FROM event_heads WHERE pg_snapshot_xmax(seen) > pg_snapshot_xmax(pg_current_snapshot())`); err != nil {
			t.Fatal(err)
		}
		select {
		case <-late:
			t.Fatal("what the log has seen is still of the old cluster after a minute")
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Pages, expiry and the index read a log by its keys.
func TestEventsAreFoundByTheirIndexes(t *testing.T) {
	t.Parallel()
	eachEngine(t, Options{}, func(t *testing.T, s *Store) {
		for org := range 20 {
			var list []event.Event
			for i := range 2000 {
				list = append(list, noted(fmt.Sprint("org", org), fmt.Sprint("agent:", i)))
			}
			if err := s.Events().Append(t.Context(), list...); err != nil {
				t.Fatal(err)
			}
			logOf(t, s, fmt.Sprint("org", org))
			for n := 1; n > 0; {
				var err error
				if n, err = s.Events().IndexSubjects(t.Context(), fmt.Sprint("org", org)); err != nil {
					t.Fatal(err)
				}
			}
		}
		for name, c := range map[string]struct {
			query event.Query
			index []string // one for each query, in order
		}{
			"all": {
				event.Query{Filter: everything, After: 500, Limit: 100},
				[]string{"event_heads_pkey", "events_pkey"},
			},
			"types": {
				event.Query{Filter: event.Filter{Types: event.KeyCreated.Bit()}, After: 1900, Limit: 100},
				[]string{"event_heads_pkey", "events_pkey", "event_heads_pkey"},
			},
			"subject": {
				event.Query{Filter: event.Filter{Subject: "agent:1500"}, Limit: 10},
				[]string{"event_heads_pkey", "event_subjects_pkey", "event_heads_pkey"},
			},
		} {
			a := &asked{engine: s.eng}
			s.eng = a
			_, err := s.Events().Page(t.Context(), "org7", c.query)
			s.eng = a.engine
			if err != nil || len(a.queries) != len(c.index) {
				t.Fatalf("%s: queries = %q, %v, want %d", name, a.queries, err, len(c.index))
			}
			for i, sql := range a.queries {
				args := [][]any{{"org7"}, {"org7", c.query.After, int64(1) << 40, int64(c.query.Types)}, {"org7"}}[i]
				if i == 1 && c.query.Subject != "" {
					args = []any{"org7", c.query.Subject, int64(0), int64(1) << 40}
				}
				if s.d == &sqliteDialect {
					searches(t, s, sql, args...)
					continue
				}
				plan, pages := buffers(t, s, statement{sql: sql, args: args})
				if !strings.Contains(plan, c.index[i]) || pages > 150 || strings.Contains(plan, "Seq Scan on events ") {
					t.Errorf("%s reads %d pages, want few, by %s:\n%s", name, pages, c.index[i], plan)
				}
			}
		}
	})
}
