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
	// maxTimeline limits the size of the rows that are decoded, in bytes.
	maxTimeline = 4 << 20
)

// Timeline implements dispatch.TaskReader.
func (ts Tasks) Timeline(ctx context.Context, t task.Task, most int) ([]task.Event, error) {
	var out []task.Event
	err := ts.slowIf(ctx, t.Size > wideRead, t.Org, func(ctx context.Context, r reader) error {
		out = nil
		size := 0
		return each(ctx, r, func(r rows) error {
			var row logRow
			if err := r.Scan(&row.seq, &row.at, &row.data); err != nil {
				return err
			}
			if size += len(row.data); size > maxTimeline {
				return errEnough
			}
			events, err := row.leases()
			out = append(out, events...)
			return err
		}, fmt.Sprintf(`SELECT seq, at, CASE WHEN %[1]s THEN data ELSE '' END FROM task_events
			WHERE org_id = $1 AND uid = $2 AND (%[1]s OR substr(data, 1, %[2]d) <> '%[3]s')
			ORDER BY seq DESC LIMIT %[4]d`, ts.d.contains("data", attemptMark), len(turnMark), turnMark, most),
			t.Org, t.UID)
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	slices.Reverse(out)
	return out, err
}

// leases returns the events of a row that start or end a lease, the last one first. A row without
// data has one event without content.
func (r *logRow) leases() ([]task.Event, error) {
	if r.data == "" {
		return []task.Event{{Seq: r.seq, At: fromMicros(r.at)}}, nil
	}
	events, err := r.decode()
	events = slices.DeleteFunc(events, func(e task.Event) bool { return e.Lease == "" })
	slices.Reverse(events)
	return events, err
}
