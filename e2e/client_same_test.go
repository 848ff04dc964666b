package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/a2aproject/a2a-go/v2/a2a"
)

// TestOneTaskInAllDialects: a task sent in one dialect is the same task in all others, and streams
// in different dialects show the same events.
func TestOneTaskInAllDialects(t *testing.T) {
	t.Parallel()
	s := newStage(t, engine{"sqlite", []string{"--data", t.TempDir()}})
	spec := peer{s.base, s.key}
	clients := make([]*goClient, len(goDialects))
	for i, d := range goDialects {
		clients[i] = d.dial(t, s, s.key)
	}
	for i := -1; i < len(clients); i++ {
		name := "spec"
		if i >= 0 {
			name = clients[i].name
		}
		t.Run("sent by "+name, func(t *testing.T) {
			t.Parallel()
			var id string
			if i < 0 {
				id = "sent-" + name
				must(spec.send(t.Context(), s.agent, id, "kinds", "Prefer: wait=30"))(t)
			} else {
				id = string(clients[i].order(t, "kinds").ID)
			}
			want := specView(t, spec, s.agent, id)
			if !strings.HasPrefix(want, id+" completed [text data file file] ") {
				t.Errorf("the task is %s", want)
			}
			length := 10
			for _, c := range clients {
				task, err := c.GetTask(t.Context(), &a2a.GetTaskRequest{ID: a2a.TaskID(id), HistoryLength: &length})
				if err != nil {
					t.Errorf("%s: %v", c.name, err)
				} else if got := goView(task); got != want {
					t.Errorf("%s sees\n%s\ninstead of\n%s", c.name, got, want)
				}
			}
		})
	}
	t.Run("streams", func(t *testing.T) {
		t.Parallel()
		testStreamsAgree(t, s, spec, clients)
	})
}

// specView returns the part of a task that must be the same in all dialects, read in the dialect
// of the specification.
func specView(t *testing.T, p peer, agent, id string) string {
	t.Helper()
	a := must(p.call(t.Context(), agent, "tasks/get", object{"id": id, "historyLength": 10}))(t)
	var task struct {
		ID, ContextID string
		Status        struct{ State string }
		Artifacts     []struct {
			ArtifactID string
			Parts      []struct{ Type string }
		}
		History []struct{ Role, MessageID string }
	}
	if err := json.Unmarshal(a.Result, &task); err != nil || len(task.Artifacts) != 1 || len(task.History) != 1 {
		t.Fatalf("task = %s %+v (%v), want 1 artifact and 1 message", a.Result, a.Error, err)
	}
	var kinds []string
	for _, p := range task.Artifacts[0].Parts {
		kinds = append(kinds, p.Type)
	}
	return fmt.Sprintf("%s %s %v %s %s %s", task.ID, task.Status.State, kinds, task.Artifacts[0].ArtifactID,
		task.ContextID, task.History[0].MessageID)
}

// goView returns the same, read by the SDK.
func goView(task *a2a.Task) string {
	if len(task.Artifacts) != 1 || len(task.History) != 1 {
		return fmt.Sprintf("%+v", task)
	}
	var kinds []string
	for _, p := range task.Artifacts[0].Parts {
		switch p.Content.(type) {
		case a2a.Text:
			kinds = append(kinds, "text")
		case a2a.Data:
			kinds = append(kinds, "data")
		default:
			kinds = append(kinds, "file")
		}
	}
	return fmt.Sprintf("%s %s %v %s %s %s", task.ID, plainState(task.Status.State), kinds, task.Artifacts[0].ID,
		task.ContextID, task.History[0].ID)
}

// plainState spells a state as the specification does.
func plainState(s a2a.TaskState) string {
	return strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(string(s), "TASK_STATE_")), "_", "-")
}

// testStreamsAgree follows one task in all dialects at once.
func testStreamsAgree(t *testing.T, s *stage, spec peer, clients []*goClient) {
	id := "watched"
	must(spec.send(t.Context(), s.agent, id, "stay"))(t)
	clients[0].waitFor(t, a2a.TaskID(id), a2a.TaskStateWorking, "on it")
	f := must(spec.resubscribe(t.Context(), s.agent, id, 0))(t)
	var ready, done sync.WaitGroup
	seen := make([][]string, len(clients))
	for i, c := range clients {
		ready.Add(1)
		done.Go(func() {
			begin := sync.OnceFunc(ready.Done)
			defer begin()
			for event, err := range c.SubscribeToTask(t.Context(), &a2a.SubscribeToTaskRequest{ID: a2a.TaskID(id)}) {
				if err != nil {
					t.Errorf("%s: %v", c.name, err)
					return
				}
				begin()
				switch e := event.(type) {
				case *a2a.TaskStatusUpdateEvent:
					seen[i] = append(seen[i], plainState(e.Status.State))
				case *a2a.TaskArtifactUpdateEvent:
					seen[i] = append(seen[i], partsText(e.Artifact.Parts))
				}
			}
		})
	}
	ready.Wait()
	must(spec.send(t.Context(), s.agent, id, "finish"))(t)
	events := must(f.rest())(t)
	done.Wait()
	var want []string
	for _, e := range events {
		if e.state != "" {
			want = append(want, e.state)
		} else {
			want = append(want, "Told to finish")
		}
	}
	if len(want) < 4 || !slices.Equal(want[len(want)-2:], []string{"Told to finish", "completed"}) {
		t.Fatalf("the specification's stream shows %q", want)
	}
	for i, c := range clients {
		// These streams start with the task as it stood, the other one with its first event.
		if len(seen[i]) < 2 || !slices.Equal(seen[i], want[len(want)-len(seen[i]):]) {
			t.Errorf("%s shows %q; the specification's stream %q", c.name, seen[i], want)
		}
	}
}
