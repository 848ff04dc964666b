package web

import (
	"github.com/parley-dev/parley/internal/account"
	"github.com/parley-dev/parley/internal/friction"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/oauth"
	"github.com/parley-dev/parley/internal/proposal"
	"github.com/parley-dev/parley/internal/webhook"
)

// auditGroup is a group of related actions, for the filter.
type auditGroup struct {
	Name    string
	Actions []auditAction
}

// auditAction describes an action in words: in the past tense, and as an infinitive.
type auditAction struct {
	Action    identity.AuditAction
	Did, ToDo string
}

// auditGroups lists the known actions. An unknown action is shown by its name.
var auditGroups = []auditGroup{
	{"Keys", []auditAction{
		{identity.KeyCreate, "made the key", "make a key"},
		{identity.KeyRotate, "rotated the key", "rotate a key"},
		{identity.KeyRevoke, "revoked the key", "revoke a key"},
	}},
	{"Members", []auditAction{
		{identity.MemberCreate, "created", "create a member"},
		{identity.MemberUpdate, "changed", "change a member"},
		{identity.MemberDisable, "disabled", "disable a member"},
		{identity.MemberEnable, "enabled", "enable a member"},
		{identity.MemberErase, "erased", "erase a member"},
		{identity.InvitationCreate, "made the invitation", "invite a person"},
		{identity.InvitationRevoke, "revoked the invitation", "revoke an invitation"},
		{identity.InvitationAccept, "accepted the invitation", "accept an invitation"},
	}},
	{"Sign-in", []auditAction{
		{account.LoggedIn, "signed in", "sign in"},
		{account.LoginFailed, "failed to sign in", "sign in, without success"},
		{account.LoggedOut, "signed out", "sign out"},
		{account.SignedOutAll, "signed out everywhere", "sign out everywhere"},
		{account.PasswordChange, "set the password of", "set a password"},
		{account.LinkCreate, "made a link to set the password of", "make a link to set a password"},
		{account.AccountLink, "linked to another membership", "link a membership"},
		{account.AccountUnlink, "unlinked from other memberships", "unlink a membership"},
		{account.IdentityLink, "connected an account elsewhere to", "connect an account elsewhere"},
		{account.IdentityUnlink, "disconnected an account elsewhere from", "disconnect an account elsewhere"},
	}},
	{"Clients and programs", []auditAction{
		{oauth.ClientCreate, "registered the client", "register a client"},
		{oauth.ClientUpdate, "changed the client", "change a client"},
		{oauth.ClientRotate, "replaced the secret of the client", "replace the secret of a client"},
		{oauth.ClientDelete, "deleted the client", "delete a client"},
		{oauth.Consented, "allowed access to", "allow a program access"},
		{oauth.TokenIssue, "got an access token by", "get an access token"},
		{oauth.TokenRevoke, "revoked an access token of", "revoke an access token"},
		{oauth.GrantRevoke, "ended the grant", "end a grant"},
		{oauth.GrantNarrow, "narrowed the grant", "narrow a grant"},
		{oauth.GrantReplay, "used a token twice, which ended the grant", "use a token twice"},
	}},
	{"Webhooks", []auditAction{
		{webhook.AuditCreate, "created the webhook", "create a webhook"},
		{webhook.AuditUpdate, "changed the webhook", "change a webhook"},
		{webhook.AuditRotate, "replaced the secret of the webhook", "replace the secret of a webhook"},
		{webhook.AuditPing, "sent a test event to the webhook", "send a test event to a webhook"},
		{webhook.AuditRedeliver, "sent events again to the webhook", "send events to a webhook again"},
		{webhook.AuditDelete, "deleted the webhook", "delete a webhook"},
	}},
	{"Agents and settings", []auditAction{
		{identity.AgentCreate, "registered the agent", "register an agent"},
		{identity.AgentUpdate, "changed the agent", "change an agent"},
		{identity.AgentDisable, "disabled the agent", "disable an agent"},
		{identity.AgentEnable, "enabled the agent", "enable an agent"},
		{friction.ThresholdSet, "set the friction threshold to", "set the friction threshold"},
		{proposal.NoteCreate, "saved the note", "save a note"},
		{proposal.NoteDelete, "deleted the note", "delete a note"},
		{identity.OrgCreate, "created the org", "create the org"},
		{identity.RetentionDelete, "deleted by age:", "delete by age"},
		{identity.OrgImport, "imported the org", "import the org"},
	}},
}

// auditVerb returns the words between the actor and the target of an entry.
func auditVerb(e *identity.AuditEntry) string {
	for _, g := range auditGroups {
		for _, a := range g.Actions {
			if a.Action != e.Action {
				continue
			}
			if e.Outcome == identity.Refused && e.Action != account.LoginFailed {
				return "tried to " + a.ToDo
			}
			return a.Did
		}
	}
	if e.Outcome == identity.Refused {
		return "tried " + string(e.Action)
	}
	return "did " + string(e.Action)
}

// alone lists the actions whose actor is also their target, which is shown once.
var alone = []identity.AuditAction{
	account.LoggedIn, account.LoginFailed, account.LoggedOut, account.SignedOutAll,
	account.AccountLink, account.AccountUnlink,
}
