package rest

import (
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/parley-dev/parley/internal/delivery"
	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/task"
)

// PushConfig is where the events of a task are pushed to, and how far that is. Who
// reads it need not be who set it: there is no token, no credentials and no path,
// which is often a secret, too.
type PushConfig struct {
	ID            string  `json:"id" doc:"The sender's id of the configuration." example:"push-01k5xb7d2n8f4j6s0a9g3r5w1c"`
	TaskUID       string  `json:"task_uid" doc:"The platform's own id of the task." example:"01k5xb7d2n8f4j6s0a9g3r5w1c"`
	TaskID        string  `json:"task_id" doc:"The sender's id of the task." example:"crm-4711"`
	Receiver      string  `json:"receiver" doc:"Where to, without the path." example:"https://crm.example"`
	Form          string  `json:"form" doc:"The version of A2A whose form is pushed." example:"1.0"`
	State         string  `json:"state" doc:"active; done: the task is over and the receiver knows; dead: given up." example:"dead"`
	Cursor        int64   `json:"cursor" doc:"The number of the last event that the receiver has." example:"3"`
	LastEvent     int64   `json:"last_event" doc:"The number of the task's last event." example:"5"`
	Attempts      int     `json:"attempts" doc:"Failed attempts to push the event after the cursor." example:"12"`
	LastError     *string `json:"last_error" doc:"Why the last attempt failed; null if it did not." example:"the receiver answered 500"`
	LastAttemptAt *string `json:"last_attempt_at" format:"date-time" doc:"When something was last pushed; null if nothing was." example:"2026-03-02T10:00:00.000000Z"`
	DueAt         *string `json:"due_at" format:"date-time" doc:"When something is pushed next; null if there is nothing to push." example:"2026-03-02T10:10:00.000000Z"`
	CreatedAt     string  `json:"created_at" format:"date-time" doc:"When it was set." example:"2026-03-02T10:00:00.000000Z"`
}

// TransformSchema takes the lists from the domain.
func (PushConfig) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "state", oneOf(delivery.States))
	property(s, "form", oneOf([]task.PushForm{task.PushV1, task.PushV03}))
	return s
}

// PushConfigList is the push configurations of one task.
type PushConfigList struct {
	Configs []PushConfig `json:"configs" nullable:"false" doc:"All of them, by id."`
}

// PushConfigPage is one page of push configurations.
type PushConfigPage struct {
	Configs    []PushConfig `json:"configs" nullable:"false" doc:"The page, newest task first; empty past the end."`
	NextCursor *string      `json:"next_cursor" doc:"Continues the list as the parameter cursor; null on the last page."`
}

func pushConfigsOf(list []dispatch.Push) []PushConfig {
	out := make([]PushConfig, len(list))
	for i := range list {
		out[i] = pushConfigOf(&list[i])
	}
	return out
}

func pushConfigOf(p *dispatch.Push) PushConfig {
	return PushConfig{
		ID: p.ID, TaskUID: p.UID, TaskID: p.TaskID, Receiver: p.Receiver(), Form: string(p.Form), State: string(p.State),
		Cursor: p.Cursor, LastEvent: p.Head, Attempts: p.Attempts, LastError: orNull(p.LastError),
		LastAttemptAt: stampOrNull(p.LastAttemptAt), DueAt: stampOrNull(p.DueAt), CreatedAt: stamp(p.CreatedAt),
	}
}

func stampOrNull(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	s := stamp(t)
	return &s
}
