package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/parley-dev/parley/internal/task"
)

const (
	// attemptMark appears in every row with an event that starts or ends a lease.
	attemptMark = `"Attempt":`
	// turnMark is the beginning of every row that a sender wrote.
	turnMark = `[{"K":"` + string(task.TurnEvent) + `"`
	// maxTimeline limits the size of the rows that are decoded, in bytes. The latest one is decoded
	// whatever its size.
	maxTimeline = 4 << 20
)

// Timeline implements dispatch.TaskReader.
func (ts Tasks) Timeline(ctx context.Context, t task.Task, most int) (out []task.Event, cut bool, err error) {
	err = ts.slowIf(ctx, t.Size > wideRead, t.Org, func(ctx context.Context, r reader) error {
		out = nil
		n, size := 0, 0
		return each(ctx, r, func(r rows) error {
			var row logRow
			var turn int64
			if err := r.Scan(&row.seq, &row.at, &row.data, &turn); err != nil {
				return err
			}
			n, size = n+1, size+len(row.data)
			if n > most || n > 1 && size > maxTimeline {
				return errEnough
			}
			events, err := row.leases(turn == 1)
			out = append(out, events...)
			return err
		}, fmt.Sprintf(`SELECT seq, at, CASE WHEN %s THEN data ELSE '' END,
				CASE WHEN substr(data, 1, %d) = '%s' THEN 1 ELSE 0 END
			FROM task_events WHERE org_id = $1 AND uid = $2 ORDER BY seq DESC LIMIT %d`,
			ts.d.contains("data", attemptMark), len(turnMark), turnMark, most+1), t.Org, t.UID)
	})
	if cut = errors.Is(err, errEnough); cut {
		err = nil
	}
	slices.Reverse(out)
	return out, cut, err
}

// leases returns the events of a row that start or end a lease, the last one first, and one event
// without content for a message of the sender, or for a row without such events.
func (r *logRow) leases(turn bool) ([]task.Event, error) {
	other := task.Event{Seq: r.seq, At: fromMicros(r.at)}
	if turn {
		other.Kind = task.TurnEvent
	}
	if r.data == "" {
		return []task.Event{other}, nil
	}
	events, err := r.decode()
	events = slices.DeleteFunc(events, func(e task.Event) bool { return e.Lease == "" })
	slices.Reverse(events)
	if turn || len(events) == 0 {
		events = append(events, other)
	}
	return events, err
}
