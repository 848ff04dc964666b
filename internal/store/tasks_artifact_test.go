package store

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/task"
)

// weighed is an engine that records how much text it returns.
type weighed struct {
	engine
	bytes int
}

func (w *weighed) query(ctx context.Context, sql string, args ...any) (rows, error) {
	rs, err := w.engine.query(ctx, sql, args...)
	return &weighedRows{rs, w}, err
}

type weighedRows struct {
	rows
	w *weighed
}

func (r *weighedRows) Scan(dest ...any) error {
	err := r.rows.Scan(dest...)
	for _, d := range dest {
		if s, ok := d.(*string); ok {
			r.w.bytes += len(*s)
		}
	}
	return err
}

// logged creates a task whose log has these rows.
func logged(t *testing.T, s *Store, rows ...[]task.Event) {
	t.Helper()
	at, seq := time.Now().UTC().Truncate(time.Microsecond), int64(0)
	row := task.Task{
		Org: "a", UID: "t1", Agent: "bot", ID: "x", Sender: identity.Principal{Org: "a", Kind: identity.User, ID: "ann"},
		State: task.Submitted, Seq: 1, StatusSeq: 1, CreatedAt: at, UpdatedAt: at,
	}
	first := []task.Event{{Seq: 1, At: at, Kind: task.StatusEvent, State: task.Submitted}}
	if err := s.Tasks().Insert(t.Context(), task.Change{Task: row, Events: first}, 0); err != nil {
		t.Fatal(err)
	}
	seq = 1
	err := s.eng.write(t.Context(), func(x *tx) error {
		for _, events := range rows {
			for i := range events {
				seq++
				events[i].Seq, events[i].At = seq, at
			}
			encoded, err := encodeRow(events)
			if err != nil {
				return err
			}
			x.insertEvents(&row, []logRow{encoded})
		}
		x.exec(`UPDATE tasks SET seq = $1`, seq)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func piece(id string, more bool, texts ...string) task.Event {
	a := &task.Artifact{ID: id, Name: "of " + id}
	for _, text := range texts {
		a.Parts = append(a.Parts, task.Part{Kind: task.TextPart, Text: text})
	}
	return task.Event{Kind: task.ArtifactEvent, Artifact: a, Append: more}
}

func said(text string) task.Event {
	m := task.Message{ID: "m", Role: task.RoleUser, Parts: []task.Part{{Kind: task.TextPart, Text: text}}}
	return task.Event{Kind: task.TurnEvent, Message: &m}
}

// One artifact is the same as in the whole task, however the log holds it.
func TestOneArtifactIsThatOfTheWholeTask(t *testing.T) {
	t.Parallel()
	eachEngine(t, Options{}, func(t *testing.T, s *Store) {
		large := strings.Repeat("ä<", wideRow)
		odd := strings.Repeat("<\"\\é", task.MaxID/5)
		log := [][]task.Event{
			{said(`says "K":"artifact" itself`)},
			{piece("small", false, "one"), piece("both", false, "b1"), said("x")},
			{piece(odd, false, large)},
			{said(large + `"K":"artifact"`)},
			{piece("small", true, large)},
			{piece("replaced", false, large, large)},
			{piece("replaced", false, "short")},
			{piece("both", true, "b2")},
			{said("old"), piece("old", false, large), piece("small", true, "three")}, // a large row of several events
		}
		for i := range maxMarks + 200 {
			log = append(log, []task.Event{piece("stream", true, fmt.Sprint(i, " "))})
		}
		logged(t, s, log...)
		whole, err := s.Tasks().ByUID(t.Context(), "a", "t1", task.Content{Artifacts: true})
		if err != nil || len(whole.Artifacts) != 6 {
			t.Fatalf("artifacts = %d, %v, want 6", len(whole.Artifacts), err)
		}
		bytes := int64(0)
		admit := func(n int64) error { bytes = n; return nil }
		for i := range whole.Artifacts {
			got, err := s.Tasks().Artifact(t.Context(), "a", "t1", i, admit)
			if diff := cmp.Diff(whole.Artifacts[i], got); err != nil || diff != "" || bytes == 0 {
				t.Errorf("artifact %d: bytes = %d, %v, want more than 0; diff to the whole task (-want +got):\n%s",
					i, bytes, err, diff)
			}
		}
		for _, c := range []struct {
			org, uid string
			number   int
		}{{"a", "t1", 6}, {"a", "t1", -1}, {"b", "t1", 0}, {"a", "t2", 0}} {
			_, err := s.Tasks().Artifact(t.Context(), c.org, c.uid, c.number, admit)
			if errs.KindOf(err) != errs.NotFound {
				t.Errorf("artifact of %+v = %v, want kind %s", c, err, errs.NotFound)
			}
		}
	})
}

// A download of one artifact reads only that one, and asks for its memory before.
func TestOneArtifactCostsNoOther(t *testing.T) {
	t.Parallel()
	eachEngine(t, Options{}, func(t *testing.T, s *Store) {
		large := strings.Repeat("L", 1<<20)
		logged(t, s, []task.Event{piece("a", false, large)}, []task.Event{piece("b", false, "little")},
			[]task.Event{said(large)}, []task.Event{piece("c", false, large, large)})
		w := &weighed{engine: s.eng}
		s.eng = w
		defer func() { s.eng = w.engine }()
		admitted := int64(0)
		admit := func(n int64) error { admitted = n; return nil }
		for number, most := range []int{1<<20 + 20<<10, 20 << 10, 2<<20 + 20<<10} {
			w.bytes = 0
			_, err := s.Tasks().Artifact(t.Context(), "a", "t1", number, admit)
			if err != nil || w.bytes > most || admitted > int64(most) {
				t.Errorf("artifact %d: %d bytes were read and %d admitted, want at most %d; %v",
					number, w.bytes, admitted, most, err)
			}
		}
		w.bytes = 0
		_, err := s.Tasks().Artifact(t.Context(), "a", "t1", 2, func(int64) error { return errs.ErrNotFound })
		if err == nil || w.bytes > 20<<10 {
			t.Errorf("without memory: %d bytes were read, %v, want at most %d and an error", w.bytes, err, 20<<10)
		}
	})
}

// A page that lists artifacts reads no more of each part than it shows.
func TestClippedArtifactsCountWhatIsLeftOut(t *testing.T) {
	t.Parallel()
	eachEngine(t, Options{}, func(t *testing.T, s *Store) {
		parts := []task.Part{
			{Kind: task.TextPart, Text: "short"},
			{Kind: task.TextPart, Text: strings.Repeat("ä", 30)},
			{Kind: task.DataPart, Data: []byte(`{"a":1}`)},
			{Kind: task.DataPart, Data: []byte(`"` + strings.Repeat("x", 40) + `"`)},
			{Kind: task.FilePart, Name: "f", Bytes: make([]byte, 70)},
			{Kind: task.FilePart, Name: "g", URL: "https://example.com/g"},
		}
		logged(t, s, []task.Event{{Kind: task.ArtifactEvent, Artifact: &task.Artifact{ID: "a", Parts: parts}}})
		got, err := s.Tasks().ByUID(t.Context(), "a", "t1", task.Content{Artifacts: true, Sparse: true, Clip: 11})
		if err != nil {
			t.Fatal(err)
		}
		want := []task.Part{
			parts[0],
			{Kind: task.TextPart, Text: strings.Repeat("ä", 5), Left: 50},
			parts[2],
			{Kind: task.DataPart, Left: 42},
			{Kind: task.FilePart, Name: "f", Left: 70},
			parts[5],
		}
		if diff := cmp.Diff(want, got.Artifacts[0].Parts); diff != "" {
			t.Error(diff)
		}
	})
}
