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
