package store

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPositional(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in, out string
		order   []int
	}{
		{"SELECT 1", "SELECT 1", nil},
		{"a = $1 AND b = $2", "a = ? AND b = ?", nil},
		{"a = $2 AND b = $1 AND c = $2", "a = ? AND b = ? AND c = ?", []int{1, 0, 1}},
		{"VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)", "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", nil},
		{"$12", "?", []int{11}},
		{"a LIKE $1 LIMIT $2\n\tOFFSET $3", "a LIKE +? LIMIT +?\n\tOFFSET +?", nil},
	} {
		text, order := positional(c.in)
		if diff := cmp.Diff(c.order, order); diff != "" || text != c.out {
			t.Errorf("positional(%s) = %s, want %s; diff of the order (-want +got):\n%s", c.in, text, c.out, diff)
		}
	}
}
