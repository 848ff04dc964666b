package store

import (
	"context"

	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/task"
)

// decision decides on a task and encodes the resulting events.
type decision func(task.Current) (task.Change, []logRow, error)

func encoded(decide dispatch.Decision) decision {
	return func(cur task.Current) (task.Change, []logRow, error) {
		c, err := decide(cur)
		if err != nil {
			return c, nil, err
		}
		rows, err := encodeEvents(c.Events)
		return c, rows, err
	}
}

// decideAhead runs a decision before the write, on the current row. SQLite has one writer: if it
// had to measure, hash and encode megabytes, it would delay the writes of all callers. The write
// uses the result if the row is still the same. Errors are left to the write.
func (ts Tasks) decideAhead(ctx context.Context, decided decision, where string, args ...any) decision {
	known, err := ts.current(ctx, ts.eng, where, args...)
	if err != nil {
		return decided
	}
	c, rows, err := decided(known)
	if err != nil {
		return decided
	}
	return func(cur task.Current) (task.Change, []logRow, error) {
		if !sameRow(&cur.Task, &known.Task) {
			return decided(cur)
		}
		return c, rows, nil
	}
}

// sameRow reports whether a row is unchanged. Every write of a task changes one of these columns.
func sameRow(a, b *task.Task) bool {
	return a.UID == b.UID && a.Seq == b.Seq && a.Lease == b.Lease && a.Attempts == b.Attempts &&
		a.Delivered == b.Delivered && a.Queued == b.Queued && a.Push == b.Push && a.WakeAt.Equal(b.WakeAt)
}
