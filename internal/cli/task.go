package cli

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

type taskCmd struct {
	Send   taskSendCmd   `cmd:"" help:"Send a task to an agent, or a further message on a task."`
	Get    taskGetCmd    `cmd:"" help:"Show a task that you sent."`
	Watch  taskWatchCmd  `cmd:"" help:"Follow a task that you sent until it ends or needs input."`
	Cancel taskCancelCmd `cmd:"" help:"Cancel a task that you sent."`
	List   taskListCmd   `cmd:"" help:"List the tasks of all senders to the agents of your org, newest first."`

	Push      taskPushCmd      `cmd:"" help:"Show where the events of a task, or of all tasks, are pushed to, and how far that is."`
	PushRetry taskPushRetryCmd `cmd:"" help:"Take up pushes that were given up."`
}

// Help is shown by parley task --help.
func (taskCmd) Help() string {
	return examples("parley task send scout 'Look at the failed deploy' --wait", "parley task watch scout cli-4k7…", "parley task list --state working")
}

const defaultWait = 30 * time.Second

// waitFlag is --wait, or --wait=DURATION.
type waitFlag struct{ limit time.Duration }

// IsBool makes the value optional.
func (*waitFlag) IsBool() bool { return true }

// Decode implements kong.MapperValue.
func (w *waitFlag) Decode(ctx *kong.DecodeContext) error {
	w.limit = defaultWait
	if ctx.Scan.Peek().Type != kong.FlagValueToken {
		return nil
	}
	s := ctx.Scan.Pop().String()
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 {
		return fmt.Errorf("%q is not a time to wait, such as 30s or 5m", s)
	}
	w.limit = d
	return nil
}

type taskSendCmd struct {
	serverFlags `embed:""`
	quietFlag   `embed:""`
	Agent       string   `arg:"" help:"Id of the agent."`
	Text        string   `arg:"" help:"What the agent is to do; @FILE reads a file, - or @- stdin."`
	ID          string   `help:"Id of the task; one that begins with cli- is made up if not given. The id of a live task sends a further message." placeholder:"ID"`
	Context     string   `help:"Id that groups tasks that belong together." placeholder:"ID"`
	Wait        waitFlag `help:"Wait until the task ends or needs input, for 30s or as long as --wait=DURATION says."`
	Stream      bool     `help:"Show progress as it comes: states on stderr, artifacts on stdout."`
}

const exitCodesHelp = "The exit code is then 0 if the task is completed, 3 if it failed or was rejected or canceled, and 4 if it needs input or is not over yet."

// Help is shown by --help.
func (taskSendCmd) Help() string {
	return "With --wait or --stream it stays until the task is over. " + exitCodesHelp +
		"\n\nWith --stream --json every event is a line of JSON.\n\n" + examples(
		"parley task send echo 'Are you there?' --wait",
		"parley task send scout @report.md --stream > answer.txt",
		"git diff | parley task send reviewer - --id ci-4711 --wait=10m --json",
	)
}

// newTaskID makes an id that says where the task came from.
func newTaskID() string { return "cli-" + strings.ToLower(rand.Text()[:16]) }

func (c *taskSendCmd) Run(e *env) error {
	cl, err := c.client(e)
	if err != nil {
		return err
	}
	text := c.Text
	if text == "-" {
		text = "@-"
	}
	if text, err = e.readText(text); err != nil {
		return err
	}
	if c.ID == "" {
		c.ID = newTaskID()
	}
	params := map[string]any{
		"id":      c.ID,
		"message": map[string]any{"role": "user", "parts": []any{map[string]string{"type": "text", "text": text}}},
	}
	if c.Context != "" {
		params["contextId"] = c.Context
	}
	ctx := e.ctx
	if c.Wait.limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(e.ctx, c.Wait.limit)
		defer cancel()
	}
	if c.Stream {
		first, err := rpcCall(c.Agent, "tasks/sendSubscribe", params, true)
		if err != nil {
			return err
		}
		return e.watch(ctx, &follower{cl: cl, agent: c.Agent, id: c.ID, open: first, show: e.shower(c.JSON)})
	}
	r, err := rpcCall(c.Agent, "tasks/send", params, true)
	if err != nil {
		return err
	}
	raw, err := c.sendAndWait(ctx, e, cl, r)
	if err != nil {
		return err
	}
	var t taskRecord
	if err := json.Unmarshal(raw, &t); err != nil {
		return err
	}
	switch {
	case c.JSON:
		err = e.printRaw(raw)
	case c.Quiet:
		_, err = fmt.Fprintln(e.stdout, cleanLine(t.ID))
	default:
		err = e.printTask(c.Agent, t)
	}
	if err != nil || c.Wait.limit == 0 {
		return err
	}
	return endOf(t.Status.State)
}

// longestPrefer is what the server is asked to wait; the rest is waited by a stream,
// which also survives a restart of the server.
const longestPrefer = 20 * time.Second

// sendAndWait sends the task and, with --wait, returns it as it is when the wait is over.
func (c *taskSendCmd) sendAndWait(ctx context.Context, e *env, cl *client, r call) (json.RawMessage, error) {
	if c.Wait.limit == 0 {
		return cl.rpc(ctx, r)
	}
	r.header = map[string]string{"Prefer": fmt.Sprintf("wait=%d", max(1, int(min(c.Wait.limit, longestPrefer)/time.Second)))}
	// The server answers in time by itself; a limit here would leave the outcome unknown.
	raw, err := cl.rpc(e.ctx, r)
	if err != nil {
		return nil, err
	}
	var t taskRecord
	if err := json.Unmarshal(raw, &t); err != nil || rests(t.Status.State) || ctx.Err() != nil {
		return raw, err
	}
	f := &follower{cl: cl, agent: c.Agent, id: c.ID, show: func(string, json.RawMessage, *taskUpdate) error { return nil }}
	if _, err := f.run(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return nil, err
	}
	return cl.getTask(e.ctx, c.Agent, c.ID, nil)
}

func (c *client) getTask(ctx context.Context, agent, id string, history *int) (json.RawMessage, error) {
	params := map[string]any{"id": id}
	if history != nil {
		params["historyLength"] = *history
	}
	r, err := rpcCall(agent, "tasks/get", params, true)
	if err != nil {
		return nil, err
	}
	return c.rpc(ctx, r)
}

// oneTask is a command about one task of one's own.
type oneTask struct {
	serverFlags `embed:""`
	Agent       string `arg:"" help:"Id of the agent."`
	ID          string `arg:"" help:"Id of the task."`
}

func (c *oneTask) print(e *env, raw json.RawMessage, err error) error {
	if err != nil || c.JSON {
		return e.rawOr(raw, err)
	}
	var t taskRecord
	if err := json.Unmarshal(raw, &t); err != nil {
		return err
	}
	return e.printTask(c.Agent, t)
}

type taskGetCmd struct {
	oneTask `embed:""`
	History *int `help:"Show the last N messages, too." placeholder:"N"`
}

// Help is shown by --help.
func (taskGetCmd) Help() string {
	return examples("parley task get scout cli-4k7…", "parley task get scout cli-4k7… --history 10 --json")
}

func (c *taskGetCmd) Run(e *env) error {
	cl, err := c.client(e)
	if err != nil {
		return err
	}
	raw, err := cl.getTask(e.ctx, c.Agent, c.ID, c.History)
	return c.print(e, raw, err)
}

type taskCancelCmd struct {
	oneTask `embed:""`
}

// Help is shown by --help.
func (taskCancelCmd) Help() string { return examples("parley task cancel scout cli-4k7…") }

func (c *taskCancelCmd) Run(e *env) error {
	cl, err := c.client(e)
	if err != nil {
		return err
	}
	r, err := rpcCall(c.Agent, "tasks/cancel", map[string]any{"id": c.ID}, false)
	if err != nil {
		return err
	}
	raw, err := cl.rpc(e.ctx, r)
	return c.print(e, raw, err)
}

type taskWatchCmd struct {
	oneTask `embed:""`
}

// Help is shown by --help.
func (taskWatchCmd) Help() string {
	return "It begins with the first event, and goes on where it was after a broken connection. " + exitCodesHelp + "\n\n" +
		examples("parley task watch scout cli-4k7…")
}

func (c *taskWatchCmd) Run(e *env) error {
	cl, err := c.client(e)
	if err != nil {
		return err
	}
	return e.watch(e.ctx, &follower{cl: cl, agent: c.Agent, id: c.ID, show: e.shower(c.JSON)})
}

type taskListCmd struct {
	serverFlags `embed:""`
	Agent       *string `help:"Only tasks to this agent." placeholder:"ID"`
	State       *string `help:"Only this state: submitted, working, input-required, auth-required, completed, failed, rejected or canceled." placeholder:"STATE"`
	Context     *string `help:"Only tasks of this context." placeholder:"ID"`
	Limit       *int    `help:"Results per page, at most 100." placeholder:"N"`
	Cursor      *string `help:"Continue where a list ended." placeholder:"CURSOR"`
}

// Help is shown by --help.
func (taskListCmd) Help() string {
	return "Needs the scope svc:admin:admin.\n\n" + examples("parley task list", "parley task list --agent scout --state working", "parley task list --json")
}

func (c *taskListCmd) Run(e *env) error {
	q := url.Values{}
	set(q, "agent", c.Agent)
	set(q, "state", c.State)
	set(q, "context_id", c.Context)
	set(q, "limit", c.Limit)
	set(q, "cursor", c.Cursor)
	var list struct {
		Tasks []struct {
			ID        string    `json:"id"`
			Agent     string    `json:"agent"`
			Sender    string    `json:"sender"`
			State     string    `json:"state"`
			Attempt   int       `json:"attempt"`
			CreatedAt time.Time `json:"created_at"`
			UpdatedAt time.Time `json:"updated_at"`
		} `json:"tasks"`
		Next *string `json:"next_cursor"`
	}
	if done, err := c.ask(e, call{method: http.MethodGet, path: "/a2a/tasks", query: q}, &list); done {
		return err
	}
	p := e.palette()
	t := table{
		head:   []string{"AGENT", "STATE", "SENDER", "CREATED (UTC)", "UPDATED (UTC)", "ID"},
		colour: map[int]func(string) string{1: p.status},
	}
	for _, r := range list.Tasks {
		t.add(r.Agent, r.State, r.Sender, when(r.CreatedAt), when(r.UpdatedAt), r.ID)
	}
	return e.pages(&t, "no tasks", list.Next)
}
