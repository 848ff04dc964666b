package oauth

import (
	"slices"
	"strings"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

// Registrable are the scopes that a client which registered itself may ask for,
// beside restrictions to agents. svc:admin:admin is not among them: whoever can make
// an admin click once must not get the org.
var Registrable = identity.Scopes{identity.TasksRead, identity.TasksWrite, identity.A2AWrite}

// Entitled are the scopes that a person may give away; agents and services have
// theirs from their keys.
func Entitled(m identity.Member) identity.Scopes { return m.Entitled() }

// agents splits off the restrictions to agents.
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

// forAgents are the scopes that a restriction to agents is about.
var forAgents = identity.Scopes{identity.A2AWrite, identity.A2AServe}

// Narrow returns what of the wanted scopes lies within the allowed ones; nothing
// wanted means all. A restriction to agents is never lost: whoever is restricted and
// does not say to which agents keeps the restriction, and whoever asks for other
// agents only gets nothing that is about agents.
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
		return nil // a restriction of nothing
	}
	return append(out, kept...)
}

// within reports whether all scopes lie within the allowed ones.
func within(allowed, scopes identity.Scopes) bool {
	got := Narrow(allowed, scopes)
	return len(scopes) > 0 && len(got) == len(scopes) && !slices.ContainsFunc(scopes, func(s identity.Scope) bool { return !got.Has(s) })
}

// ParseScopes checks scopes as a client writes them, between spaces.
func ParseScopes(s string) (identity.Scopes, error) {
	fields := strings.Fields(s)
	if len(fields) > identity.MaxScopes {
		return nil, errs.New(errs.Invalid, "oauth.bad_scope", "there are %d scopes; at most %d are allowed", len(fields), identity.MaxScopes)
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
