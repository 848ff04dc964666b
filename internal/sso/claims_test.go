package sso

import (
	"encoding/json"
	"testing"
)

func read(t *testing.T, text string) claims {
	t.Helper()
	var c claims
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestMatches(t *testing.T) {
	t.Parallel()
	c := read(t, `{"groups": ["eng", "ops", 1, {"a": 1}], "scope": "a b.read c", "role": "admin dev",
		"realm_access": {"roles": ["x"], "scp": "p q"},
		"https://acme.example/roles": ["y"], "n": 1, "yes": true, "nil": null, "a.b": {"c": "deep"}}`)
	for _, m := range []struct {
		claim, value string
		want         bool
	}{
		{"groups", "eng", true},
		{"groups", "en", false},
		{"groups", "1", false},
		{"groups", "eng ops", false},
		{"scope", "b.read", true},
		{"scope", "a b.read c", true},
		{"scope", "read", false},
		{"role", "admin", false},
		{"role", "admin dev", true},
		{"realm_access.roles", "x", true},
		{"realm_access.scp", "q", true},
		{"realm_access.none", "x", false},
		{"realm_access", "x", false},
		{"https://acme.example/roles", "y", true},
		{"a.b.c", "deep", true},
		{"n", "1", false},
		{"yes", "true", false},
		{"nil", "null", false},
		{"none", "", false},
		{"groups.0", "eng", false},
	} {
		if got := c.matches(m.claim, m.value); got != m.want {
			t.Errorf("%s is %s: %t", m.claim, m.value, got)
		}
	}
}

func TestUserName(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		s    SignIn
		said string
		want string // empty: none
	}{
		{SignIn{UserClaim: "preferred_username"}, `{"preferred_username": "Ada"}`, "ada"},
		{SignIn{UserClaim: "preferred_username"}, `{}`, ""},
		{SignIn{UserClaim: "preferred_username"}, `{"preferred_username": 7}`, ""},
		{SignIn{UserClaim: "preferred_username"}, `{"preferred_username": "ada lovelace"}`, ""},
		{SignIn{UserClaim: "preferred_username"}, `{"preferred_username": "ada@acme.example"}`, ""},
		{SignIn{UserClaim: "preferred_username", Domain: "acme.example"}, `{"preferred_username": "Ada@Acme.example"}`, "ada"},
		{SignIn{UserClaim: "preferred_username", Domain: "acme.example"}, `{"preferred_username": "ada@evil.example"}`, ""},
		{
			SignIn{UserClaim: "preferred_username", Domain: "acme.example"},
			`{"preferred_username": "admin@evil.example@acme.example"}`, "",
		},
		{SignIn{UserClaim: "email", Domain: "acme.example"}, `{"email": "ada@acme.example", "email_verified": true}`, "ada"},
		{SignIn{UserClaim: "email", Domain: "acme.example"}, `{"email": "ada@acme.example", "email_verified": "true"}`, "ada"},
		{SignIn{UserClaim: "email", Domain: "acme.example"}, `{"email": "ada@acme.example", "email_verified": false}`, ""},
		{SignIn{UserClaim: "email", Domain: "acme.example"}, `{"email": "ada@acme.example"}`, ""},
		{SignIn{UserClaim: "email", Domain: "acme.example"}, `{"email": "ada@gmail.example", "email_verified": true}`, ""},
		{SignIn{UserClaim: "email", Domain: "acme.example"}, `{"email": "ada", "email_verified": true}`, ""},
		{SignIn{UserClaim: "employee.id"}, `{"employee": {"id": "e-17"}}`, "e-17"},
	} {
		name, why := c.s.userName(read(t, c.said), "Acme")
		if name != c.want || (why == "") != (name != "") {
			t.Errorf("%s of %s: %q, %q; want %q", c.s.UserClaim, c.said, name, why, c.want)
		}
	}
}
