package store

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/parley-dev/parley/internal/pgtest"
)

// combined returns the texts and arguments of combine.
func combined(ss []statement) (texts []string, args [][]any) {
	for _, s := range combine(ss) {
		texts, args = append(texts, s.sql), append(args, s.args)
	}
	return texts, args
}

func TestCombineMergesInsertsOfTheSameText(t *testing.T) {
	t.Parallel()
	const a, b = `INSERT INTO a (x, y, z) VALUES ($1, lower($2), $1)`, `INSERT INTO b (x) VALUES ($1)`
	in := []statement{{sql: "UPDATE c"}}
	for i := range 3 {
		in = append(in, statement{sql: a, args: []any{i, "y"}, insert: true})
	}
	in = append(
		in,
		statement{sql: b, args: []any{9}, insert: true},
		statement{sql: a, args: []any{int64(4), "z"}, insert: true},
		statement{sql: "UPDATE d"},
		statement{sql: b, args: []any{1.5}, insert: true}, // of a kind that is not merged
	)
	texts, args := combined(in)
	want := []string{
		"UPDATE c", "UPDATE d",
		`INSERT INTO a (x, y, z) SELECT r.c1, lower(r.c2), r.c1 FROM unnest($1::bigint[], $2::text[]) AS r (c1, c2)`,
		b, b,
	}
	if diff := cmp.Diff(want, texts); diff != "" {
		t.Errorf("texts (-want +got):\n%s", diff)
	}
	wantArgs := [][]any{nil, nil, {[]int64{0, 1, 2, 4}, []string{"y", "y", "y", "z"}}, {9}, {1.5}}
	if diff := cmp.Diff(wantArgs, args); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
}

// A statement that is not an insert is merged by its text for many rows.
func TestCombineMergesStatementsWithATextForManyRows(t *testing.T) {
	t.Parallel()
	const one = `UPDATE a SET x = $2 WHERE id = $1`
	rows := &many{`WITH done (id, x) AS (VALUES ($1::text, $2::bigint)`, `) UPDATE a SET x = done.x FROM done`}
	in := []statement{{sql: "INSERT INTO b VALUES ($1)", args: []any{"b"}, insert: true}}
	for i := range 3 {
		in = append(in, statement{sql: one, args: []any{"a", i}, unless: errTaken, many: rows})
	}
	texts, args := combined(append(in, statement{sql: "UPDATE c"}))
	want := []string{
		"UPDATE c", "INSERT INTO b VALUES ($1)",
		`WITH done (id, x) AS (SELECT r.c1::text, r.c2::bigint FROM unnest($1::text[], $2::bigint[]) AS r (c1, c2)` +
			`) UPDATE a SET x = done.x FROM done`,
	}
	if diff := cmp.Diff(want, texts); diff != "" {
		t.Errorf("texts (-want +got):\n%s", diff)
	}
	wantArgs := [][]any{nil, {"b"}, {[]string{"a", "a", "a"}, []int64{0, 1, 2}}}
	if diff := cmp.Diff(wantArgs, args); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
}

// Lists travel as text, and arrive as they were.
func TestCombinedListsArriveUnchanged(t *testing.T) {
	t.Parallel()
	conn := connect(t, pgtest.URL(t))
	mustExec(t, conn, `CREATE TABLE lists (n BIGINT, items TEXT[])`)
	lists := [][]string{{}, {""}, {"a", "b c"}, {`quo"te`, `back\slash`, "NULL", "{x,y}", "tab\tline\n", "數"}}
	var in []statement
	for i, list := range lists {
		const insert = `INSERT INTO lists (n, items) VALUES ($1, $2::text[])`
		in = append(in, statement{sql: insert, args: []any{i, list}, insert: true})
	}
	if err := send(t.Context(), conn, combine(in)); err != nil {
		t.Fatal(err)
	}
	found, err := conn.Query(t.Context(), `SELECT items FROM lists ORDER BY n`)
	if err != nil {
		t.Fatal(err)
	}
	got, err := pgx.CollectRows(found, pgx.RowTo[[]string])
	if diff := cmp.Diff(lists, got); diff != "" || err != nil {
		t.Errorf("error %v, lists (-want +got):\n%s", err, diff)
	}
}

func TestBundleMakesOneStatementOfInserts(t *testing.T) {
	t.Parallel()
	insert := func(table string, args ...any) statement {
		return statement{sql: "INSERT INTO " + table + " (x, y) VALUES ($2, $1)", args: args, insert: true}
	}
	update := statement{sql: "UPDATE c SET x = $1", args: []any{1}}
	last := []statement{{sql: "INSERT INTO d (x) VALUES ($1) ON CONFLICT DO NOTHING", args: []any{9}}}
	first := insert("e", 7, 8)
	first.unless = errTaken
	got := bundle([]statement{first, insert("a", 2, 3), update, insert("b", 4, 5)}, last)
	want := []string{
		first.sql, update.sql, "WITH part0 AS (INSERT INTO a (x, y) VALUES ($2, $1)), " +
			"part1 AS (INSERT INTO b (x, y) VALUES ($4, $3)) INSERT INTO d (x) VALUES ($5) ON CONFLICT DO NOTHING",
	}
	var texts []string
	for _, s := range got {
		texts = append(texts, s.sql)
	}
	if !slices.Equal(texts, want) {
		t.Fatalf("got %s\nwant %s", strings.Join(texts, "\n"), strings.Join(want, "\n"))
	}
	if args := got[2].args; !slices.Equal(args, []any{2, 3, 4, 5, 9}) {
		t.Errorf("got arguments %v, want those of all parts", args)
	}
	for _, ss := range [][]statement{
		nil,
		{update},
		{insert("a", 1, 2), insert("a", 1, 2)},
		{insert("a", 1, 2), insert("b", 1, 2), insert("c", 1, 2), insert("e", 1, 2)},
	} {
		if got := bundle(ss, last); len(got) != len(ss)+1 {
			t.Errorf("%d statements became %d, want all and the last one", len(ss), len(got))
		}
	}
}
