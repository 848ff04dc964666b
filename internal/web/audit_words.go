package web

import (
	"github.com/parley-dev/parley/internal/account"
	"github.com/parley-dev/parley/internal/friction"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/oauth"
	"github.com/parley-dev/parley/internal/proposal"
)

// auditGroup are actions that belong together, for the filter.
type auditGroup struct {
	Name    string
	Actions []auditAction
}

// auditAction is an action in words: as something that was done, and as something to do.
type auditAction struct {
	Action    identity.AuditAction
	Did, ToDo string
}

// auditGroups are the actions of the platform. One that is missing here is shown by its name.
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
	{"Agents and settings", []auditAction{
		{identity.AgentCreate, "registered the agent", "register an agent"},
		{identity.AgentUpdate, "changed the agent", "change an agent"},
		{identity.AgentDisable, "disabled the agent", "disable an agent"},
		{identity.AgentEnable, "enabled the agent", "enable an agent"},
		{friction.ThresholdSet, "set the friction threshold to", "set the friction threshold"},
		{proposal.NoteCreate, "saved the note", "save a note"},
		{proposal.NoteDelete, "deleted the note", "delete a note"},
		{identity.OrgCreate, "created the org", "create the org"},
	}},
}

// auditVerb is what an entry says between its actor and its target.
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

// alone are actions whose actor is their target: it is said once.
var alone = []identity.AuditAction{
	account.LoggedIn, account.LoginFailed, account.LoggedOut, account.SignedOutAll, account.AccountLink, account.AccountUnlink,
}
