package store

import (
	"github.com/parley-dev/parley/internal/event"
	"github.com/parley-dev/parley/internal/followup"
	"github.com/parley-dev/parley/internal/friction"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
	"github.com/parley-dev/parley/internal/task"
)

// This file has the events about proposals, follow-ups, friction and tasks. If the record is known
// before the write, so is the event: SQLite has one writer, which all callers share.

// submission returns the event about a new proposal.
func (h *hooks) submission(p *proposal.Proposal) event.Event {
	typ := event.ProposalSubmitted
	if p.Status == proposal.Draft {
		typ = event.ProposalDrafted
	}
	return h.proposalEvent(typ, p, &proposal.Entry{At: p.SubmittedAt, Actor: p.SubmittedBy})
}

// emitProposal adds the event about an entry of a proposal's history.
func (t *tx) emitProposal(p *proposal.Proposal, e *proposal.Entry) {
	t.emit(t.hooks.proposalEvent(proposalType(e), p, e))
}

func (h *hooks) proposalEvent(typ event.Type, p *proposal.Proposal, e *proposal.Entry) event.Event {
	scope := event.Members
	if p.Status == proposal.Draft {
		scope = event.Draft(p.SubmittedBy)
	}
	return event.New(p.Org, typ, e.At, "proposal:"+p.ID, e.Actor, scope, h.records.Proposal(p))
}

// proposalType returns the type of the event about an entry.
func proposalType(e *proposal.Entry) event.Type {
	switch {
	case e.Kind == proposal.Voted:
		return event.ProposalVoted
	case e.Kind == proposal.VoteWithdrawn:
		return event.ProposalVoteWithdrawn
	case e.Kind != proposal.StatusChanged:
		return event.ProposalEdited
	case e.To == proposal.Approved:
		return event.ProposalApproved
	case e.To == proposal.Rejected:
		return event.ProposalRejected
	case e.To == proposal.Resolved:
		return event.ProposalResolved
	case e.From == proposal.Draft:
		return event.ProposalOpened
	}
	return event.ProposalReopened
}

// emitFollowup adds an event about a follow-up. Its time is that of the last change.
func (t *tx) emitFollowup(typ event.Type, f *followup.Followup, actor string) {
	t.emit(event.New(f.Org, typ, f.UpdatedAt, "followup:"+f.ID, actor, event.Members, t.hooks.records.Followup(f)))
}

// emitFollowupChange adds an event for each aspect of a follow-up that changed, so that a reader of
// one type misses nothing. The state of its task is no such aspect: the task has own events.
func (t *tx) emitFollowupChange(old, f *followup.Followup, actor string) {
	if f.Title != old.Title || f.Description != old.Description {
		t.emitFollowup(event.FollowupEdited, f, actor)
	}
	if f.Assignee != old.Assignee {
		t.emitFollowup(event.FollowupAssigned, f, actor)
	}
	if f.Status != old.Status {
		t.emitFollowup(followupType(f.Status), f, actor)
	}
}

// followupType returns the type of the event about a new status.
func followupType(s followup.Status) event.Type {
	switch s {
	case followup.InProgress:
		return event.FollowupStarted
	case followup.Done:
		return event.FollowupDone
	case followup.Canceled:
		return event.FollowupCanceled
	}
	return event.FollowupReopened
}

// emitFriction adds an event about friction, by its last reporter.
func (t *tx) emitFriction(typ event.Type, f *friction.Friction) {
	t.emit(event.New(f.Org, typ, f.LastAt, "friction:"+f.Fingerprint, f.LastBy, event.Members,
		t.hooks.records.Friction(f)))
}

// taskEvent returns an event about a task. Its sender sees it, unless that is of another org: events
// are read in the org of the agent.
func (h *hooks) taskEvent(typ event.Type, t *task.Task, actor string) event.Event {
	scope := event.Admins
	if t.Sender.Org == t.Org {
		scope = event.Only(t.Sender.Ref())
	}
	return event.New(t.Org, typ, t.UpdatedAt, "task:"+t.UID, actor, scope, h.records.Task(t))
}

// taskChange returns the event about a new state, if it has one.
func (h *hooks) taskChange(old *task.Task, c *task.Change) []event.Event {
	typ := taskType(c.Task.State)
	if c.Task.State == old.State || typ == "" {
		return nil
	}
	return []event.Event{h.taskEvent(typ, &c.Task, actorOf(c))}
}

// taskType returns the type of the event about a new state, or "" if none reports it. A task that
// waits for an authorization waits for its sender like one that waits for input.
func taskType(s task.State) event.Type {
	switch s {
	case task.InputRequired, task.AuthRequired:
		return event.TaskInputRequired
	case task.Completed:
		return event.TaskCompleted
	case task.Failed:
		return event.TaskFailed
	case task.Canceled:
		return event.TaskCanceled
	case task.Rejected:
		return event.TaskRejected
	}
	return ""
}

// actorOf returns who changed the state of a task.
func actorOf(c *task.Change) string {
	t := &c.Task
	switch {
	case t.State == task.Canceled && c.CanceledBy != identity.Principal{}:
		return actorIn(t.Org, c.CanceledBy)
	case t.State == task.Canceled:
		return senderOf(t)
	case c.System:
		return event.System
	}
	return identity.Principal{Kind: identity.Agent, ID: t.Agent}.Ref()
}

func senderOf(t *task.Task) string { return actorIn(t.Org, t.Sender) }

// actorIn returns how events of an org name a principal: with its org if that is another one.
func actorIn(org string, p identity.Principal) string {
	if p.Org == org {
		return p.Ref()
	}
	return p.Org + "/" + p.Ref()
}
