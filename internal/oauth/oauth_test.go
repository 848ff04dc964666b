package oauth

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

func TestNarrowNeverWidens(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, allowed, wanted, want string }{
		{"nothing wanted is all", "svc:tasks:read svc:a2a:write agent:x", "", "svc:tasks:read svc:a2a:write agent:x"},
		{"a part", "svc:tasks:read svc:tasks:write", "svc:tasks:read", "svc:tasks:read"},
		{"more than there is", "svc:tasks:read", "svc:tasks:read svc:admin:admin", "svc:tasks:read"},
		{"nothing of it", "svc:tasks:read", "svc:admin:admin", ""},
		{"a restriction of one's own", "svc:a2a:write", "svc:a2a:write agent:x", "svc:a2a:write agent:x"},
		{"the restriction stays", "svc:a2a:write agent:x", "svc:a2a:write", "svc:a2a:write agent:x"},
		{"one of two agents", "svc:a2a:write agent:x agent:y", "svc:a2a:write agent:y", "svc:a2a:write agent:y"},
		{"another agent", "svc:tasks:read svc:a2a:write agent:x", "svc:tasks:read svc:a2a:write agent:y", "svc:tasks:read"},
		{"all agents", "svc:a2a:write svc:a2a:serve agent:x", "svc:a2a:write svc:a2a:serve agent:*", ""},
		{"all agents of all", "svc:a2a:write agent:*", "svc:a2a:write agent:x", "svc:a2a:write agent:x"},
		{"an agent alone is no right", "svc:a2a:write", "agent:x", ""},
		{"twice is once", "svc:tasks:read", "svc:tasks:read svc:tasks:read", "svc:tasks:read"},
	} {
		if got := Narrow(identity.SplitScopes(c.allowed), identity.SplitScopes(c.wanted)).String(); got != c.want {
			t.Errorf("%s: %q; want %q", c.name, got, c.want)
		}
	}
}

func TestWhatAClientMayNotHaveAnyMoreIsTakenAway(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, client, granted, left string }{
		{"nothing changed", "svc:tasks:read svc:tasks:write", "svc:tasks:read svc:tasks:write", "svc:tasks:read svc:tasks:write"},
		{"a client that is not kept", "", "svc:tasks:read svc:admin:admin agent:x", "svc:tasks:read svc:admin:admin agent:x"},
		{"a right less", "svc:tasks:read", "svc:tasks:read svc:admin:admin", "svc:tasks:read"},
		{"no right left", "svc:tasks:write", "svc:tasks:read", ""},
		{"a right more", "svc:tasks:read svc:admin:admin", "svc:tasks:read", "svc:tasks:read"},
		{
			"one agent only", "svc:tasks:read svc:a2a:write agent:x", "svc:tasks:read svc:a2a:write",
			"svc:tasks:read svc:a2a:write agent:x",
		},
		{"an agent less", "svc:a2a:write agent:x", "svc:a2a:write agent:x agent:y", "svc:a2a:write agent:x"},
		{"another agent", "svc:tasks:read svc:a2a:write agent:x", "svc:tasks:read svc:a2a:write agent:y", "svc:tasks:read"},
		{"all agents become one", "svc:a2a:write agent:x", "svc:a2a:write agent:*", ""},
		{"one agent of all", "svc:a2a:write agent:*", "svc:a2a:write agent:x", "svc:a2a:write agent:x"},
		{"all agents, said in two ways", "svc:a2a:write agent:*", "svc:a2a:write", "svc:a2a:write"},
		{"agents do not matter to other rights", "svc:tasks:read agent:x", "svc:tasks:read", "svc:tasks:read"},
		{"nor do those of no use", "svc:tasks:read agent:x", "svc:tasks:read agent:y", "svc:tasks:read agent:y"},
		{"nothing of nothing", "svc:tasks:read", "", ""},
	} {
		client, granted := identity.SplitScopes(c.client), identity.SplitScopes(c.granted)
		left := leftTo(client, granted)
		if left.String() != c.left {
			t.Errorf("%s: %q is left; want %q", c.name, left, c.left)
		}
		if !fits(client, left) || fits(client, granted) != (c.left == c.granted) {
			t.Errorf("%s: what is left does not fit, or what was granted does", c.name)
		}
	}
}

func TestRedirectAddresses(t *testing.T) {
	t.Parallel()
	for uri, ok := range map[string]bool{
		"https://app.example/done":                     true,
		"https://app.example/done?x=1":                 true,
		"http://127.0.0.1:8123/done":                   true,
		"http://127.0.0.1/done":                        true,
		"http://[::1]:9/done":                          true,
		"http://localhost:3000/cb":                     true,
		"com.example.app:/done":                        true,
		"http://app.example/done":                      false,
		"http://127.0.0.1.evil.example/done":           false,
		"http://localhost.evil.example/done":           false,
		"https://app.example/done#x":                   false,
		"https://app.example/done#":                    false,
		"https://user@app.example/done":                false,
		"http://127.0.0.1:80@evil.example/":            false,
		"https:///done":                                false,
		"cursor://anysphere.cursor-mcp/oauth/callback": true,
		"vscode://vscode.github/done":                  true,
		"javascript:alert(1)":                          false,
		"javascript://app.example/%0aalert(1)":         false,
		"JavaScript://app.example/x":                   false,
		"file:///etc/passwd":                           false,
		"file://host/x":                                false,
		"myapp:///done":                                false,
		"data:text/html,x":                             false,
		"myapp:/done":                                  false,
		"/done":                                        false,
		"":                                             false,
		"https://app.example/a b":                      false,
		"https://app.example/\u00e9":                   false,
	} {
		if err := checkRedirect(uri); (err == nil) != ok {
			t.Errorf("%q: %v; want ok %t", uri, err, ok)
		}
	}
}

// The library compares the port of a native client's loopback address wrongly: with
// a registered port nothing matches, not even the registered address itself.
func TestOnlyTheLoopbackPortIsFree(t *testing.T) {
	t.Parallel()
	registered := []string{"http://127.0.0.1:8123/done", "http://localhost/cb", "https://app.example/done"}
	for uri, ok := range map[string]bool{
		"http://127.0.0.1:8123/done":         true,
		"http://127.0.0.1:5/done":            true,
		"http://127.0.0.1/done":              true,
		"http://localhost:4000/cb":           true,
		"https://app.example/done":           true,
		"https://app.example:444/done":       false,
		"https://app.example/done?x=1":       false,
		"http://127.0.0.1:5/other":           false,
		"http://127.0.0.1:5/done?x=1":        false,
		"http://127.0.0.1:5/done#":           false,
		"http://127.0.0.2:5/done":            false,
		"http://localhost:5/done":            false,
		"http://a@127.0.0.1:5/done":          false,
		"https://127.0.0.1:8123/done":        false,
		"http://127.0.0.1:5@evil.example/":   false,
		"http://127.0.0.1.evil.example/done": false,
	} {
		if got := MatchRedirect(registered, uri); got != ok {
			t.Errorf("%q matches: %t; want %t", uri, got, ok)
		}
	}
}

func TestARegistrationNeverGetsWhatAnAdminMustGive(t *testing.T) {
	t.Parallel()
	ok := []string{"https://app.example/done"}
	for name, r := range map[string]Registration{
		"client credentials":  {RedirectURIs: ok, GrantTypes: []string{"client_credentials"}},
		"among others":        {RedirectURIs: ok, GrantTypes: []string{"authorization_code", "client_credentials"}},
		"implicit":            {RedirectURIs: ok, ResponseTypes: []string{"token"}},
		"only what we lack":   {RedirectURIs: ok, GrantTypes: []string{"urn:ietf:params:oauth:grant-type:device_code"}},
		"keys":                {RedirectURIs: ok, Method: "private_key_jwt"},
		"no address":          {},
		"a name of two lines": {RedirectURIs: ok, Name: "a\nb"},
	} {
		if err := r.check(); err == nil {
			t.Errorf("%s: it was let through", name)
		}
	}
	// Editors list all that they know.
	if err := (&Registration{RedirectURIs: ok, GrantTypes: []string{
		"authorization_code", "refresh_token",
		"urn:ietf:params:oauth:grant-type:device_code",
	}}).check(); err != nil {
		t.Error(err)
	}
	s := New(Options{})
	for _, scope := range []string{"svc:admin:admin", "svc:a2a:serve", "svc:tasks:read svc:admin:admin", "openid"} {
		if _, _, err := s.Register(t.Context(), Registration{RedirectURIs: ok, Scope: scope}); err == nil {
			t.Errorf("%s was let through", scope)
		}
	}
}

func TestEntitled(t *testing.T) {
	t.Parallel()
	user := identity.Member{Principal: identity.Principal{Kind: identity.User}}
	admin, off := user, user
	admin.Admin, off.Disabled = true, true
	if Entitled(user).Has(identity.Admin) || !Entitled(admin).Has(identity.Admin) || len(Entitled(off)) != 0 {
		t.Error(Entitled(user), Entitled(admin), Entitled(off))
	}
	if got := Entitled(identity.Member{Principal: identity.Principal{Kind: identity.Service}}); got != nil {
		t.Error(got)
	}
	if _, err := Chosen(Entitled(user), identity.Scopes{identity.Admin}); err == nil {
		t.Error("more than was offered")
	}
	if _, err := Chosen(Entitled(user), identity.Scopes{"agent:x"}); err == nil {
		t.Error("a restriction of nothing")
	}
}

func TestDocumentAddresses(t *testing.T) {
	t.Parallel()
	for id, ok := range map[string]bool{
		"https://app.example/client.json":                           true,
		"https://app.example:8443/a/b":                              true,
		"https://app.example/client?v=1":                            true,
		"https://[2001:db8::1]/client":                              true,
		"http://app.example/client.json":                            false,
		"HTTPS://app.example/client.json":                           false,
		"https://App.example/client.json":                           false,
		"https://app.example":                                       false,
		"https://app.example/":                                      false,
		"https://app.example//":                                     false,
		"https://app.example/a/../client.json":                      false,
		"https://app.example/./client.json":                         false,
		"https://app.example/%2e%2e/client.json":                    false,
		"https://app.example/client.json#x":                         false,
		"https://app.example/client.json#":                          false,
		"https://user@app.example/client.json":                      false,
		"https:///client.json":                                      false,
		"https://app.example/a b":                                   false,
		"https://app.example/\u00e9":                                false,
		"https://app.example/\n":                                    false,
		"https://app.example/" + strings.Repeat("x", maxDocumentID): false,
		"client-01k5xb7d2n8f4j6s0a9g3r5w1c":                         false,
		"":                                                          false,
	} {
		if got := ValidDocumentID(id); got != ok {
			t.Errorf("%q: %t", id, got)
		}
	}
}

func TestADocumentIsForEveryServer(t *testing.T) {
	t.Parallel()
	const id = "https://app.example/client.json"
	c, err := described(id, Registration{
		Name: "App", RedirectURIs: []string{
			"http://app.example/no", "app:/no", "http://127.0.0.1/done",
			"https://app.example/done",
		},
		GrantTypes:    []string{"authorization_code", "urn:ietf:params:oauth:grant-type:device_code"},
		ResponseTypes: []string{"code", "id_token"},
		Method:        Public, Scope: "openid svc:tasks:read svc:admin:admin svc:a2a:serve agent:fixer offline_access",
	})
	want := Client{
		ID: id, Name: "App", Method: Public, RedirectURIs: []string{"http://127.0.0.1/done", "https://app.example/done"},
		Scopes: identity.Scopes{identity.TasksRead, "agent:fixer"},
	}
	if diff := cmp.Diff(want, c); err != nil || diff != "" {
		t.Error(err, diff)
	}
	ok := []string{"https://app.example/done"}
	if c, err := described(id, Registration{RedirectURIs: ok, Scope: "openid"}); err != nil ||
		c.Scopes.String() != Registrable.String() || c.Name != "app.example" {
		t.Errorf("%+v %v", c, err)
	}
	for name, r := range map[string]Registration{
		"no address":              {},
		"no address that we take": {RedirectURIs: []string{"http://app.example/done"}},
		"no code":                 {RedirectURIs: ok, GrantTypes: []string{"client_credentials"}},
		"no code for an answer":   {RedirectURIs: ok, ResponseTypes: []string{"token"}},
		"a secret":                {RedirectURIs: ok, Method: SecretBasic},
		"a key":                   {RedirectURIs: ok, Method: "private_key_jwt"},
		"a name of two lines":     {RedirectURIs: ok, Name: "a\nb"},
		"a name without an end":   {RedirectURIs: ok, Name: strings.Repeat("x", identity.MaxName+1)},
	} {
		if c, err := described(id, r); errs.KindOf(err) != errs.Invalid {
			t.Errorf("%s: %+v %v", name, c, err)
		}
	}
	if _, err := described("http://app.example/client.json", Registration{RedirectURIs: ok}); errs.KindOf(err) != errs.NotFound {
		t.Error(err)
	}
}
