// Package identity knows who acts: orgs, principals, their keys and scopes, and
// the one function that decides whether a caller may do a thing.
//
// It holds rules only. It knows nothing of HTTP headers or SQL rows, and it is
// imported by every domain package, so it imports none of them.
package identity

import (
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/errs"
)

// Kind is the sort of a principal.
type Kind string

// The kinds of principals. A service is an external system that an org gives
// keys to: it may call agents and, if scoped, read, but it is no member.
const (
	User    Kind = "user"
	Agent   Kind = "agent"
	Service Kind = "service"
)

// Kinds lists every kind, in the order in which they are documented.
var Kinds = []Kind{User, Agent, Service}

// Org is a tenant. Everything but the platform itself belongs to one.
type Org struct {
	ID        string
	Name      string
	CreatedAt time.Time
}

// Principal is who acts, always inside one org. Votes and tasks belong to the
// principal, never to the key it came with.
type Principal struct {
	Org  string
	Kind Kind
	ID   string
}

// Ref is the principal's name inside its org, e.g. "agent:scout".
func (p Principal) Ref() string { return string(p.Kind) + ":" + p.ID }

// IsMember reports whether the principal takes part in the org's decisions.
func (p Principal) IsMember() bool { return p.Kind == User || p.Kind == Agent }

// Member is a principal as the org keeps it.
type Member struct {
	Principal
	Name      string
	Admin     bool // users only: what a person may grant, and what a session may do
	Disabled  bool // cannot authenticate
	CreatedAt time.Time
}

// ValidOrgID reports whether s can be the id of an org: a slug of at most 63 characters.
func ValidOrgID(s string) bool { return slug(s, 63, "-") }

// ValidAgentID reports whether s can be the id of an agent; users and services
// follow the same pattern. It is on the path of every request, so it uses no regexp.
func ValidAgentID(s string) bool { return slug(s, 64, "._-") }

// slug reports whether s has lower-case letters, digits and, behind the first
// character, what else is allowed.
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
			"%q is not a principal; write user:ID, agent:ID or service:ID, where ID consists of a-z, 0-9, '.', '_' and '-'", ref)
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
