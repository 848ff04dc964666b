package store

import (
	"context"
	"fmt"
)

// countUpTo counts rows, but not beyond most: what a count costs must not grow with
// what a caller has stored. which is a table with conditions that an index serves.
func countUpTo(ctx context.Context, r reader, most int, which string, args ...any) (int, error) {
	n := 0
	_, err := one(ctx, r, []any{&n}, fmt.Sprintf(`SELECT count(*) FROM (SELECT 1 FROM %s LIMIT %d) counted`, which, most), args...)
	return n, err
}
