package store

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/task"
)

// Artifact implements dispatch.TaskReader. It reads the log twice: first to see which rows contain
// the artifact, for which the beginning of a large row suffices, and then those rows. The log only
// grows, so both reads agree.
func (ts Tasks) Artifact(
	ctx context.Context, org, uid string, number int, admit func(bytes int64) error,
) (task.Artifact, error) {
	o, err := ts.outline(ctx, org, uid)
	if err != nil {
		return task.Artifact{}, err
	}
	if number < 0 || number >= len(o.ids) {
		return task.Artifact{}, errs.ErrNotFound
	}
	id := o.ids[number]
	if err := admit(o.bytes[id]); err != nil {
		return task.Artifact{}, err
	}
	var t task.Task
	for seqs := range slices.Chunk(o.seqs[id], maxMarks) {
		if err := ts.foldArtifact(ctx, org, uid, id, seqs, &t); err != nil {
			return task.Artifact{}, err
		}
	}
	if len(t.Artifacts) == 0 {
		return task.Artifact{}, errs.ErrNotFound
	}
	return t.Artifacts[0], nil
}

// outline maps artifacts to the rows of a task's log that contain them.
type outline struct {
	ids   []string // in order of appearance
	seqs  map[string][]int64
	bytes map[string]int64 // total size of these rows
}

func (o *outline) add(id string, seq, bytes int64) {
	of, known := o.seqs[id]
	if !known {
		o.ids = append(o.ids, id)
	}
	if !known || of[len(of)-1] != seq {
		o.seqs[id] = append(of, seq)
		o.bytes[id] += bytes
	}
}

// artifactMark appears in every row with an artifact.
const artifactMark = `"K":"` + string(task.ArtifactEvent) + `"`

// rowHead is how many characters of a large row are read to find the id of its artifact. The id
// has a limited length and comes first.
const rowHead = 4096

func (ts Tasks) outline(ctx context.Context, org, uid string) (*outline, error) {
	o := &outline{seqs: map[string][]int64{}, bytes: map[string]int64{}}
	// A large row holds one event, except in logs of older versions: such rows are read whole.
	query := fmt.Sprintf(`SELECT seq, bytes, whole, CASE WHEN whole = 1 THEN data ELSE substr(data, 1, %d) END FROM (
			SELECT e.seq, e.data, octet_length(e.data) AS bytes,
				CASE WHEN octet_length(e.data) < %[2]d OR e.seq > 1 + coalesce((
					SELECT max(f.seq) FROM task_events f WHERE f.org_id = e.org_id AND f.uid = e.uid AND f.seq < e.seq
				), 0) THEN 1 ELSE 0 END AS whole
		FROM task_events e WHERE e.org_id = $1 AND e.uid = $2 AND (octet_length(e.data) >= %[2]d OR %[3]s)
	) listed ORDER BY seq`, rowHead, wideRow, ts.d.contains("e.data", artifactMark))
	err := each(ctx, ts.eng, func(r rows) error {
		var row logRow
		var bytes, whole int64
		if err := r.Scan(&row.seq, &bytes, &whole, &row.data); err != nil {
			return err
		}
		if whole == 0 {
			id, found, err := artifactIn(row.data)
			if found {
				o.add(id, row.seq, bytes)
			}
			return err
		}
		events, err := row.decode()
		for i := range events {
			if events[i].Kind == task.ArtifactEvent {
				o.add(events[i].Artifact.ID, row.seq, bytes)
			}
		}
		return err
	}, query, org, uid)
	return o, err
}

// artifactIn returns the id of the artifact in the first event of a row, given the beginning of
// the row.
func artifactIn(head string) (id string, found bool, err error) {
	d := jsontext.NewDecoder(strings.NewReader(head))
	// [{"K":"artifact","Artifact":{"ID":"…"
	for i, want := range []string{"[", "{", "K", string(task.ArtifactEvent), "Artifact", "{", "ID", ""} {
		token, err := d.ReadToken()
		switch {
		case err != nil:
			return "", false, fmt.Errorf("decode the beginning of an event: %w", err)
		case want == "":
			return token.String(), true, nil
		case token.String() != want && i == 3:
			return "", false, nil
		case token.String() != want:
			return "", false, fmt.Errorf("decode the beginning of an event: got token %q, want %q", token.String(), want)
		}
	}
	return "", false, nil
}

// foldArtifact adds the events of an artifact in some rows of the log to t.
func (ts Tasks) foldArtifact(ctx context.Context, org, uid, id string, seqs []int64, t *task.Task) error {
	marks, args := make([]string, len(seqs)), []any{org, uid}
	for i, seq := range seqs {
		args = append(args, seq)
		marks[i] = "$" + strconv.Itoa(len(args))
	}
	n := 0
	err := each(ctx, ts.eng, func(r rows) error {
		var row logRow
		if err := r.Scan(&row.seq, &row.at, &row.data); err != nil {
			return err
		}
		n++
		events, err := row.decode()
		for i := range events {
			if e := &events[i]; e.Kind == task.ArtifactEvent && e.Artifact.ID == id {
				t.Apply(e)
			}
		}
		return err
	}, `SELECT seq, at, data FROM task_events
		WHERE org_id = $1 AND uid = $2 AND seq IN (`+strings.Join(marks, ", ")+`) ORDER BY seq`, args...)
	if err == nil && n < len(seqs) { // the task was deleted meanwhile
		err = errs.ErrNotFound
	}
	return err
}
