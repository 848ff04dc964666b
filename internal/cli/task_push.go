package cli

import (
	"fmt"

	"github.com/parley-dev/parley/sdk/client"
)

type taskPushCmd struct {
	serverFlags `embed:""`
	cursorFlags `embed:""`
	UID         string  `arg:"" optional:"" help:"Uid of the task, which task list --json shows; all tasks if not given."`
	State       *string `help:"Without UID: only this state: active, done or dead." placeholder:"STATE"`
}

// Help is shown by --help.
func (taskPushCmd) Help() string {
	return "A push configuration is dead when its receiver could not be reached for too long; task push-retry tries " +
		"again. --limit and --cursor are for the list of all tasks. " + needsAdmin + examples(
		"parley task push 01k5xb7d2n8f4j6s0a9g3r5w1c",
		"parley task push --state dead",
		"parley task push --state dead --json",
	)
}

func (c *taskPushCmd) Run(e *env) error {
	q := c.query()
	set(q, "state", c.State)
	s := aboutOrg
	if c.UID != "" {
		s = about("task", &c.UID)
	}
	if c.UID != "" && len(q) > 0 {
		return usage("--state, --limit and --cursor are for the list of all tasks: leave them or UID out")
	}
	list, done, err := ask(e, &c.serverFlags, s,
		func(api *client.Client, raw client.Option) (*client.Page[client.PushState], error) {
			if c.UID == "" {
				return api.OrgTasks.Pushes(e.ctx, client.PushListParams{}, client.WithQuery(q), raw)
			}
			configs, err := api.OrgTasks.TaskPushes(e.ctx, c.UID, raw)
			return &client.Page[client.PushState]{Items: configs}, err
		})
	if done {
		return err
	}
	t := table{
		head:   []string{"TASK", "CONFIG", "STATE", "EVENTS", "FAILED", "NEXT (UTC)", "RECEIVER", "LAST ERROR"},
		colour: map[int]func(string) string{2: e.palette().status},
		drop:   []string{"NEXT (UTC)", "FAILED", "EVENTS"},
		wide:   c.Wide,
	}
	for _, r := range list.Items {
		next := "-"
		if !r.DueAt.IsZero() {
			next = when(r.DueAt)
		}
		t.add(r.TaskUID, r.ID, r.State, fmt.Sprintf("%d of %d", r.Cursor, r.LastEvent), fmt.Sprint(r.Attempts),
			next, r.Receiver, r.LastError)
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
	return "It continues with the event that could not be delivered. " + needsAdmin +
		examples("parley task push-retry 01k5xb7d2n8f4j6s0a9g3r5w1c push-01k5…")
}

func (c *taskPushRetryCmd) Run(e *env) error {
	which := c.ID + " of task " + c.UID
	r, done, err := ask(e, &c.serverFlags, about("push configuration", &which),
		func(api *client.Client, raw client.Option) (*client.PushState, error) {
			return api.OrgTasks.RetryPush(e.ctx, c.UID, c.ID, raw)
		})
	if done {
		return err
	}
	return e.say("push configuration %q of task %q is %s again; it continues after event %d",
		r.ID, c.UID, r.State, r.Cursor)
}
