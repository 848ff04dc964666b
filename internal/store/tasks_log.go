package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/task"
)

// storedEvent is an event in the log. It has a kind, but no number and time, which the row holds.
type storedEvent struct {
	K task.EventKind
	task.Event
}

// logRow is one row of a task's log. It holds all events of one write or, if they are large, one
// event.
type logRow struct {
	seq, at int64 // number and time of the last event
	data    string
}

// wideRow is the size in bytes from which each event gets its own row. A reader of a task's
// status must not have to read an artifact.
const wideRow = 16 << 10

// lightTask is the size in bytes up to which a task is read together with its log before the
// reader admits it.
const lightTask = 64 << 10

// encodeEvents encodes the rows of one write.
func encodeEvents(events []task.Event) ([]logRow, error) {
	if len(events) == 0 {
		return nil, nil
	}
	whole, err := encodeRow(events)
	if err != nil || len(whole.data) < wideRow || len(events) == 1 {
		return []logRow{whole}, err
	}
	rows := make([]logRow, len(events))
	for i := range events {
		if rows[i], err = encodeRow(events[i : i+1]); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// wideRows reports whether the rows hold a large amount of text.
func wideRows(rows []logRow) bool { return sizeOf(rows) >= wideRow }

// wideWrite is the size in bytes from which a write is wide; see queue.
const wideWrite = 128 << 10

func sizeOf(rows []logRow) (n int64) {
	for i := range rows {
		n += int64(len(rows[i].data))
	}
	return n
}

// decode is the inverse of encodeRow.
func (r *logRow) decode() ([]task.Event, error) {
	var stored []storedEvent
	if err := jsonv2.Unmarshal([]byte(r.data), &stored, jsontext.AllowDuplicateNames(true)); err != nil {
		return nil, fmt.Errorf("decode events: %w", err)
	}
	out := make([]task.Event, len(stored))
	for i := range stored {
		out[i] = stored[i].Event
		out[i].Seq, out[i].At, out[i].Kind = r.seq-int64(len(stored)-1-i), fromMicros(r.at), stored[i].K
	}
	return out, nil
}

func (x *tx) insertEvents(t *task.Task, rows []logRow) {
	for _, r := range rows {
		x.insert(`INSERT INTO task_events (org_id, uid, seq, at, data) VALUES ($1, $2, $3, $4, $5)`,
			t.Org, t.UID, r.seq, r.at, r.data)
	}
}

// ByKey implements dispatch.TaskReader.
func (ts Tasks) ByKey(ctx context.Context, k task.Key, l task.Content) (task.Task, error) {
	return ts.load(ctx, l, keyCondition, k.Org, k.Agent, k.Sender.Org, k.Sender.Ref(), k.ID)
}

// ByUID implements dispatch.TaskReader.
func (ts Tasks) ByUID(ctx context.Context, org, uid string, l task.Content) (task.Task, error) {
	return ts.load(ctx, l, `tasks.org_id = $1 AND tasks.uid = $2`, org, uid)
}

// Each query reads a task together with its log, so that both are consistent.
const (
	selectWhole = `SELECT ` + taskColumns + `, 0, e.seq, e.at, e.data
		FROM tasks JOIN task_events e ON e.org_id = tasks.org_id AND e.uid = tasks.uid WHERE `
	// selectStatus reads only the row of the log that has the current status.
	selectStatus = `SELECT ` + taskColumns + `, 0 AS clock, e.seq AS event, e.at, e.data
		FROM tasks JOIN task_events e ON e.org_id = tasks.org_id AND e.uid = tasks.uid AND e.seq = (
						SELECT min(f.seq) FROM task_events f
						WHERE f.org_id = tasks.org_id AND f.uid = tasks.uid AND f.seq >= tasks.status_seq)
		WHERE `
)

func (ts Tasks) load(ctx context.Context, l task.Content, where string, args ...any) (task.Task, error) {
	if !l.History && !l.Artifacts {
		t, err := ts.read(ctx, l, selectStatus+where, args...)
		if err != nil || t.StatusSeq > 0 {
			return t, err
		}
	}
	which := where
	if l.Sparse && !l.History {
		// Rows of older versions do not record where the status is, so all of them are read.
		which += ` AND (tasks.status_seq = 0 OR ` + ts.d.contains("e.data", artifactMark) + ` OR e.seq = (
					SELECT min(f.seq) FROM task_events f
					WHERE f.org_id = tasks.org_id AND f.uid = tasks.uid AND f.seq >= tasks.status_seq))`
	}
	if l.Admit != nil {
		t, err := ts.read(ctx, l, selectWhole+which+fmt.Sprintf(` AND size <= %d ORDER BY e.seq`, lightTask), args...)
		if errs.KindOf(err) != errs.NotFound {
			return t, err
		}
		// There is no such task, or it is large. PostgreSQL sends the whole log at once, so the
		// task must be admitted before. What it gains in between is not counted.
		if t, err = ts.row(ctx, where, args...); err == nil {
			err = l.Admit(t)
		}
		if err != nil {
			return task.Task{}, err
		}
		l.Admit = nil
	}
	return ts.read(ctx, l, selectWhole+which+` ORDER BY e.seq`, args...)
}

func (ts Tasks) read(ctx context.Context, l task.Content, query string, args ...any) (task.Task, error) {
	var t task.Task
	found := false
	err := each(ctx, ts.eng, func(r rows) error {
		var row logRow
		cur, err := ts.scanTask(r, &row.seq, &row.at, &row.data)
		if err != nil {
			return err
		}
		if !found {
			found, t = true, cur.Task
			if l.Admit != nil {
				if err := l.Admit(t); err != nil {
					return err
				}
			}
		}
		return fold(&t, &row, l)
	}, query, args...)
	if err == nil && !found {
		err = errs.ErrNotFound
	}
	return t, err
}

// fold adds the requested events of a log row to a task that was read from its own row.
func fold(t *task.Task, row *logRow, l task.Content) error {
	events, err := row.decode()
	seq, status, updated := t.Seq, t.StatusSeq, t.UpdatedAt
	for i := range events {
		if l.Clip > 0 && events[i].Artifact != nil {
			events[i].Artifact.Clip(l.Clip)
		}
		t.Apply(&events[i])
		if !l.History {
			t.History = nil
		}
		if !l.Artifacts {
			t.Artifacts = nil
		}
	}
	t.Seq, t.StatusSeq, t.UpdatedAt = seq, status, updated
	return err
}

// Taken implements dispatch.TaskReader. On PostgreSQL an insert that is refused takes the whole batch
// of writes with it, which then run one by one.
func (ts Tasks) Taken(ctx context.Context, k task.Key) bool {
	if ts.d == &sqliteDialect {
		return false
	}
	n := 0
	found, err := one(ctx, ts.eng, []any{&n}, `SELECT 1 FROM tasks WHERE `+keyCondition,
		k.Org, k.Agent, k.Sender.Org, k.Sender.Ref(), k.ID)
	return found && err == nil
}

// Row implements dispatch.TaskReader.
func (ts Tasks) Row(ctx context.Context, org, uid string) (task.Task, error) {
	return ts.row(ctx, `org_id = $1 AND uid = $2`, org, uid)
}

func (ts Tasks) row(ctx context.Context, where string, args ...any) (task.Task, error) {
	var cur task.Current
	found := false
	err := each(ctx, ts.eng, func(r rows) (err error) {
		found = true
		cur, err = ts.scanTask(r)
		return err
	}, `SELECT `+taskColumns+`, 0 FROM tasks WHERE `+where, args...)
	if err == nil && !found {
		err = errs.ErrNotFound
	}
	return cur.Task, err
}

// Events implements stream.Log.
func (ts Tasks) Events(ctx context.Context, org, uid string, after int64, most int) ([]task.Event, error) {
	var out []task.Event
	size := 0
	err := each(ctx, ts.eng, func(r rows) error {
		var row logRow
		if err := r.Scan(&row.seq, &row.at, &row.data); err != nil {
			return err
		}
		if len(out) >= most || row.data == "" || len(out) > 0 && size+len(row.data) > pageBytes {
			return errEnough
		}
		size += len(row.data)
		events, err := row.decode()
		for _, e := range events {
			if e.Seq > after && len(out) < most {
				out = append(out, e)
			}
		}
		return err
	}, ts.d.within(`seq, at`, `SELECT seq, at, data FROM task_events
		WHERE org_id = $1 AND uid = $2 AND seq > $3 ORDER BY seq LIMIT $4`, "seq", pageBytes), org, uid, after, most)
	if errors.Is(err, errEnough) {
		err = nil
	}
	return out, err
}

// EventsSize implements stream.Log.
func (ts Tasks) EventsSize(ctx context.Context, org, uid string, after int64, most int) (int64, error) {
	size := int64(0)
	err := each(ctx, ts.eng, func(r rows) error {
		var n int64
		if err := r.Scan(&n); err != nil {
			return err
		}
		if size > 0 && size+n > pageBytes {
			return errEnough
		}
		size += n
		return nil
	}, `SELECT octet_length(data) FROM task_events
		WHERE org_id = $1 AND uid = $2 AND seq > $3 ORDER BY seq`+fmt.Sprintf(` LIMIT %d`, most), org, uid, after)
	if errors.Is(err, errEnough) {
		err = nil
	}
	return size, err
}

// Seqs implements stream.Log.
func (ts Tasks) Seqs(ctx context.Context, refs []task.Ref) (map[task.Ref]int64, error) {
	out := make(map[task.Ref]int64, len(refs))
	byOrg := map[string][]any{}
	for _, r := range refs {
		byOrg[r.Org] = append(byOrg[r.Org], r.UID)
	}
	for org, uids := range byOrg {
		marks := make([]string, len(uids))
		for i := range uids {
			marks[i] = fmt.Sprintf("$%d", i+2)
		}
		err := each(ctx, ts.eng, func(r rows) error {
			ref := task.Ref{Org: org}
			var seq int64
			err := r.Scan(&ref.UID, &seq)
			out[ref] = seq
			return err
		}, `SELECT uid, seq FROM tasks
				WHERE org_id = $1 AND uid IN (`+strings.Join(marks, ", ")+`)`, append([]any{org}, uids...)...)
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// pageBytes limits how much of a log is read at once, unless one event is larger. A stalled
// reader must not hold decoded events that it never takes.
const pageBytes = 64 << 10

var errEnough = errors.New("enough rows were read")
