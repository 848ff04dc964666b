package store

import (
	"encoding/json"

	"github.com/parley-dev/parley/internal/event"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/oauth"
)

// Events about members, keys, clients, invitations and agents have the actor and the time of the
// audit entry of the change. The org is that of the record: an entry can belong to another org, if
// a person accepts an invitation with the account of a second one.

// emitFor adds the event of a change that an audit entry records.
func (t *tx) emitFor(
	e *identity.AuditEntry, org string, kind event.Type, subject string, scope event.Scope, data json.RawMessage,
) {
	actor := e.Actor
	if actor == identity.ServerActor {
		actor = event.System
	}
	t.emit(event.New(org, kind, e.At, subject, actor, scope, data))
}

func (t *tx) emitMember(e *identity.AuditEntry, kind event.Type, m *identity.Member) {
	t.emitFor(e, m.Org, kind, "member:"+m.Ref(), event.Admins, t.hooks.records.Member(m))
}

func (t *tx) emitKey(e *identity.AuditEntry, kind event.Type, k *identity.Key) {
	t.emitFor(e, k.Principal.Org, kind, "key:"+k.ID, event.Admins, t.hooks.records.Key(k))
}

// emitInvitation: the data of an invitation has no link, because the store has only its hash.
func (t *tx) emitInvitation(e *identity.AuditEntry, kind event.Type, i *identity.Invitation) {
	t.emitFor(e, i.Org, kind, "invitation:"+i.ID, event.Admins, t.hooks.records.Invitation(i))
}

// emitClient is for clients of an org. Others, which registered themselves or are described by a
// document, belong to no org, so there is no log for them.
func (t *tx) emitClient(e *identity.AuditEntry, kind event.Type, c *oauth.Client) {
	t.emitFor(e, c.Org, kind, "client:"+c.ID, event.Admins, t.hooks.records.Client(c))
}

// memberEvents are the events of the audited changes of a member.
var memberEvents = map[identity.AuditAction]event.Type{
	identity.MemberUpdate:  event.MemberChanged,
	identity.MemberDisable: event.MemberDisabled,
	identity.MemberEnable:  event.MemberEnabled,
}

// emitMemberChanges adds an event for each audited change of a member.
func (t *tx) emitMemberChanges(entries []identity.AuditEntry, m *identity.Member) {
	for i := range entries {
		if kind, ok := memberEvents[entries[i].Action]; ok && entries[i].Outcome == identity.Done {
			t.emitMember(&entries[i], kind, m)
		}
	}
}

// emitAccepted adds the events of an invitation that became a member.
func (t *tx) emitAccepted(e *identity.AuditEntry, i identity.Invitation, m *identity.Member) {
	i.AcceptedAt = m.CreatedAt
	t.emitInvitation(e, event.InvitationAccepted, &i)
	t.emitMember(e, event.MemberCreated, m)
}
