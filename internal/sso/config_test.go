package sso

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/parley-dev/parley/internal/identity"
)

const whole = `{"issuers": [{
  "name": "acme", "title": "Acme", "issuer": "https://login.acme.example", "org": "main",
  "sign_in": {
    "client_id": "parley", "client_secret_file": "acme.secret", "scopes": ["profile", "groups"],
    "user_claim": "upn", "domain": "acme.example",
    "create_users": true, "require": {"claim": "hd", "value": "acme.example"},
    "admin": {"claim": "groups", "value": "parley-admins"}
  },
  "tokens": {
    "audience": "https://parley.example.com", "users": true,
    "principals": [{"claim": "sub", "value": "crm-backend", "principal": "service:crm"}],
    "scopes": [{"claim": "scope", "value": "parley.read", "grants": ["svc:tasks:read"]},
      {"claim": "groups", "value": "eng", "grants": ["svc:a2a:write", "agent:helper"]}]
  }}, {"name": "b", "issuer": "http://127.0.0.1:9000/realms/b/", "org": "main", "sign_in": {"client_id": "parley"}}]}`

func TestTheWholeFileIsRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"issuers.json": whole, "acme.secret": "hunter2\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Load(filepath.Join(dir, "issuers.json"))
	if err != nil {
		t.Fatal(err)
	}
	want := []Issuer{{
		Name: "acme", Title: "Acme", Issuer: "https://login.acme.example", Org: "main",
		SignIn: &SignIn{
			ClientID: "parley", SecretFile: "acme.secret", Scopes: []string{"openid", "profile", "groups"}, UserClaim: "upn",
			Domain:      "acme.example",
			CreateUsers: true, Require: &Match{"hd", "acme.example"}, Admin: &Match{"groups", "parley-admins"}, secret: "hunter2",
		},
		Tokens: &Tokens{
			Audience: "https://parley.example.com", Users: true,
			Principals: []PrincipalRule{{
				"sub", "crm-backend", "service:crm",
				identity.Principal{Org: "main", Kind: identity.Service, ID: "crm"},
			}},
			Scopes: []ScopeRule{
				{"scope", "parley.read", []string{"svc:tasks:read"}, identity.Scopes{identity.TasksRead}},
				{"groups", "eng", []string{"svc:a2a:write", "agent:helper"}, identity.Scopes{identity.A2AWrite, "agent:helper"}},
			},
		},
	}, {
		Name: "b", Title: "b", Issuer: "http://127.0.0.1:9000/realms/b/", Org: "main",
		SignIn: &SignIn{ClientID: "parley", Scopes: []string{"openid", "profile", "email"}, UserClaim: "preferred_username"},
	}}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(),
		cmp.AllowUnexported(SignIn{}, PrincipalRule{}, ScopeRule{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMistakesInTheFileAreNamed(t *testing.T) {
	t.Parallel()
	// Each case replaces one thing of the whole file.
	for _, c := range []struct{ old, replacement, want string }{
		{`"title"`, `"titel"`, `there is no setting /issuers/0/titel`},
		{`"title": "Acme"`, `"name": "x"`, `/issuers/0/name is set twice`},
		{`"create_users": true`, `"create_users": "yes"`, `/issuers/0/sign_in/create_users is a JSON string`},
		{`"create_users": true`, `"create_users": null`, `/issuers/0/sign_in/create_users must not be null`},
		{`{"issuers"`, `{"issuer": [], "issuers"`, `there is no setting /issuer`},
		{whole, `{"issuers": []}`, `1 to 32 issuers`},
		{whole, `[]`, `is a JSON array`},
		{whole, ``, `JSON`},
		{whole, whole + "x", `JSON`},
		{`"name": "acme"`, `"name": "Acme Inc"`, `issuers[0].name must`},
		{`"name": "b"`, `"name": "acme"`, `issuers[1].name is that of issuers[0]`},
		{`http://127.0.0.1:9000/realms/b/`, `https://login.acme.example`, `issuers[1] has the issuer and the org of issuers[0]`},
		{`"title": "Acme"`, `"title": "Ac\nme"`, `issuers[0].title must`},
		{`https://login.acme.example`, `http://login.acme.example`, `issuers[0].issuer must start with https://`},
		{`https://login.acme.example`, `login.acme.example`, `issuers[0].issuer must be a URL`},
		{`https://login.acme.example`, `https://login.acme.example?x`, `without query`},
		{`"org": "main",
  "sign_in"`, `"org": "",
  "sign_in"`, `issuers[0].org must`},
		{`, "sign_in": {"client_id": "parley"}}]`, `}]`, `issuers[1].sign_in or tokens must`},
		{`{"client_id": "parley"}`, `{}`, `issuers[1].sign_in.client_id is required`},
		{`{"client_id": "parley"}`, `{"client_id": "parley", "user_claim": "email"}`, `issuers[1].sign_in.domain is required`},
		{`"domain": "acme.example"`, `"domain": "@acme.example"`, `sign_in.domain must`},
		{`["profile", "groups"]`, `["profile groups"]`, `sign_in.scopes[0] must`},
		{`{"claim": "hd", "value": "acme.example"}`, `{"claim": "hd"}`, `sign_in.require must`},
		{`"audience": "https://parley.example.com", `, ``, `tokens.audience is required`},
		{
			`"audience": "https://parley.example.com"`, `"audience": "parley"`,
			`tokens.audience must differ from sign_in.client_id`,
		},
		{`"service:crm"`, `"user:ada"`, `tokens.principals[0].principal cannot be a user`},
		{`"service:crm"`, `"crm"`, `tokens.principals[0].principal`},
		{`"svc:tasks:read"`, `"svc:tasks:reed"`, `tokens.scopes[0].grants`},
		{`["svc:tasks:read"]`, `[]`, `tokens.scopes[0] must`},
		{
			`"sign_in": {"client_id": "parley"}`,
			`"tokens": {"audience": "x", "users": true, ` +
				`"scopes": [{"claim": "a", "value": "b", "grants": ["svc:tasks:read"]}]}`,
			`tokens.users needs sign_in`,
		},
		{
			`"sign_in": {"client_id": "parley"}`,
			`"tokens": {"audience": "x", ` +
				`"scopes": [{"claim": "a", "value": "b", "grants": ["svc:tasks:read"]}]}`,
			`tokens.users must be true`,
		},
		{
			`"sign_in": {"client_id": "parley"}`,
			`"tokens": {"audience": "x", ` +
				`"principals": [{"claim": "sub", "value": "a", "principal": "service:b"}]}`,
			`tokens.scopes must have`,
		},
	} {
		text := strings.Replace(whole, c.old, c.replacement, 1)
		if text == whole {
			t.Errorf("%s is not in the file", c.old)
		}
		if _, err := parse([]byte(text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s → %s: %v; want one with %q", c.old, c.replacement, err, c.want)
		}
	}
}

func TestFilesThatCannotBeReadAreNamed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	for _, c := range []struct{ name, want string }{
		{filepath.Join(dir, "none.json"), "none.json"},
		{write("a.json", whole), "issuers[0].sign_in.client_secret_file"},
		{write("b.json", strings.Replace(whole, "acme.secret", write("empty", "\n"), 1)), "the file is empty"},
		{write("c.json", strings.Repeat(" ", maxFile+1)), "larger than"},
	} {
		if _, err := Load(c.name); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want one with %q", c.name, err, c.want)
		}
	}
}
