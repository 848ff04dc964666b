package web

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/task"
)

// orgTaskView is the page of a task of one of the org's agents, with its attempts.
type orgTaskView struct {
	orgTaskRow
	Said        []spoken // conversation
	Outputs     []outputView
	MoreOutputs int64 // that are left out
	TooLarge    bool
	Attempts    []attemptRow
	Cut         bool // earlier attempts are not shown
	Pushes      []deliveryRow
	MayRetry    bool
	Console     string // page of the task for its sender, if that is the member
	Followup    string // page of the follow-up; empty if there is none
	Waits       bool   // the task is not over
	LeaseEnds   time.Time

	MaxAttempts int
	Deadline    time.Time // zero: none
	NextAttempt time.Time // when the task that waits to be tried again is queued; zero: it does not wait
	Again       bool      // the member may send the task again
}

// attemptRow is an attempt in words.
type attemptRow struct {
	task.Attempt
	Order    int    // of the attempts of the task, from 1; 0: unknown
	How      string // how it ended
	Tone     string
	Waited   string // how long the task had waited for a worker; may be unknown
	Duration string
}

// Counts reports whether the attempt is one of those that the policy of the task limits: its worker was
// lost or failed.
func (r attemptRow) Counts() bool { return r.Ended == task.LeaseExpired || r.Ended == task.LeaseFailed }

// orgTaskPage shows a task with its timeline.
func (v *visit) orgTaskPage() error {
	a, err := v.access(identity.ReadTasks)
	if err != nil {
		return err
	}
	t, large, err := v.orgTask(a, task.Content{History: true, Artifacts: true, Clip: maxOutputText})
	if err != nil {
		return err
	}
	view := orgTaskView{
		orgTaskRow: v.orgTaskRow(&t), TooLarge: large, Waits: !t.State.Terminal(), LeaseEnds: t.Lease.ExpiresAt,
		MayRetry: v.may(identity.ManageAgents), MaxAttempts: t.Policy.Retries().Attempts,
		Deadline: t.Policy.Deadline,
	}
	view.Again = view.MayRetry && slices.Contains(task.Rerunnable, t.State)
	if !t.WakeAt.Equal(t.Policy.Deadline) {
		view.NextAttempt = t.WakeAt
	}
	if t.Sender == v.member.Principal {
		view.Console = v.taskPath(t.Agent, t.ID)
	}
	if t.FollowupID != "" {
		view.Followup = v.base() + "/followups/" + t.FollowupID
	}
	if !large {
		view.Said = conversation(&t)
		view.Outputs, view.MoreOutputs = newOutputs(t.Artifacts, view.Href+"/outputs/"), moreOutputs(t.Artifacts)
	}
	if err := v.addAttempts(a, &view); err != nil {
		return err
	}
	if view.Pushes, err = v.pushesOf(a, &t); err != nil {
		return err
	}
	return render(v, http.StatusOK, "task", "Task "+shortID(t.ID), view)
}

// orgTask returns the task in the URL with the content, unless it is too large for a page.
func (v *visit) orgTask(a identity.Access, content task.Content) (t task.Task, large bool, err error) {
	ctx, uid := v.r.Context(), v.r.PathValue("uid")
	t, err = v.Tasks.OrgTaskWith(ctx, a, uid, task.Content{})
	if err != nil || t.Size > maxTaskSize {
		return t, true, err
	}
	t, err = v.Tasks.OrgTaskWith(ctx, a, uid, content)
	return t, false, err
}

func (v *visit) addAttempts(a identity.Access, view *orgTaskView) error {
	list, cut, err := v.Tasks.OrgAttempts(v.r.Context(), a, view.UID)
	if err != nil {
		return err
	}
	view.Cut = cut
	for i := range list {
		row := newAttemptRow(&list[i], view.Lease, v.Now())
		if !cut {
			row.Order = i + 1
		}
		view.Attempts = append(view.Attempts, row)
	}
	return nil
}

// endings says how an attempt ended that the worker did not finish.
var endings = map[task.LeaseEnd]struct{ how, tone string }{
	task.LeaseReturned: {"released: the worker handed it back", ""},
	task.LeaseExpired:  {"lease lost: the worker stopped its heartbeats", "high"},
	task.LeaseCanceled: {"canceled by the sender", ""},
	task.LeaseFailed:   {"failed: another attempt follows", "high"},
	task.LeaseOverdue:  {"ended by the deadline", "high"},
}

// newAttemptRow returns an attempt in words. l is the lease of one that is not over.
func newAttemptRow(a *task.Attempt, l task.Lease, now time.Time) attemptRow {
	row := attemptRow{Attempt: *a}
	until := a.EndedAt
	switch end, ok := endings[a.Ended]; {
	case !a.Over():
		row.How, row.Tone, until = "running", "busy", now
		row.Heartbeats = l.Beats
	case ok:
		row.How, row.Tone = end.how, end.tone
	default:
		row.How, row.Tone = string(a.State), stateTone(a.State)
	}
	row.Text = clipBytes(row.Text, maxOutputText/16)
	row.Duration = duration(until.Sub(a.StartedAt))
	if !a.QueuedAt.IsZero() {
		row.Waited = duration(a.StartedAt.Sub(a.QueuedAt))
	}
	return row
}

// duration formats a length of time with its two largest units.
func duration(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", d/time.Minute, d%time.Minute/time.Second)
	default:
		return fmt.Sprintf("%d h %d min", d/time.Hour, d%time.Hour/time.Minute)
	}
}

// pushesOf returns the push configurations of a task.
func (v *visit) pushesOf(a identity.Access, t *task.Task) ([]deliveryRow, error) {
	if !t.Push {
		return nil, nil
	}
	list, err := v.Tasks.OrgTaskPushes(v.r.Context(), a, t.UID)
	out := make([]deliveryRow, len(list))
	for i := range list {
		out[i] = newDeliveryRow(&list[i])
	}
	return out, err
}

// rerunOrgTask sends a task again.
func (v *visit) rerunOrgTask() error {
	a, err := v.access(identity.ManageAgents)
	if err != nil {
		return err
	}
	uid := v.r.PathValue("uid")
	ctx, _, err := v.begin()
	var made task.Task
	if err == nil {
		made, err = v.Tasks.OrgRerun(ctx, a, uid)
	}
	if errs.KindOf(err) == errs.Conflict { // the page shows its state
		return v.back(v.base()+"/tasks/"+uid, refusal(sentence(err)))
	}
	if err != nil {
		return err
	}
	return v.back(v.base()+"/tasks/"+made.UID, "This is the new task. It has the messages of the old one.")
}

// orgTaskJSON shows a task as JSON.
func (v *visit) orgTaskJSON() error {
	a, err := v.access(identity.ReadTasks)
	if err != nil {
		return err
	}
	t, large, err := v.orgTask(a, task.All)
	if err == nil && large {
		err = errTaskTooLarge
	}
	if err != nil {
		return err
	}
	return v.sendJSON(&t)
}

// orgTaskOutput sends a part of an artifact as a download.
func (v *visit) orgTaskOutput() error {
	a, err := v.access(identity.ReadTasks)
	if err != nil {
		return err
	}
	return v.sendOutput(func(number int) (task.Artifact, error) {
		return v.Tasks.OrgArtifact(v.r.Context(), a, v.r.PathValue("uid"), number)
	})
}
