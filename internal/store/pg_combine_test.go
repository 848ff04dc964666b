package store

import (
	"slices"
	"strings"
	"testing"
)

func TestCombineMergesInsertsOfTheSameText(t *testing.T) {
	t.Parallel()
	const a, b = `INSERT INTO a (x, y, z) VALUES ($1, lower($2), $1)`, `INSERT INTO b (x) VALUES ($1)`
	in := []statement{{sql: "UPDATE c"}}
	for i := range 7 {
		in = append(in, statement{sql: a, args: []any{i, "y"}, insert: true})
	}
	in = append(in, statement{sql: b, args: []any{9}, insert: true}, statement{sql: "UPDATE d"})
	out := combine(in)
	var texts []string
	var args []any
	for _, s := range out {
		texts, args = append(texts, s.sql), append(args, s.args...)
	}
	want := []string{
		"UPDATE c", "UPDATE d", a + `, ($3, lower($4), $3), ($5, lower($6), $5), ($7, lower($8), $7)`,
		a + `, ($3, lower($4), $3)`, a, b,
	}
	if !slices.Equal(texts, want) {
		t.Errorf("got %s\nwant %s", strings.Join(texts, "\n"), strings.Join(want, "\n"))
	}
	if all := []any{0, "y", 1, "y", 2, "y", 3, "y", 4, "y", 5, "y", 6, "y", 9}; !slices.Equal(args, all) {
		t.Errorf("got arguments %v, want %v", args, all)
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
	in = append(in, statement{sql: "UPDATE c"})
	var texts []string
	var args [][]any
	for _, s := range combine(in) {
		texts, args = append(texts, s.sql), append(args, s.args)
	}
	want := []string{
		"UPDATE c", "INSERT INTO b VALUES ($1)",
		`WITH done (id, x) AS (VALUES ($1::text, $2::bigint), ($3::text, $4::bigint)) UPDATE a SET x = done.x FROM done`,
		one,
	}
	if !slices.Equal(texts, want) {
		t.Errorf("got %s\nwant %s", strings.Join(texts, "\n"), strings.Join(want, "\n"))
	}
	wantArgs := [][]any{nil, {"b"}, {"a", 0, "a", 1}, {"a", 2}}
	if !slices.EqualFunc(args, wantArgs, slices.Equal[[]any]) {
		t.Errorf("got arguments %v, want %v", args, wantArgs)
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
