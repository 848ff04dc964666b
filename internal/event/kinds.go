package event

import "slices"

// Type is the type of an event.
type Type string

// Kind describes one type of event.
type Kind struct {
	Type  Type
	About string // kind of the record in Data, and of the subject
	Seen  string // who sees it
	Text  string // what happened
	// Version of the shape of Data. It grows when a receiver must be changed; new fields do not
	// change it.
	Version int
}

const (
	byReaders = "readers of the org; of a draft, its submitter and admins"
	byMembers = "readers of the org"
	bySender  = "the sender and admins"
	byAdmins  = "admins"
)

// Types of events.
const (
	ProposalDrafted       Type = "proposal.drafted"
	ProposalSubmitted     Type = "proposal.submitted"
	ProposalEdited        Type = "proposal.edited"
	ProposalVoted         Type = "proposal.voted"
	ProposalVoteWithdrawn Type = "proposal.vote_withdrawn"
	ProposalOpened        Type = "proposal.opened"
	ProposalApproved      Type = "proposal.approved"
	ProposalRejected      Type = "proposal.rejected"
	ProposalReopened      Type = "proposal.reopened"
	ProposalResolved      Type = "proposal.resolved"

	FollowupCreated  Type = "followup.created"
	FollowupAssigned Type = "followup.assigned"
	FollowupStarted  Type = "followup.started"
	FollowupDone     Type = "followup.done"
	FollowupCanceled Type = "followup.canceled"
	FollowupReopened Type = "followup.reopened"
	FollowupEdited   Type = "followup.edited"

	FrictionReported Type = "friction.reported"
	FrictionFiled    Type = "friction.filed"

	TaskCreated       Type = "task.created"
	TaskInputRequired Type = "task.input_required"
	TaskCompleted     Type = "task.completed"
	TaskFailed        Type = "task.failed"
	TaskCanceled      Type = "task.canceled"
	TaskRejected      Type = "task.rejected"

	AgentRegistered Type = "agent.registered"
	AgentChanged    Type = "agent.changed"
	AgentDisabled   Type = "agent.disabled"
	AgentEnabled    Type = "agent.enabled"
	AgentPresence   Type = "agent.presence"

	MemberCreated  Type = "member.created"
	MemberChanged  Type = "member.changed"
	MemberDisabled Type = "member.disabled"
	MemberEnabled  Type = "member.enabled"
	MemberErased   Type = "member.erased"

	KeyCreated Type = "key.created"
	KeyRotated Type = "key.rotated"
	KeyRevoked Type = "key.revoked"

	ClientCreated Type = "client.created"
	ClientChanged Type = "client.changed"
	ClientDeleted Type = "client.deleted"

	InvitationCreated  Type = "invitation.created"
	InvitationRevoked  Type = "invitation.revoked"
	InvitationAccepted Type = "invitation.accepted"

	WebhookCreated Type = "webhook.created"
	WebhookChanged Type = "webhook.changed"
	WebhookDeleted Type = "webhook.deleted"
	WebhookFailed  Type = "webhook.failed"
)

// Kinds lists every type. Documents, OpenAPI, webhooks and pages are made from it. The store keeps
// positions in this list, so a new type is added at the end, and none is removed.
var Kinds = []Kind{
	{ProposalDrafted, "proposal", byReaders, "A draft was saved.", 1},
	{ProposalSubmitted, "proposal", byReaders, "A proposal was submitted.", 1},
	{ProposalEdited, "proposal", byReaders, "The text, category or priority was edited.", 1},
	{ProposalVoted, "proposal", byReaders, "A vote was cast or changed.", 1},
	{ProposalVoteWithdrawn, "proposal", byReaders, "A vote was withdrawn.", 1},
	{ProposalOpened, "proposal", byReaders, "A draft was opened for votes.", 1},
	{ProposalApproved, "proposal", byReaders, "An admin approved it.", 1},
	{ProposalRejected, "proposal", byReaders, "An admin rejected it.", 1},
	{ProposalReopened, "proposal", byReaders, "A rejected proposal was opened again.", 1},
	{ProposalResolved, "proposal", byReaders, "It is done: its follow-up is finished and an admin resolved it.", 1},
	{FollowupCreated, "followup", byMembers, "A follow-up was created, by hand or by an approval.", 1},
	{FollowupAssigned, "followup", byMembers, "Its assignee changed; it may have none now.", 1},
	{FollowupStarted, "followup", byMembers, "Work on it began.", 1},
	{FollowupDone, "followup", byMembers, "It is done.", 1},
	{FollowupCanceled, "followup", byMembers, "It was canceled.", 1},
	{FollowupReopened, "followup", byMembers, "It is open again.", 1},
	{FrictionReported, "friction", byMembers, "An agent reported friction.", 1},
	{FrictionFiled, "friction", byMembers, "Reported friction became a proposal.", 1},
	{TaskCreated, "task", bySender, "A task was sent to an agent.", 1},
	{TaskInputRequired, "task", bySender, "The agent waits for input or for an authorization; state says which.", 1},
	{TaskCompleted, "task", bySender, "The agent completed the task.", 1},
	{TaskFailed, "task", bySender, "The task failed.", 1},
	{TaskCanceled, "task", bySender, "The task was canceled.", 1},
	{TaskRejected, "task", bySender, "The agent rejected the task.", 1},
	{AgentRegistered, "agent", byMembers, "An agent was registered.", 1},
	{AgentChanged, "agent", byMembers, "The profile of an agent was changed.", 1},
	{AgentDisabled, "agent", byMembers, "An agent was disabled.", 1},
	{AgentPresence, "agent", byMembers, "An agent went online or offline.", 1},
	{MemberCreated, "member", byAdmins, "A member was added.", 1},
	{MemberChanged, "member", byAdmins, "The name or the rights of a member were changed.", 1},
	{MemberDisabled, "member", byAdmins, "A member was disabled.", 1},
	{MemberEnabled, "member", byAdmins, "A member was enabled again.", 1},
	{KeyCreated, "key", byAdmins, "A key was created.", 1},
	{KeyRotated, "key", byAdmins, "A key was replaced by a new one.", 1},
	{KeyRevoked, "key", byAdmins, "A key was revoked.", 1},
	{ClientCreated, "client", byAdmins, "An OAuth client was created.", 1},
	{ClientChanged, "client", byAdmins, "An OAuth client was changed.", 1},
	{ClientDeleted, "client", byAdmins, "An OAuth client was deleted.", 1},
	{InvitationCreated, "invitation", byAdmins, "An invitation was created.", 1},
	{InvitationRevoked, "invitation", byAdmins, "An invitation was revoked.", 1},
	{InvitationAccepted, "invitation", byAdmins, "An invitation was accepted.", 1},
	{WebhookCreated, "webhook", byAdmins, "A webhook was created.", 1},
	{WebhookChanged, "webhook", byAdmins, "A webhook was changed.", 1},
	{WebhookDeleted, "webhook", byAdmins, "A webhook was deleted.", 1},
	{
		WebhookFailed, "webhook", byAdmins,
		"A webhook was given up: its receiver failed for three days, or is gone (410).", 1,
	},
	{AgentEnabled, "agent", byMembers, "A disabled agent was enabled again.", 1},
	{FollowupEdited, "followup", byMembers, "Its title or description was edited.", 1},
	{MemberErased, "member", byAdmins, "A member was erased, and has this pseudonym now.", 1},
}

var positions = func() map[Type]int {
	m := make(map[Type]int, len(Kinds))
	for i, k := range Kinds {
		m[k.Type] = i
	}
	return m
}()

// Subjects lists the kinds of records that events are about.
var Subjects = func() (list []string) {
	for _, k := range Kinds {
		if !slices.Contains(list, k.About) {
			list = append(list, k.About)
		}
	}
	return list
}()

// Known reports whether the type is in Kinds.
func (t Type) Known() bool {
	_, ok := positions[t]
	return ok
}
