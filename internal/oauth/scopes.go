package oauth

import (
	"slices"
	"strings"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

// Registrable are the scopes that a client that registered itself may request, besides
// restrictions to agents. svc:admin:admin is not among them: one careless click of an admin
// must not give away the org.
var Registrable = identity.Scopes{identity.TasksRead, identity.TasksWrite, identity.A2AWrite}

// Entitled returns the scopes that a person may grant. Agents and services get their scopes
// from their keys.
func Entitled(m identity.Member) identity.Scopes { return m.Entitled() }

// agents separates rights from restrictions to agents.
func agents(s identity.Scopes) (rights, restrictions identity.Scopes) {
	for _, scope := range s {
		if strings.HasPrefix(string(scope), "agent:") {
			restrictions = append(restrictions, scope)
		} else {
			rights = append(rights, scope)
		}
	}
	return rights, restrictions
}

// forAgents are the scopes that a restriction to agents applies to.
var forAgents = identity.Scopes{identity.A2AWrite, identity.A2AServe}

// Narrow returns the wanted scopes that are within the allowed ones. If no scopes are
// wanted, it returns all allowed ones. A restriction to agents is never lost: if wanted names
// no agents, the allowed restriction is kept; if it names other agents only, the scopes in
// forAgents are removed.
func Narrow(allowed, wanted identity.Scopes) identity.Scopes {
	if len(wanted) == 0 {
		return slices.Clone(allowed)
	}
	can, within := agents(allowed)
	want, only := agents(wanted)
	var out identity.Scopes
	for _, s := range want {
		if can.Has(s) && !out.Has(s) {
			out = append(out, s)
		}
	}
	kept := within
	if len(only) > 0 {
		kept = nil
		for _, s := range only {
			if (len(within) == 0 || within.Has("agent:*") || within.Has(s)) && !kept.Has(s) {
				kept = append(kept, s)
			}
		}
		if len(kept) == 0 {
			return slices.DeleteFunc(out, forAgents.Has)
		}
	}
	if len(out) == 0 {
		return nil // a restriction alone grants nothing
	}
	return append(out, kept...)
}

// within reports whether all scopes are within the allowed ones.
func within(allowed, scopes identity.Scopes) bool {
	got := Narrow(allowed, scopes)
	missing := func(s identity.Scope) bool { return !got.Has(s) }
	return len(scopes) > 0 && len(got) == len(scopes) && !slices.ContainsFunc(scopes, missing)
}

// ParseScopes parses and validates scopes that are separated by spaces.
func ParseScopes(s string) (identity.Scopes, error) {
	fields := strings.Fields(s)
	if len(fields) > identity.MaxScopes {
		return nil, errs.New(errs.Invalid, "oauth.bad_scope",
			"there are %d scopes; at most %d are allowed", len(fields), identity.MaxScopes)
	}
	var out identity.Scopes
	for _, f := range fields {
		scope, err := identity.ParseScope(f)
		if err != nil {
			return nil, err
		}
		if !out.Has(scope) {
			out = append(out, scope)
		}
	}
	return out, nil
}
