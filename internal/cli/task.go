package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/alecthomas/kong"

	"github.com/parley-dev/parley/internal/app"
	"github.com/parley-dev/parley/sdk/client"
)

type taskCmd struct {
	Send   taskSendCmd   `cmd:"" help:"Send a task to an agent, or a further message on a task."`
	Get    taskGetCmd    `cmd:"" help:"Show a task that you sent."`
	Watch  taskWatchCmd  `cmd:"" help:"Follow a task that you sent until it ends or needs input."`
	Cancel taskCancelCmd `cmd:"" help:"Cancel a task that you sent."`
	Rerun  taskRerunCmd  `cmd:"" help:"Send a task again that failed, was rejected or canceled."`
	List   taskListCmd   `cmd:"" help:"List the tasks of all senders to the agents of your org, newest first."`

	Push      taskPushCmd      `cmd:"" help:"Show the push configurations of a task, or of all tasks, and their progress."`
	PushRetry taskPushRetryCmd `cmd:"" help:"Retry pushes that were given up."`
}

// Help is shown by parley task --help.
func (taskCmd) Help() string {
	return examples("parley task send scout 'Look at the failed deploy' --wait", "parley task watch scout cli-4k7…",
		"parley task list --state working")
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
	d, err := parseDuration(s)
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
	ID          string   `help:"Id of the task; a new one if not given. That of a live task sends a further message." placeholder:"ID"`
	Parent      string   `help:"Uid or lease of the task that you work on as an agent; calls that go too deep are refused." placeholder:"UID"`
	Context     string   `help:"Id that groups tasks that belong together." placeholder:"ID"`
	Wait        waitFlag `help:"Wait until the task ends or needs input, for 30s or as long as --wait=DURATION says."`
	Stream      bool     `help:"Show progress as it comes: states on stderr, artifacts on stdout."`
	Deadline    string   `help:"Fail the task unless it is over by then: a duration such as 10m, or a time such as 2026-03-02T10:00:00Z." placeholder:"WHEN"`
	retryFlags  `embed:""`
}

const exitCodesHelp = "The exit code is then 0 if the task is completed, 3 if it failed or was rejected or canceled, " +
	"4 if it needs input or is not over yet, and 130 after Ctrl-C, which does not cancel the task."

// Help is shown by --help.
func (taskSendCmd) Help() string {
	return "With --wait or --stream it prints the task's id on stderr and stays until the task is over. " + exitCodesHelp +
		"\n\nWith --stream --json every event is a line of JSON.\n\n" + examples(
		"parley task send echo 'Are you there?' --wait",
		"parley task send scout @report.md --stream > result.txt",
		"git diff | parley task send reviewer - --id ci-4711 --wait=10m --json",
		"parley task send scout 'Look at the failed deploy' --deadline 10m --retries 3 --backoff 5s",
	)
}

// about names the task and its agent in errors.
func (c *taskSendCmd) about() subject { return subject{kind: "task", id: &c.ID, agent: c.Agent} }

func (c *taskSendCmd) Run(e *env) error {
	r, err := c.client(e)
	if err != nil {
		return err
	}
	if err := r.checkOrg(e); err != nil {
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
		c.ID = client.NewTaskID("cli-")
	}
	message := client.SendParams{ID: c.ID, ContextID: c.Context, Message: client.NewMessage(client.Text(text))}
	if message.Policy, err = c.policy(c.Deadline); err != nil {
		return err
	}
	ctx := e.ctx
	if c.Wait.limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(e.ctx, c.Wait.limit)
		defer cancel()
	}
	agent := r.Agent(c.Agent).During(c.Parent)
	if c.Stream || c.Wait.limit > 0 {
		e.announce(ctx, r, c.Agent, c.ID)
	}
	if e.sending = true; e.ctx.Err() != nil {
		e.lost = nil
		return e.notSent()
	}
	if c.Stream {
		return e.watch(ctx, r, c.about(), agent.Stream(ctx, message), e.shower(c.JSON))
	}
	var res client.Response
	t, err := c.sendAndWait(ctx, e, agent, message, client.WithResponse(&res))
	if errors.Is(err, context.DeadlineExceeded) && e.ctx.Err() == nil {
		err = e.noResponse(r, c.about(), c.Wait.limit)
	}
	if err != nil {
		return e.interrupted(c.about(), r.explain(e, c.about(), err))
	}
	switch {
	case c.JSON:
		err = e.printRaw(res.Body)
	case c.Quiet:
		_, err = fmt.Fprintln(e.stdout, cleanLine(t.ID))
	default:
		err = e.printTask(c.Agent, t)
	}
	if err != nil || c.Wait.limit == 0 {
		return err
	}
	if !t.Status.State.Rests() {
		e.notOver(c.about())
	}
	return endOf(t.Status.State)
}

// announce prints the id of a task before the command waits for it, so that the task can
// be followed after an interruption, and warns that no worker may take it.
func (e *env) announce(ctx context.Context, r *remote, agent, id string) {
	e.notice(fmt.Sprintf("sending task %s to agent %s", cleanLine(id), cleanLine(agent)))
	// One page only: the warning is not worth more requests.
	card, err := r.PlatformCard(ctx, client.PlatformCardParams{}, client.WithoutRetry())
	if err != nil {
		return // the request that follows fails, too, and says why
	}
	for _, a := range card.Agents {
		if a.ID == agent && a.Status == client.AgentOffline {
			e.notice(fmt.Sprintf("no worker is connected for agent %s; the task waits until one is", agent))
		}
	}
}

// interrupted prints how to follow a task if the user ended the command.
func (e *env) interrupted(s subject, err error) error {
	if e.ctx.Err() == nil {
		return err
	}
	if e.unsent() {
		return e.notSent()
	}
	e.notice("interrupted; the task goes on. Follow it with: " + e.watchCommand(s))
	return taskEnd(exitInterrupted)
}

// unsent reports that the task certainly did not reach the server.
func (e *env) unsent() bool {
	var lost *client.ConnectionError
	return e.sending && errors.As(e.lost, &lost) && lost.NotSent()
}

// notSent ends a command that the user ended before it sent the task.
func (e *env) notSent() error {
	e.notice("interrupted; nothing was sent")
	return taskEnd(exitInterrupted)
}

// noResponse returns the error for a task whose wait ended before the server responded.
func (e *env) noResponse(r *remote, s subject, limit time.Duration) error {
	if e.unsent() {
		return e.lost
	}
	return fmt.Errorf("no response from %s within %s; the task may have been sent: %s", r.Server, limit, e.watchCommand(s))
}

// notOver prints how to follow a task that did not end in time.
func (e *env) notOver(s subject) {
	e.notice("the task is not over yet; follow it with: " + e.watchCommand(s))
}

// watchCommand returns the command that follows a task.
func (e *env) watchCommand(s subject) string {
	return "parley task watch " + app.ShellQuote(s.agent) + " " + app.ShellQuote(*s.id) + e.again("server", "org")
}

// longestPrefer is how long the server is asked to wait. The command waits for the rest on
// a stream, which also survives a restart of the server.
const longestPrefer = 20 * time.Second

// sendAndWait sends the task and, with --wait, returns its state at the end of the wait.
func (c *taskSendCmd) sendAndWait(
	ctx context.Context, e *env, agent *client.AgentClient, message client.SendParams, raw client.Option,
) (*client.Task, error) {
	message.Wait = min(c.Wait.limit, longestPrefer)
	sendCtx := e.ctx
	if c.Wait.limit > 0 {
		// The server responds in time by itself, so the deadline ends only retries and a server
		// that does not.
		var cancel context.CancelFunc
		sendCtx, cancel = context.WithTimeout(e.ctx, c.Wait.limit+time.Second)
		defer cancel()
	}
	t, err := agent.Send(sendCtx, message, raw)
	e.sending = e.sending && err != nil
	if err != nil || c.Wait.limit == 0 || t.Status.State.Rests() || ctx.Err() != nil {
		return t, err
	}
	for _, err := range agent.Subscribe(ctx, c.ID, client.SubscribeParams{}) {
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return nil, err
		}
	}
	return getTask(e.ctx, agent, c.ID, nil, raw)
}

// getTask gets a task in the specification's dialect, which is what --json shows.
func getTask(
	ctx context.Context, agent *client.AgentClient, id string, history *int, raw client.Option,
) (*client.Task, error) {
	params := map[string]any{"id": id}
	if history != nil {
		params["historyLength"] = *history
	}
	return callTask(ctx, agent, "tasks/get", params, client.WithRepeat(), raw)
}

// callTask calls a method that returns a task.
func callTask(
	ctx context.Context, agent *client.AgentClient, method string, params any, opts ...client.Option,
) (*client.Task, error) {
	result, err := agent.Call(ctx, method, params, opts...)
	if err != nil {
		return nil, err
	}
	t := &client.Task{}
	return t, json.Unmarshal(result, t)
}

// oneTask is part of commands about a task that the caller sent.
type oneTask struct {
	serverFlags `embed:""`
	Agent       string `arg:"" help:"Id of the agent."`
	ID          string `arg:"" help:"Id of the task."`
}

// about names the task and its agent in errors.
func (c *oneTask) about() subject { return subject{kind: "task", id: &c.ID, agent: c.Agent} }

// print makes a call that returns a task, and prints it.
func (c *oneTask) print(e *env, do func(*client.AgentClient, client.Option) (*client.Task, error)) error {
	r, err := c.client(e)
	if err != nil {
		return err
	}
	if err := r.checkOrg(e); err != nil {
		return err
	}
	t, done, err := askAt(e, r, c.JSON, c.about(),
		func(api *client.Client, raw client.Option) (*client.Task, error) {
			return do(api.Agent(c.Agent), raw)
		})
	if done {
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
	return c.print(e, func(a *client.AgentClient, raw client.Option) (*client.Task, error) {
		return getTask(e.ctx, a, c.ID, c.History, raw)
	})
}

type taskCancelCmd struct {
	oneTask `embed:""`
}

// Help is shown by --help.
func (taskCancelCmd) Help() string { return examples("parley task cancel scout cli-4k7…") }

func (c *taskCancelCmd) Run(e *env) error {
	return c.print(e, func(a *client.AgentClient, raw client.Option) (*client.Task, error) {
		return callTask(e.ctx, a, "tasks/cancel", map[string]any{"id": c.ID}, raw)
	})
}

type taskWatchCmd struct {
	oneTask `embed:""`
}

// Help is shown by --help.
func (taskWatchCmd) Help() string {
	return "It begins with the first event, and continues after a broken connection. " + exitCodesHelp + "\n\n" +
		examples("parley task watch scout cli-4k7…")
}

func (c *taskWatchCmd) Run(e *env) error {
	r, err := c.client(e)
	if err != nil {
		return err
	}
	if err := r.checkOrg(e); err != nil {
		return err
	}
	events := r.Agent(c.Agent).Subscribe(e.ctx, c.ID, client.SubscribeParams{})
	return e.watch(e.ctx, r, c.about(), events, e.shower(c.JSON))
}

type taskListCmd struct {
	serverFlags `embed:""`
	cursorFlags `embed:""`
	Agent       *string `help:"Only tasks to this agent." placeholder:"ID"`
	State       *string `help:"Only this state: ${task_states}." placeholder:"STATE"`
	Context     *string `help:"Only tasks of this context." placeholder:"ID"`
}

// Help is shown by --help.
func (taskListCmd) Help() string {
	return needsAdmin +
		examples("parley task list", "parley task list --agent scout --state working", "parley task list --json")
}

func (c *taskListCmd) Run(e *env) error {
	q := c.query()
	set(q, "agent", c.Agent)
	set(q, "state", c.State)
	set(q, "context_id", c.Context)
	list, done, err := ask(e, &c.serverFlags, aboutOrg,
		func(api *client.Client, raw client.Option) (*client.Page[client.OrgTask], error) {
			return api.OrgTasks.List(e.ctx, client.OrgTaskListParams{}, client.WithQuery(q), raw)
		})
	if done {
		return err
	}
	t := table{
		head:   []string{"AGENT", "STATE", "SENDER", "CREATED (UTC)", "UPDATED (UTC)", "ID"},
		colour: map[int]func(string) string{1: e.palette().status},
		drop:   []string{"UPDATED (UTC)", "CREATED (UTC)", "SENDER"},
		whole:  true, // senders choose the id, so commands need all of it
		wide:   c.Wide,
	}
	for _, r := range list.Items {
		t.add(r.Agent, string(r.State), r.Sender.String(), when(r.CreatedAt), when(r.UpdatedAt), r.ID)
	}
	return e.pages(&t, "no tasks", list.Next)
}
