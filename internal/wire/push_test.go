package wire

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/task"
)

func pushed(p task.PushConfig) (map[string]string, []byte) {
	at := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	t := task.Task{
		UID: "01k", ID: "t-1", ContextID: "ctx-1", State: task.Working, UpdatedAt: at,
		History: []task.Message{{Role: task.RoleUser, Parts: []task.Part{{Kind: task.TextPart, Text: "hello"}}}},
	}
	return Push(&p, &t, &task.Event{Seq: 3, At: at, Kind: task.StatusEvent, State: task.Working})
}

func TestForm10PushesTheEvent(t *testing.T) {
	t.Parallel()
	header, body := pushed(task.PushConfig{Form: task.PushV1, Token: "a token"})
	want := map[string]string{"Content-Type": "application/a2a+json", "X-A2A-Notification-Token": "a token"}
	if diff := cmp.Diff(want, header); diff != "" {
		t.Errorf("header (-want +got):\n%s", diff)
	}
	var event struct {
		StatusUpdate struct {
			TaskID string `json:"taskId"`
			Status struct{ State string }
		} `json:"statusUpdate"`
	}
	err := json.Unmarshal(body, &event)
	if err != nil || event.StatusUpdate.TaskID != "t-1" || event.StatusUpdate.Status.State != "TASK_STATE_WORKING" {
		t.Errorf("got %s, %v, want the status of t-1", body, err)
	}
}

func TestForm03PushesTheWholeTask(t *testing.T) {
	t.Parallel()
	header, body := pushed(task.PushConfig{Form: task.PushV03})
	if diff := cmp.Diff(map[string]string{"Content-Type": "application/json"}, header); diff != "" {
		t.Errorf("header (-want +got):\n%s", diff)
	}
	var whole struct {
		ID, Kind string
		History  []json.RawMessage
	}
	err := json.Unmarshal(body, &whole)
	if err != nil || whole.ID != "t-1" || whole.Kind != "task" || len(whole.History) != 1 {
		t.Errorf("got %s, %v, want the task t-1", body, err)
	}
}
