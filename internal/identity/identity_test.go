package identity_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

func TestSecretIsWellFormedAndAnyTypoIsNot(t *testing.T) {
	t.Parallel()
	pattern := regexp.MustCompile("^" + identity.SecretPattern + "$")
	seen := map[string]bool{}
	for range 1000 {
		s := identity.NewSecret()
		if !pattern.MatchString(s) || !identity.WellFormed(s) || seen[s] {
			t.Fatalf("%q: pattern %v, well-formed %v, seen %v", s, pattern.MatchString(s), identity.WellFormed(s), seen[s])
		}
		seen[s] = true
		i := 7 + len(seen)%36
		typo := s[:i] + string('a'+(s[i]-'a'+1)%26) + s[i+1:]
		if typo != s && identity.WellFormed(typo) {
			t.Fatalf("%q is a typo of %q and passes", typo, s)
		}
	}
	for _, s := range []string{"", "parley_", "Bearer", strings.Repeat("x", 43), "parley_" + strings.Repeat("0", 36)} {
		if identity.WellFormed(s) {
			t.Errorf("%q passes", s)
		}
	}
}

func TestScopes(t *testing.T) {
	t.Parallel()
	for _, ok := range []string{"svc:tasks:read", "svc:admin:admin", "svc:a2a:serve", "agent:*", "agent:a.b_c-9"} {
		if _, err := identity.ParseScope(ok); err != nil {
			t.Errorf("%s: %v", ok, err)
		}
	}
	for _, bad := range []string{"", "svc:tasks", "SVC:TASKS:READ", "agent:", "agent:A", "agent:../x", "agent:a b", "*"} {
		if _, err := identity.ParseScope(bad); errs.KindOf(err) != errs.Invalid {
			t.Errorf("%q: %v; want Invalid", bad, err)
		}
	}
	for bad, want := range map[string]string{
		"tasks:read":     `unknown scope "tasks:read"; did you mean "svc:tasks:read"?`,
		"SVC:Tasks:Read": `unknown scope "SVC:Tasks:Read"; did you mean "svc:tasks:read"?`,
		"write":          `unknown scope "write"; use svc:tasks:read, svc:tasks:write, svc:admin:admin, `, // ambiguous
	} {
		if _, err := identity.ParseScope(bad); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("ParseScope(%q): got error %v, want %q", bad, err, want)
		}
	}
}

func TestReachesAgent(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		scopes string
		agent  string
		want   bool
	}{
		{"svc:a2a:write", "a", true}, // no restriction
		{"svc:a2a:write agent:a", "a", true},
		{"svc:a2a:write agent:a", "b", false},
		{"svc:a2a:write agent:a agent:b", "b", true},
		{"svc:a2a:write agent:*", "b", true},
		{"svc:a2a:write agent:a", "agent:a", false},
	} {
		if got := identity.SplitScopes(c.scopes).ReachesAgent(c.agent); got != c.want {
			t.Errorf("%q reaches %q: %v; want %v", c.scopes, c.agent, got, c.want)
		}
	}
}

// The rows stand as in section 5 of the specification; beneath them, what the
// design adds.
func TestAuthorize(t *testing.T) {
	t.Parallel()
	caller := func(ref string, scopes ...identity.Scope) *identity.Caller {
		p, err := identity.ParseRef("acme", ref)
		if err != nil {
			t.Fatal(err)
		}
		return &identity.Caller{Principal: p, Scopes: scopes}
	}
	for _, c := range []struct {
		action identity.Action
		scope  identity.Scope
		member bool
	}{
		{identity.ListProposals, identity.TasksRead, false},
		{identity.SubmitProposal, identity.TasksWrite, true},
		{identity.VoteOnProposal, identity.TasksWrite, true},
		{identity.ResolveProposal, identity.Admin, false},
		{identity.ReadProposal, identity.TasksRead, false},
		{identity.ListFollowups, identity.TasksRead, false},
		{identity.ReadFollowup, identity.TasksRead, false},
		{identity.CreateFollowup, identity.TasksWrite, false},
		{identity.ChangeFollowup, identity.TasksWrite, false},
	} {
		for _, have := range identity.AllScopes {
			_, err := identity.Authorize(caller("agent:bob", have), "acme", c.action)
			if have == c.scope {
				if err != nil {
					t.Errorf("%s with %s: %v", c.action, have, err)
				}
				continue
			}
			if e := errs.As(err); err == nil || e.Kind != errs.Forbidden || e.Scope != string(c.scope) ||
				!strings.Contains(e.Message, string(c.scope)) {
				t.Errorf("%s with %s: %v; want a refusal that names %s", c.action, have, err, c.scope)
			}
		}
		_, err := identity.Authorize(caller("service:crm", c.scope), "acme", c.action)
		if c.member != (err != nil) {
			t.Errorf("%s by a service: %v", c.action, err)
		}
		if _, err := identity.Authorize(caller("user:ann", identity.AllScopes...), "other",
			c.action); errs.As(err) != errs.ErrNotFound {
			t.Errorf("%s in another org: %v", c.action, err)
		}
		if _, err := identity.Authorize(nil, "acme", c.action); errs.KindOf(err) != errs.Unauthenticated {
			t.Errorf("%s by nobody: %v", c.action, err)
		}
	}
	if _, err := identity.Authorize(caller("user:ann", identity.AllScopes...), "acme", "fly"); errs.KindOf(err) != errs.Internal {
		t.Errorf("an action without a rule: %v; must be refused", err)
	}
}

func TestParseRef(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "ann", "user:", "user:Ann", "robot:x", "user:a/b", "user:" + strings.Repeat("a", 65)} {
		if _, err := identity.ParseRef("acme", bad); errs.KindOf(err) != errs.Invalid {
			t.Errorf("%q: %v; want Invalid", bad, err)
		}
	}
	for bad, want := range map[string]string{
		"tasks:read":     `unknown scope "tasks:read"; did you mean "svc:tasks:read"?`,
		"SVC:Tasks:Read": `unknown scope "SVC:Tasks:Read"; did you mean "svc:tasks:read"?`,
		"write":          `unknown scope "write"; use svc:tasks:read, svc:tasks:write, svc:admin:admin, `, // ambiguous
	} {
		if _, err := identity.ParseScope(bad); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("ParseScope(%q): got error %v, want %q", bad, err, want)
		}
	}
}
