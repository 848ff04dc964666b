package sso

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/parley-dev/parley/internal/identity"
)

// claims are the claims of a token or of the userinfo endpoint.
type claims map[string]json.RawMessage

// find returns the claim at a path: "groups", "realm_access.roles", or a name that contains
// dots itself, such as a URL.
func (c claims) find(path string) (json.RawMessage, bool) {
	if v, ok := c[path]; ok {
		return v, true
	}
	for i, r := range path {
		if r != '.' {
			continue
		}
		var inner claims
		if v, ok := c[path[:i]]; ok && json.Unmarshal(v, &inner) == nil {
			if v, ok := inner.find(path[i+1:]); ok {
				return v, true
			}
		}
	}
	return nil, false
}

// text returns a claim that is a string, or empty.
func (c claims) text(path string) string {
	var s string
	if v, ok := c.find(path); !ok || json.Unmarshal(v, &s) != nil {
		return ""
	}
	return s
}

// verified reports whether a claim is true. Some issuers send it as a string.
func (c claims) verified(path string) bool {
	v, _ := c.find(path)
	return string(v) == "true" || string(v) == `"true"`
}

// matches reports whether the claim equals the value or is a list that contains it. Scopes are
// lists separated by spaces.
func (c claims) matches(claim, value string) bool {
	v, ok := c.find(claim)
	if !ok {
		return false
	}
	var s string
	if json.Unmarshal(v, &s) == nil {
		return s == value || spaced(claim) && slices.Contains(strings.Split(s, " "), value)
	}
	var list []any
	return json.Unmarshal(v, &list) == nil && slices.Contains(list, any(value))
}

func spaced(claim string) bool {
	last := claim[strings.LastIndexByte(claim, '.')+1:]
	return last == "scope" || last == "scp"
}

// userName returns the user id of a person, or why there is none. Of an email address it is
// the part before the '@', but only for the configured domain: in another domain, that part
// may belong to someone else.
func (s *SignIn) userName(c claims, title string) (name, why string) {
	v := c.text(s.UserClaim)
	if v == "" {
		return "", fmt.Sprintf("%s does not say what you are called (the claim %s); "+
			"ask the operator of this server, or open an invitation with %s", title, s.UserClaim, title)
	}
	v = strings.ToLower(v)
	if local, domain, address := cutLast(v, '@'); address {
		switch {
		case s.Domain == "" || domain != s.Domain:
			return "", fmt.Sprintf("%s calls you by an address whose domain is not let in by name; "+
				"open an invitation with %s, or ask the operator of this server", title, title)
		case s.UserClaim == "email" && !c.verified("email_verified"):
			return "", fmt.Sprintf("%s has not verified your email address; verify it there and try again", title)
		}
		v = local
	} else if s.UserClaim == "email" {
		return "", fmt.Sprintf("%s names no email address of yours; ask the operator of this server", title)
	}
	if !identity.ValidAgentID(v) {
		return "", fmt.Sprintf("what %s calls you cannot be the name of a user here; "+
			"open an invitation with %s, or ask an admin of the org", title, title)
	}
	return v, ""
}

func cutLast(s string, sep byte) (before, after string, found bool) {
	i := strings.LastIndexByte(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}

// scopes returns the union of the scopes of all matching rules.
func (t *Tokens) scopes(c claims) identity.Scopes {
	var out identity.Scopes
	for _, r := range t.Scopes {
		if !c.matches(r.Claim, r.Value) {
			continue
		}
		for _, g := range r.grants {
			if !out.Has(g) {
				out = append(out, g)
			}
		}
	}
	return out
}

// principal returns the principal of the first matching rule.
func (t *Tokens) principal(c claims) (identity.Principal, bool) {
	for _, r := range t.Principals {
		if c.matches(r.Claim, r.Value) {
			return r.who, true
		}
	}
	return identity.Principal{}, false
}
