// Package identity holds the rules for orgs, principals, keys, scopes and the audit log, and
// Authorize, which decides what a caller may do.
//
// Authenticator turns a secret into a Caller, Authorize turns a Caller into an Access for one
// action, and services of all domain packages take that Access. OrgAdmin serves the admins of
// an org, Operator the operator of the platform. Every domain package imports this one, so it
// must import none of them. It must not know HTTP or SQL.
package identity

import (
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/errs"
)

// Kind is the kind of a principal.
type Kind string

// The kinds of principals. A service is an external system that has keys of an org. It may
// call agents and, with the right scopes, read, but it is not a member.
const (
	User    Kind = "user"
	Agent   Kind = "agent"
	Service Kind = "service"
)

// Kinds lists all kinds, in the order of the documentation.
var Kinds = []Kind{User, Agent, Service}

// Org is a tenant.
type Org struct {
	ID        string
	Name      string
	CreatedAt time.Time
}

// Principal is a user, agent or service of one org. Votes and tasks belong to the principal,
// never to the key that it used.
type Principal struct {
	Org  string
	Kind Kind
	ID   string
}

// Ref returns the principal's name inside its org, for example "agent:scout".
func (p Principal) Ref() string { return string(p.Kind) + ":" + p.ID }

// IsMember reports whether the principal may submit and vote.
func (p Principal) IsMember() bool { return p.Kind == User || p.Kind == Agent }

// Member is the record of a principal.
type Member struct {
	Principal
	Name      string
	Admin     bool // users only; decides what the user may grant and what sessions may do
	Disabled  bool // cannot authenticate
	CreatedAt time.Time
}

// ValidOrgID reports whether s is a valid org id: a slug of at most 63 characters.
func ValidOrgID(s string) bool { return slug(s, 63, "-") }

// ValidAgentID reports whether s is a valid id of an agent, user or service. It runs on
// every request, so it uses no regexp.
func ValidAgentID(s string) bool { return slug(s, 64, "._-") }

// slug reports whether s consists of lower-case letters and digits and, after the first
// character, the bytes of also.
func slug(s string, most int, also string) bool {
	for i := range len(s) {
		c := s[i]
		plain := 'a' <= c && c <= 'z' || '0' <= c && c <= '9'
		if !plain && (i == 0 || strings.IndexByte(also, c) < 0) {
			return false
		}
	}
	return s != "" && len(s) <= most
}

// ParseRef reads "user:ID", "agent:ID" or "service:ID" as a principal of org.
func ParseRef(org, ref string) (Principal, error) {
	kind, id, ok := strings.Cut(ref, ":")
	p := Principal{Org: org, Kind: Kind(kind), ID: id}
	if !ok || !knownKind(p.Kind) || !ValidAgentID(id) {
		return Principal{}, errs.New(errs.Invalid, "identity.bad_principal",
			"%q is not a principal; write user:ID, agent:ID or service:ID, "+
				"where ID consists of a-z, 0-9, '.', '_' and '-'", ref)
	}
	return p, nil
}

func knownKind(k Kind) bool {
	for _, known := range Kinds {
		if k == known {
			return true
		}
	}
	return false
}
