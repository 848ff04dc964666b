package rest

import (
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/parley-dev/parley/internal/delivery"
	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/task"
)

// PushConfig is a push configuration with its progress. The reader is not necessarily the sender
// who set it, so it contains no token, no credentials and no path, which is often secret too.
type PushConfig struct {
	ID            string  `json:"id" doc:"The sender's id of the configuration." example:"push-01k5xb7d2n8f4j6s0a9g3r5w1c"`
	TaskUID       string  `json:"task_uid" doc:"Task uid, assigned by the platform." example:"01k5xb7d2n8f4j6s0a9g3r5w1c"`
	TaskID        string  `json:"task_id" doc:"The sender's id of the task." example:"crm-4711"`
	Receiver      string  `json:"receiver" doc:"URL of the receiver without its path." example:"https://crm.example"`
	Form          string  `json:"form" doc:"A2A version of the pushed events." example:"1.0"`
	State         string  `json:"state" doc:"active; done: the last event was delivered; dead: given up." example:"dead"`
	Cursor        int64   `json:"cursor" doc:"Number of the last delivered event." example:"3"`
	LastEvent     int64   `json:"last_event" doc:"Number of the task's last event." example:"5"`
	Attempts      int     `json:"attempts" doc:"Failed attempts to push the event after the cursor." example:"12"`
	LastError     *string `json:"last_error" doc:"Why the last attempt failed; null if it succeeded." example:"the receiver responded with 500"`
	LastAttemptAt *string `json:"last_attempt_at" format:"date-time" doc:"When the last attempt was made; null before."`
	DueAt         *string `json:"due_at" format:"date-time" doc:"When the next attempt is due; null if there is nothing to push."`
	CreatedAt     string  `json:"created_at" format:"date-time" doc:"When it was set."`
}

// TransformSchema adds the enumerations of the domain.
func (PushConfig) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "state", oneOf(delivery.States))
	property(s, "form", oneOf([]task.PushForm{task.PushV1, task.PushV03}))
	return s
}

// PushConfigList lists the push configurations of a task.
type PushConfigList struct {
	Configs []PushConfig `json:"configs" nullable:"false" doc:"All configurations, sorted by id."`
}

// PushConfigPage is a page of push configurations.
type PushConfigPage struct {
	Configs    []PushConfig `json:"configs" nullable:"false" doc:"Configurations, newest task first; empty past the end."`
	NextCursor *string      `json:"next_cursor" doc:"Cursor of the next page; null on the last page."`
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
