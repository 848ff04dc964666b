package identity

import (
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/errs"
)

// Caller is an authenticated principal with the rights of the credential that it used.
type Caller struct {
	Principal
	KeyID     string // id of the key, access token or session
	Scopes    Scopes
	ExpiresAt time.Time // zero: never
	Audience  string    // the only path that the credential is good for; empty: all paths
	Delegated bool      // a program acts for a person, who can be asked for more scopes
}

// sessionPrefix starts the KeyID of a browser session.
const sessionPrefix = "session-"

// SessionID returns the KeyID of a session. It does not reveal the session's secret.
func SessionID(sum string) string { return sessionPrefix + sum }

// IsSession reports whether the caller is a person who is signed in with a browser.
func (c *Caller) IsSession() bool { return strings.HasPrefix(c.KeyID, sessionPrefix) }

// ErrConfirm is the error for a request by a session that needs the password again, which
// only a page can ask for.
var ErrConfirm = errs.New(errs.Forbidden, "auth.confirm",
	"a session alone cannot do this: use the page of the dashboard, which asks for the password again, or a key")

// CheckConfirmed returns ErrConfirm if a session asks for scopes that administer the org.
// Pages do not call it: they ask for the password again.
func (c *Caller) CheckConfirmed(scopes Scopes) error {
	if c.IsSession() && c.Scopes.Has(Admin) && scopes.Has(Admin) {
		return ErrConfirm
	}
	return nil
}

// Action is an operation that a caller is authorized for.
type Action string

// Actions on proposals, follow-ups and friction.
const (
	ListProposals   Action = "list proposals"
	ReadProposal    Action = "read a proposal"
	SubmitProposal  Action = "submit a proposal"
	VoteOnProposal  Action = "vote on a proposal"
	ChangeProposal  Action = "edit a proposal or change its status"
	ResolveProposal Action = "change a proposal's status"
	ManageNotes     Action = "manage the saved notes of the org"
	ListFollowups   Action = "list follow-ups"
	ReadFollowup    Action = "read a follow-up"
	CreateFollowup  Action = "create a follow-up"
	ChangeFollowup  Action = "change a follow-up"
	ReportFriction  Action = "report friction"
	ReadFriction    Action = "read reported friction"
	ManageFriction  Action = "change what reported friction leads to"
)

// Actions on agents and their tasks. ReachesAgent and ServesAgent check the agent itself.
const (
	CallAgent    Action = "call an agent"
	ServeAgent   Action = "work for an agent"
	ReadAgents   Action = "read the agents of the org"
	ManageAgents Action = "manage the agents of the org"
	ReadTasks    Action = "read the tasks of the org's agents"
)

// Actions on the log of events. Which events a caller sees depends on its scopes.
const (
	ReadEvents     Action = "read the events of the org"
	ManageWebhooks Action = "manage the webhooks of the org"
)

// Actions on keys, members, clients and the audit log.
const (
	ReadKeys      Action = "read the keys of the org"
	ManageKeys    Action = "manage the keys of the org"
	ReadMembers   Action = "read the members of the org"
	ManageMembers Action = "manage the members of the org"
	EraseMembers  Action = "erase members of the org"
	ReadClients   Action = "read the clients of the org"
	ManageClients Action = "manage the clients of the org"
	ReadAudit     Action = "read the audit log of the org"
)

// Actions of a caller on itself.
const (
	ReadSelf             Action = "read who you are"
	ManageOwnCredentials Action = "manage your own keys and programs"
)

// rule lists what an action requires of the caller.
type rule struct {
	anyOf    []Scope // at least one of them
	anyScope bool    // no scope at all
	members  bool    // users and agents only
	direct   bool    // no delegated caller: the keys that it makes would outlive the consent
}

// rules is the table of section 5 of the specification.
var rules = map[Action]rule{
	ListProposals:   {anyOf: []Scope{TasksRead}},
	ReadProposal:    {anyOf: []Scope{TasksRead}},
	SubmitProposal:  {anyOf: []Scope{TasksWrite}, members: true},
	VoteOnProposal:  {anyOf: []Scope{TasksWrite}, members: true},
	ChangeProposal:  {anyOf: []Scope{Admin, TasksWrite}},
	ResolveProposal: {anyOf: []Scope{Admin}},
	ManageNotes:     {anyOf: []Scope{Admin}},
	ListFollowups:   {anyOf: []Scope{TasksRead}},
	ReadFollowup:    {anyOf: []Scope{TasksRead}},
	CreateFollowup:  {anyOf: []Scope{TasksWrite}},
	ChangeFollowup:  {anyOf: []Scope{TasksWrite}},
	ReportFriction:  {anyOf: []Scope{TasksWrite}, members: true},
	ReadFriction:    {anyOf: []Scope{TasksRead}},
	ManageFriction:  {anyOf: []Scope{Admin}},

	CallAgent:    {anyOf: []Scope{A2AWrite}},
	ServeAgent:   {anyOf: []Scope{A2AServe}},
	ReadAgents:   {anyOf: []Scope{TasksRead, A2AWrite, Admin}},
	ManageAgents: {anyOf: []Scope{Admin}},
	ReadTasks:    {anyOf: []Scope{Admin}},

	ReadEvents:     {anyOf: []Scope{TasksRead}},
	ManageWebhooks: {anyOf: []Scope{Admin}},

	ReadKeys:      {anyOf: []Scope{Admin}},
	ManageKeys:    {anyOf: []Scope{Admin}},
	ReadMembers:   {anyOf: []Scope{Admin}},
	ManageMembers: {anyOf: []Scope{Admin}},
	EraseMembers:  {anyOf: []Scope{Admin}},
	ReadClients:   {anyOf: []Scope{Admin}},
	ManageClients: {anyOf: []Scope{Admin}},
	ReadAudit:     {anyOf: []Scope{Admin}},

	ReadSelf:             {anyScope: true},
	ManageOwnCredentials: {anyScope: true, direct: true},
}

// ErrMissing is the error for a request without credentials.
var ErrMissing = errs.New(errs.Unauthenticated, "auth.missing",
	"authentication is required: send your API key as \"Authorization: Bearer <API_KEY>\"")

// Authorize decides whether the caller may perform the action in the org. No other code
// decides that. It runs before any look-up, so a caller from another org gets the same error
// as for an org that does not exist.
func Authorize(c *Caller, org string, action Action) (Access, error) {
	if c == nil {
		return Access{}, ErrMissing
	}
	if c.Org != org {
		return Access{}, errs.ErrNotFound
	}
	r, ok := rules[action]
	if !ok {
		return Access{}, errs.New(errs.Internal, "auth.unknown_action", "no rule for the action %q", action)
	}
	if !r.anyScope && !hasAny(c.Scopes, r.anyOf) {
		return Access{}, MissingScope(action, r.anyOf...)
	}
	if r.members && !c.IsMember() {
		return Access{}, errs.New(errs.Forbidden, "auth.not_a_member",
			"%s is a service, and only users and agents of the org may %s", c.Ref(), action)
	}
	if r.direct && c.Delegated {
		return Access{}, errs.New(errs.Forbidden, "auth.delegated",
			"a program that acts for %s cannot manage keys; sign in in the browser, or use a key", c.Ref())
	}
	return Access{caller: c, action: action}, nil
}

func hasAny(have Scopes, want []Scope) bool {
	for _, s := range want {
		if have.Has(s) {
			return true
		}
	}
	return false
}

// MissingScope returns the error for a missing scope.
func MissingScope(action Action, scopes ...Scope) *errs.Error {
	names := make([]string, len(scopes))
	for i, s := range scopes {
		names[i] = string(s)
	}
	want := strings.Join(names, " or ")
	e := errs.New(errs.Forbidden, "auth.scope_missing", "to %s, the key needs the scope %s", action, want)
	e.Scope = strings.Join(names, " ")
	return e
}
