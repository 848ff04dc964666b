package identity

import (
	"slices"
	"strings"

	"github.com/parley-dev/parley/internal/errs"
)

// Scope is a right of a key. No scope implies another, not even svc:admin:admin.
type Scope string

// The scopes of the platform. "agent:<id>" and "agent:*" restrict them to agents.
const (
	TasksRead  Scope = "svc:tasks:read"
	TasksWrite Scope = "svc:tasks:write"
	Admin      Scope = "svc:admin:admin"
	A2AWrite   Scope = "svc:a2a:write"
	A2AServe   Scope = "svc:a2a:serve"
)

// AllScopes lists the platform's scopes.
var AllScopes = []Scope{TasksRead, TasksWrite, Admin, A2AWrite, A2AServe}

const agentScopePrefix = "agent:"

// ParseScope checks one scope.
func ParseScope(s string) (Scope, error) {
	if slices.Contains(AllScopes, Scope(s)) {
		return Scope(s), nil
	}
	if id, ok := strings.CutPrefix(s, agentScopePrefix); ok && (id == "*" || ValidAgentID(id)) {
		return Scope(s), nil
	}
	if known, ok := similarScope(s); ok {
		return "", errs.New(errs.Invalid, "identity.bad_scope", "unknown scope %q; did you mean %q?", s, known)
	}
	names := make([]string, len(AllScopes))
	for i, known := range AllScopes {
		names[i] = string(known)
	}
	return "", errs.New(errs.Invalid, "identity.bad_scope", "unknown scope %q; use %s, agent:<agent_id> or agent:*",
		s, strings.Join(names, ", "))
}

// similarScope returns the only scope that ends with s, regardless of case.
func similarScope(s string) (found Scope, ok bool) {
	for _, known := range AllScopes {
		if !strings.HasSuffix(":"+string(known), ":"+strings.ToLower(s)) {
			continue
		}
		if ok {
			return "", false
		}
		found, ok = known, true
	}
	return found, ok
}

// agent returns the agent of an "agent:<id>" scope.
func (s Scope) agent() (id string, ok bool) {
	id, ok = strings.CutPrefix(string(s), agentScopePrefix)
	return id, ok && id != "*"
}

// Scopes are the rights of a key.
type Scopes []Scope

// Has reports whether s contains the scope.
func (s Scopes) Has(scope Scope) bool { return slices.Contains(s, scope) }

// OnlyAgent returns the agent that the scopes are restricted to, if it is exactly one.
func (s Scopes) OnlyAgent() (id string, ok bool) {
	for _, scope := range s {
		rest, is := strings.CutPrefix(string(scope), agentScopePrefix)
		if !is {
			continue
		}
		if rest == "*" || ok && rest != id {
			return "", false
		}
		id, ok = rest, true
	}
	return id, ok
}

// ReachesAgent reports whether the scopes allow the agent. Without an agent: scope, all
// agents are allowed.
func (s Scopes) ReachesAgent(id string) bool {
	restricted := false
	for _, scope := range s {
		if rest, ok := strings.CutPrefix(string(scope), agentScopePrefix); ok {
			if rest == "*" || rest == id {
				return true
			}
			restricted = true
		}
	}
	return !restricted
}

// onlyAgents returns the agents of the agent: scopes, or nil if all agents are allowed.
func (s Scopes) onlyAgents() (ids []string) {
	for _, scope := range s {
		rest, ok := strings.CutPrefix(string(scope), agentScopePrefix)
		switch {
		case ok && rest == "*":
			return nil
		case ok:
			ids = append(ids, rest)
		}
	}
	return ids
}

// restricted reports whether there is an agent: scope.
func (s Scopes) restricted() bool {
	return slices.ContainsFunc(s, func(scope Scope) bool { return strings.HasPrefix(string(scope), agentScopePrefix) })
}

// String joins the scopes with spaces, as OAuth writes them.
func (s Scopes) String() string {
	var b strings.Builder
	for i, scope := range s {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(string(scope))
	}
	return b.String()
}

// SplitScopes is the inverse of Scopes.String. It does not validate the scopes.
func SplitScopes(s string) Scopes {
	fields := strings.Fields(s)
	out := make(Scopes, len(fields))
	for i, f := range fields {
		out[i] = Scope(f)
	}
	return out
}
