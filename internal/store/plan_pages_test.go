package store

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-dev/parley/internal/pgtest"
	"github.com/parley-dev/parley/internal/proposal"
)

// unordered are the steps of a plan that reads more rows than the page has.
var unordered = regexp.MustCompile(`Sort|Seq Scan|Bitmap|Materialize`)

// A page of one range is read from the index of the range, in its order, and only as far as the page
// goes, whether PostgreSQL has planned it for empty tables or for many rows.
func TestPostgresReadsAPageInTheOrderOfItsIndex(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s := openAt(t, Options{URL: url})
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	run := func(sql string) [][][]byte {
		t.Helper()
		results, err := conn.PgConn().Exec(t.Context(), sql).ReadAll()
		if err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		return results[len(results)-1].Rows
	}
	run(pgSession{statement: time.Minute, lock: time.Minute}.sql())
	check := func() {
		seen := map[string]bool{}
		everyList(func(f proposal.Filter) {
			q := newListQuery(s.d, f, 0)
			with := f.Evidence == proposal.WithEvidence
			if !q.plain() && !with || len(q.arms(q.ranges())) != 1 {
				return
			}
			if q = newListQuery(s.d, f, 1<<40); q.few() {
				return
			}
			sql := q.page()
			if seen[sql] {
				return
			}
			seen[sql] = true
			args := make([]string, len(q.args))
			for i, arg := range q.args {
				args[i] = fmt.Sprint(arg)
				if _, ok := arg.(string); ok {
					args[i] = "'" + args[i] + "'"
				}
			}
			run("PREPARE page AS " + sql)
			var plan strings.Builder
			for _, row := range run("EXPLAIN (COSTS off) EXECUTE page(" + strings.Join(args, ", ") + ")") {
				plan.WriteString(string(row[0]) + "\n")
			}
			run("DEALLOCATE page")
			text, scans := plan.String(), 1
			if with { // the index is smaller than the org, and other filters may exclude most of its rows
				scans = 2
			}
			if unordered.MatchString(text) || strings.Count(text, " on proposals") != scans ||
				with && !strings.Contains(text, "Index Only Scan") {
				t.Errorf("%+v:\n%s\n%s\nwant one scan of an index", f, sql, text)
			}
		})
		if len(seen) < 10 {
			t.Errorf("%d statements were planned", len(seen))
		}
	}
	check()
	run(`INSERT INTO proposals (org_id, id, status, category, priority, submitted_by, submitted_at, updated_at,
			votes_for, votes_against, score, version, followup_id, title, problem, suggested_fix, resolution_note,
			submitted_as, by_person, fingerprint, evidence)
		SELECT 'acme', 'prop-' || lpad(n::text, 26, '0'), (array['open', 'approved', 'rejected'])[n % 3 + 1],
			(array['security', 'process'])[n % 2 + 1], n % 3, 'user:ann' || n % 50, n, n, n % 7, 0, n % 7, 1, '',
			'A title', repeat('x', 500), 'y', '', '', 1, '', 0
		FROM generate_series(1, 20000) n; ANALYZE`)
	check()
}
