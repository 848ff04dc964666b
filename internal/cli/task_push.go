package cli

import (
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// pushRecord is what this program reads of a push configuration.
type pushRecord struct {
	ID        string     `json:"id"`
	TaskUID   string     `json:"task_uid"`
	Receiver  string     `json:"receiver"`
	State     string     `json:"state"`
	Cursor    int64      `json:"cursor"`
	LastEvent int64      `json:"last_event"`
	Attempts  int        `json:"attempts"`
	LastError *string    `json:"last_error"`
	DueAt     *time.Time `json:"due_at"`
}

type taskPushCmd struct {
	serverFlags `embed:""`
	UID         string  `arg:"" optional:"" help:"Uid of the task, as --json of task list shows it; all tasks if not given."`
	State       *string `help:"Without UID: only this state: active, done or dead." placeholder:"STATE"`
	Limit       *int    `help:"Without UID: results per page, at most 100." placeholder:"N"`
	Cursor      *string `help:"Without UID: continue where a list ended." placeholder:"CURSOR"`
}

// Help is shown by --help.
func (taskPushCmd) Help() string {
	return "A push configuration is dead when its receiver could not be reached for too long; task push-retry takes it up again. " +
		"Needs the scope svc:admin:admin.\n\n" +
		examples("parley task push 01k5xb7d2n8f4j6s0a9g3r5w1c", "parley task push --state dead", "parley task push --state dead --json")
}

func (c *taskPushCmd) Run(e *env) error {
	path, q := "/a2a/push", url.Values{}
	set(q, "state", c.State)
	set(q, "limit", c.Limit)
	set(q, "cursor", c.Cursor)
	if c.UID != "" {
		if len(q) > 0 {
			return usage("--state, --limit and --cursor are for the list of all tasks: leave them or UID out")
		}
		path = "/a2a/tasks/" + url.PathEscape(c.UID) + "/push"
	}
	var list struct {
		Configs []pushRecord `json:"configs"`
		Next    *string      `json:"next_cursor"`
	}
	if done, err := c.ask(e, call{method: http.MethodGet, path: path, query: q}, &list); done {
		return err
	}
	p := e.palette()
	t := table{
		head:   []string{"TASK", "ID", "STATE", "EVENTS", "FAILED", "NEXT (UTC)", "RECEIVER", "LAST ERROR"},
		colour: map[int]func(string) string{2: p.status},
	}
	for _, r := range list.Configs {
		next, why := "-", ""
		if r.DueAt != nil {
			next = when(*r.DueAt)
		}
		if r.LastError != nil {
			why = *r.LastError
		}
		t.add(r.TaskUID, r.ID, r.State, fmt.Sprintf("%d of %d", r.Cursor, r.LastEvent), fmt.Sprint(r.Attempts), next, r.Receiver, why)
	}
	return e.pages(&t, "no push configurations", list.Next)
}

type taskPushRetryCmd struct {
	serverFlags `embed:""`
	UID         string `arg:"" help:"Uid of the task."`
	ID          string `arg:"" help:"Id of the push configuration."`
}

// Help is shown by --help.
func (taskPushRetryCmd) Help() string {
	return "It goes on with the event that could not be delivered. Needs the scope svc:admin:admin.\n\n" +
		examples("parley task push-retry 01k5xb7d2n8f4j6s0a9g3r5w1c push-01k5…")
}

func (c *taskPushRetryCmd) Run(e *env) error {
	var r pushRecord
	if done, err := c.ask(e, call{
		method: http.MethodPost, path: "/a2a/tasks/" + url.PathEscape(c.UID) + "/push/" + url.PathEscape(c.ID) + "/retry",
	}, &r); done {
		return err
	}
	_, err := fmt.Fprintf(e.stdout, "%s is %s again; it goes on after event %d.\n", cleanLine(r.ID), cleanLine(r.State), r.Cursor)
	return err
}
