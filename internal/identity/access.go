package identity

import (
	"strings"

	"github.com/parley-dev/parley/internal/errs"
)

// Access proves that a caller was authorized for one action in one org. Only Authorize
// returns one. Every service method that touches the data of an org takes an Access and
// calls For first, so a transport can neither forget the check nor use an Access for
// another action.
type Access struct {
	caller *Caller
	action Action
}

// For returns an error unless the Access is for one of the actions. A wrong Access,
// including the zero one, is a bug in the program and not a mistake of the caller.
func (a Access) For(actions ...Action) error {
	for _, action := range actions {
		if a.action == action && a.caller != nil {
			return nil
		}
	}
	return wrongAction(a.action, actions)
}

// As authorizes the same caller for a further action.
func (a Access) As(action Action) (Access, error) {
	if a.caller == nil {
		return Access{}, wrongAction(a.action, []Action{action})
	}
	return Authorize(a.caller, a.caller.Org, action)
}

// wrongAction does not retain want, so that the variadic list of For stays on the stack.
func wrongAction(have Action, want []Action) error {
	names := make([]string, len(want))
	for i, w := range want {
		names[i] = string(w)
	}
	return errs.New(errs.Internal, "auth.wrong_action",
		"an Access for the action %q was used for %q", have, strings.Join(names, " or "))
}

// Org returns the org in which the caller was authorized.
func (a Access) Org() string { return a.caller.Org }

// Caller returns the caller with the scopes of its credential.
func (a Access) Caller() *Caller { return a.caller }

// Principal returns the principal that acts.
func (a Access) Principal() Principal { return a.caller.Principal }

// Has reports whether the caller's credential carries the scope.
func (a Access) Has(s Scope) bool { return a.caller.Scopes.Has(s) }

// ReachesAgent reports whether the scopes of the credential allow the agent.
func (a Access) ReachesAgent(id string) bool { return a.caller.Scopes.ReachesAgent(id) }

// OnlyAgents returns the ids of the agents that the scopes of the credential allow, or nil if they
// allow all.
func (a Access) OnlyAgents() []string { return a.caller.Scopes.onlyAgents() }

// ServesAgent reports whether the caller may work for the agent. The credential of an agent
// is good for that agent only; any other credential needs an explicit agent: scope.
func (a Access) ServesAgent(id string) bool {
	if a.caller.Kind == Agent && a.caller.ID != id {
		return false
	}
	return a.caller.Scopes.ReachesAgent(id) && (a.caller.Kind == Agent || a.caller.Scopes.restricted())
}
