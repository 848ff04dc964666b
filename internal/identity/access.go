package identity

import (
	"strings"

	"github.com/parley-dev/parley/internal/errs"
)

// Access is proof that a caller was authorized for one action inside one org. Only
// Authorize makes one. Every service method that touches the data of an org takes one and
// begins with For, so a transport can neither forget the check nor pass the proof of one
// operation to another.
type Access struct {
	caller *Caller
	action Action
}

// For refuses an Access that was given for none of the actions. A wrong one, the zero
// Access included, is a mistake in the program and not of the caller.
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

// wrongAction does not keep want: the list of a call to For stays on the stack.
func wrongAction(have Action, want []Action) error {
	names := make([]string, len(want))
	for i, w := range want {
		names[i] = string(w)
	}
	return errs.New(errs.Internal, "auth.wrong_action",
		"an Access for the action %q was used for %q", have, strings.Join(names, " or "))
}

// Org is the org in which the caller was authorized.
func (a Access) Org() string { return a.caller.Org }

// Caller is who acts, with the rights of its credential.
func (a Access) Caller() *Caller { return a.caller }

// Principal is who acts.
func (a Access) Principal() Principal { return a.caller.Principal }

// Has reports whether the caller's credential carries the scope.
func (a Access) Has(s Scope) bool { return a.caller.Scopes.Has(s) }

// ReachesAgent reports whether the credential's agent restriction lets the agent through.
func (a Access) ReachesAgent(id string) bool { return a.caller.Scopes.ReachesAgent(id) }

// ServesAgent reports whether the caller may work for the agent: an agent's own
// credential works for that agent only, any other needs an explicit agent: scope.
func (a Access) ServesAgent(id string) bool {
	if a.caller.Kind == Agent && a.caller.ID != id {
		return false
	}
	return a.caller.Scopes.ReachesAgent(id) && (a.caller.Kind == Agent || a.caller.Scopes.restricted())
}
