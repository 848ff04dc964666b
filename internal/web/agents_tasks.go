package web

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/task"
)

// taskRow is one of the member's tasks for an agent.
type taskRow struct {
	ID, Href  string
	State     task.State
	UpdatedAt time.Time
}

// Tone returns the style of the state.
func (r taskRow) Tone() string { return stateTone(r.State) }

func stateTone(s task.State) string {
	switch s {
	case task.Completed:
		return "ok"
	case task.Failed, task.Rejected:
		return "high"
	case task.InputRequired, task.AuthRequired:
		return "warn"
	case task.Canceled:
		return ""
	}
	return "busy"
}

const shownTasks = 10

func (v *visit) taskPath(agentID, id string) string {
	return v.agentPath(agentID) + "/tasks/" + url.PathEscape(id)
}

// ownTasks returns the member's latest tasks for an agent.
func (v *visit) ownTasks(id string) ([]taskRow, error) {
	ctx := v.r.Context()
	call, err := v.Tasks.Reach(ctx, v.caller, id)
	if err != nil {
		return nil, err
	}
	own, err := v.Tasks.Own(ctx, call, dispatch.OwnRequest{Limit: shownTasks})
	if err != nil {
		return nil, err
	}
	out := make([]taskRow, len(own.Tasks))
	for i := range own.Tasks {
		t := &own.Tasks[i]
		out[i] = taskRow{ID: t.ID, Href: v.taskPath(id, t.ID), State: t.State, UpdatedAt: t.UpdatedAt}
	}
	return out, nil
}

// message returns the entered text as a message to an agent.
func (v *visit) message() (task.Message, error) {
	text := v.text("message")
	if text == "" {
		return task.Message{}, errs.InvalidFields(errs.Field{
			Path:    errs.At("message"),
			Message: "must not be empty",
		})
	}
	return task.Message{Role: task.RoleUser, Parts: []task.Part{{Kind: task.TextPart, Text: text}}}, nil
}

// sendTask sends a message to an agent as a new task. The task id is derived from the token of the
// form, so that a form that is sent twice creates one task.
func (v *visit) sendTask() error {
	id := v.agentID()
	call, err := v.Tasks.Reach(v.r.Context(), v.caller, id)
	if err != nil {
		return err
	}
	m, err := v.message()
	var t task.Task
	if err == nil {
		t, err = v.sendNew(call, m)
	}
	if err != nil {
		return v.showAgent(agentExtras{Message: v.text("message")}, err)
	}
	return v.done(v.taskPath(id, t.ID), "The task was sent.")
}

// sendNew sends a message as the task of this form. If the task exists, the form was sent before:
// sending the message again could answer a question of the agent.
func (v *visit) sendNew(call dispatch.Call, m task.Message) (task.Task, error) {
	ctx, id := v.r.Context(), v.newTaskID()
	t, err := v.Tasks.Get(ctx, call, id, task.Content{})
	if errs.KindOf(err) != errs.NotFound {
		return t, err
	}
	return v.Tasks.Send(ctx, call, dispatch.SendRequest{ID: id, Message: m}, 0)
}

// newTaskID returns the id of the task that this form sends.
func (v *visit) newTaskID() string {
	sum := sha256.Sum256([]byte(v.member.Ref() + " " + cmp.Or(v.r.PostFormValue(onceField), rand.Text())))
	return "web-" + hex.EncodeToString(sum[:10])
}

// taskView is the page of a task.
type taskView struct {
	task.Task
	Agent, AgentName, AgentHref string
	Href                        string
	Said                        []spoken // conversation
	Outputs                     []outputView
	MoreOutputs                 int64 // that are left out
	TooLarge                    bool
	Waits                       bool // the task may change by itself
	Interrupt                   bool // the agent waits for the member
	Over                        bool
	NoWorker                    bool // no worker is connected
	IsRelay                     bool // a remote agent does the work
	Message                     string
	Curl                        string // command that sends the first message; empty if it is too large
	MayResend                   bool
	Timeline                    string // page with the attempts, for members who may read it
}

// Tone returns the style of the state.
func (t *taskView) Tone() string { return stateTone(t.State) }

// spoken is a message of the conversation.
type spoken struct {
	Mine  bool
	Parts []outputPart
}

const (
	maxTaskSize = 4 << 20 // largest task, in bytes, whose content the page reads
	maxMessages = 50
)

func (v *visit) taskPage() error { return v.showTask("", nil) }

// showTask shows a task of the member with its state and results.
func (v *visit) showTask(typed string, problem error) error {
	view, err := v.taskView()
	if err != nil {
		return err
	}
	view.Message = typed
	return renderForm(v, http.StatusOK, "agent_task", "Task for "+view.AgentName, view, problem)
}

// taskView reads the task in the URL.
func (v *visit) taskView() (*taskView, error) {
	ctx, id := v.r.Context(), v.agentID()
	call, err := v.Tasks.Reach(ctx, v.caller, id)
	if err != nil {
		return nil, err
	}
	t, err := v.Tasks.Get(ctx, call, v.r.PathValue("task"), task.Content{})
	if err != nil {
		return nil, err
	}
	large := t.Size > maxTaskSize
	if !large {
		content := task.Content{History: true, Artifacts: true, Clip: maxOutputText}
		if t, err = v.Tasks.Get(ctx, call, t.ID, content); err != nil {
			return nil, err
		}
	}
	view := &taskView{
		Agent: id, AgentName: id, AgentHref: v.agentPath(id), Href: v.taskPath(id, t.ID), Task: t, TooLarge: large,
		Waits: !t.State.Rests(), Interrupt: t.State.Interrupted(), Over: t.State.Terminal(),
	}
	if a, err := v.access(identity.ReadAgents); err == nil {
		if g, err := v.Agents.Get(ctx, a, id); err == nil {
			view.AgentName, view.IsRelay = g.Name, g.Builtin == agent.Relayed
		}
	}
	if t.State == task.Submitted {
		view.NoWorker = !v.Tasks.Expected(ctx, call)
		if view.IsRelay { // the server runs it, also while the remote agent is down
			presence, err := v.Workers.Presence(ctx, task.AgentKey{Org: t.Org, ID: id})
			view.NoWorker = err == nil && presence == dispatch.Offline
		}
	}
	if v.may(identity.ReadTasks) && t.Org == v.member.Org {
		view.Timeline = v.orgTaskPath(t.UID)
	}
	view.fill(&t)
	if !large && len(t.History) > 0 {
		view.MayResend, view.Curl = true, v.curl(id, &t.History[0])
	}
	return view, nil
}

func (view *taskView) fill(t *task.Task) {
	if view.TooLarge {
		return
	}
	view.Said = conversation(t)
	view.Outputs, view.MoreOutputs = newOutputs(t.Artifacts, view.Href+"/outputs/"), moreOutputs(t.Artifacts)
}

// conversation returns the last messages about a task.
func conversation(t *task.Task) []spoken {
	var out []spoken
	room := maxOutputAll
	history := t.History[max(0, len(t.History)-maxMessages):]
	for i := range history {
		out = append(out, spoken{
			Mine:  history[i].Role == task.RoleUser,
			Parts: newOutputParts(history[i].Parts, "", &room),
		})
	}
	return out
}

// taskOutput sends a part of an artifact of the member's task as a download.
func (v *visit) taskOutput() error {
	ctx := v.r.Context()
	call, err := v.Tasks.Reach(ctx, v.caller, v.agentID())
	if err != nil {
		return err
	}
	return v.sendOutput(func(number int) (task.Artifact, error) {
		return v.Tasks.Artifact(ctx, call, v.r.PathValue("task"), number)
	})
}

// replyToTask sends a further message on a task.
func (v *visit) replyToTask() error {
	ctx, id, taskID := v.r.Context(), v.agentID(), v.r.PathValue("task")
	call, err := v.Tasks.Reach(ctx, v.caller, id)
	if err != nil {
		return err
	}
	m, err := v.message()
	if err == nil {
		m.ID = v.newTaskID() // of the message, so that sending it again changes nothing
		err = v.reply(call, taskID, m)
	}
	if err != nil {
		return v.showTask(v.text("message"), err)
	}
	return v.done(v.taskPath(id, taskID), "Your reply was sent.")
}

var errOtherQuestion = errs.New(errs.Conflict, "task.other_question",
	"the agent has asked something else since this page was shown; read it below and reply to that")

// reply sends a message in reply to the question that the page of the form showed. A later question
// is not answered by it.
func (v *visit) reply(call dispatch.Call, id string, m task.Message) error {
	ctx := v.r.Context()
	t, err := v.Tasks.Get(ctx, call, id, task.Content{})
	if err != nil {
		return err
	}
	asked := v.value("question")
	if asked == "" || !t.State.Interrupted() || asked == strconv.FormatInt(t.StatusSeq, 10) {
		_, err = v.Tasks.Send(ctx, call, dispatch.SendRequest{ID: id, Message: m, MustExist: true}, 0)
		return err
	}
	if t, err = v.ownTask(call); err != nil {
		return err
	}
	if slices.ContainsFunc(t.History, func(said task.Message) bool { return said.ID == m.ID }) {
		return nil // the form was sent before
	}
	return errOtherQuestion
}

// cancelTask cancels a task of the member.
func (v *visit) cancelTask() error {
	ctx, id, taskID := v.r.Context(), v.agentID(), v.r.PathValue("task")
	call, err := v.Tasks.Reach(ctx, v.caller, id)
	if err != nil {
		return err
	}
	said := "The task was canceled."
	if _, err := v.Tasks.Cancel(ctx, call, taskID, task.Content{}); err != nil {
		if errs.As(err).Code != task.CodeNotCancelable {
			return err
		}
		said = refusal("The task is over already.")
	}
	return v.done(v.taskPath(id, taskID), said)
}
