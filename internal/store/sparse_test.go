package store

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/task"
)

// TestASparseReadHasAllArtifactsAndTheStatus compares a sparse read with a read of the whole log.
func TestASparseReadHasAllArtifactsAndTheStatus(t *testing.T) {
	t.Parallel()
	eachEngine(t, Options{}, func(t *testing.T, s *Store) {
		at := time.Now().UTC().Truncate(time.Microsecond)
		text := func(s string) []task.Part { return []task.Part{{Kind: task.TextPart, Text: s}} }
		turn := func(seq int64, s string) task.Event {
			m := &task.Message{ID: "m", Role: task.RoleUser, Parts: text(s)}
			return task.Event{Seq: seq, At: at, Kind: task.TurnEvent, Message: m}
		}
		status := func(seq int64, st task.State, s string) task.Event {
			m := &task.Message{ID: "s", Role: task.RoleAgent, Parts: text(s)}
			return task.Event{Seq: seq, At: at, Kind: task.StatusEvent, State: st, Message: m}
		}
		artifact := func(seq int64, id string) task.Event {
			a := &task.Artifact{ID: id, Parts: text("of " + id)}
			return task.Event{Seq: seq, At: at, Kind: task.ArtifactEvent, Artifact: a}
		}
		row := task.Task{
			Org: "a", UID: "t1", Agent: "bot", ID: "x", Sender: identity.Principal{Org: "a", Kind: identity.User, ID: "ann"},
			State: task.Submitted, Seq: 2, StatusSeq: 2, CreatedAt: at, UpdatedAt: at,
		}
		first := []task.Event{turn(1, "hi"), status(2, task.Submitted, "")}
		if err := s.Tasks().Insert(t.Context(), task.Change{Task: row, Events: first}, 0); err != nil {
			t.Fatal(err)
		}
		for _, events := range [][]task.Event{
			{turn(3, `says "K":"artifact" itself`)},
			{artifact(4, "first"), status(5, task.Working, "half")},
			{turn(6, "more")},
			{artifact(7, "second")},
			{turn(8, "and more")},
		} {
			if _, err := s.Tasks().Update(t.Context(), "a", "t1", 0, func(cur task.Current) (task.Change, error) {
				c := task.Change{Task: cur.Task, Events: events}
				for _, e := range events {
					if c.Task.Seq = e.Seq; e.Kind == task.StatusEvent {
						c.Task.State, c.Task.StatusSeq = e.State, e.Seq
					}
				}
				return c, nil
			}); err != nil {
				t.Fatal(err)
			}
		}
		want, err := s.Tasks().ByUID(t.Context(), "a", "t1", task.Content{Artifacts: true})
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.Tasks().ByUID(t.Context(), "a", "t1", task.Content{Artifacts: true, Sparse: true})
		if err != nil || len(got.Artifacts) != 2 {
			t.Fatalf("artifacts = %v, %v, want 2", got.Artifacts, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}
