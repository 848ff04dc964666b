package identity

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/errs/errstest"
)

func TestEveryStateOfAKey(t *testing.T) {
	t.Parallel()
	past, future := ruleNow.Add(-time.Second), ruleNow.Add(time.Second)
	for _, revoked := range []time.Time{{}, past, future} {
		for _, expires := range []time.Time{{}, past, ruleNow, future} {
			k := Key{RevokedAt: revoked, ExpiresAt: expires}
			want := KeyLive
			switch {
			case !revoked.IsZero():
				want = KeyRevoked
			case expires == past || expires == ruleNow:
				want = KeyExpired
			}
			if got := k.State(ruleNow); got != want || k.Live(ruleNow) != (want == KeyLive) {
				t.Errorf("revoked %v, expires %v: got %s, live %v; want %s", revoked, expires, got, k.Live(ruleNow), want)
			}
		}
	}
}

// Every state of a key × every overlap: what rotation makes of it, or why not.
func TestEveryRotationOfAKey(t *testing.T) {
	t.Parallel()
	hour := ruleNow.Add(time.Hour)
	for _, disabled := range []bool{false, true} {
		for _, revoked := range []time.Time{{}, ruleNow.Add(-time.Hour)} {
			for _, expires := range []time.Time{{}, ruleNow, hour} {
				for _, replaced := range []string{"", "key-2"} {
					for _, overlap := range []time.Duration{0, time.Minute, time.Hour, 2 * time.Hour} {
						old := Key{
							ID: "key-1", Principal: Principal{Org: "acme", Kind: Agent, ID: "scout"}, Name: "CI",
							Prefix: "parley_abcdef",
							Scopes: Scopes{TasksRead, "agent:scout"}, CreatedAt: ruleNow.Add(-time.Hour), CreatedBy: "user:ann",
							Replaces:   "key-0",
							LastUsedAt: ruleNow.Add(-time.Minute), ExpiresAt: expires, RevokedAt: revoked, ReplacedBy: replaced,
							Disabled: disabled,
						}
						name := fmt.Sprintf("disabled %v, revoked %v, expires %v, replaced by %q, overlap %v",
							disabled, !revoked.IsZero(), expires, replaced, overlap)
						code := ""
						switch {
						case disabled:
							code = "identity.principal_disabled"
						case !revoked.IsZero() || expires == ruleNow:
							code = "identity.key_not_live"
						case replaced != "":
							code = "identity.key_replaced"
						}
						got, err := decideRotation(old, ruleNow, overlap)
						if errstest.Code(err) != code {
							t.Errorf("%s: got %q, want %q", name, errstest.Code(err), code)
						}
						if code != "" {
							continue
						}
						want := Rotation{
							OldExpires: ruleNow.Add(overlap),
							New: Key{
								Principal: old.Principal, Name: "CI", Scopes: old.Scopes, CreatedAt: ruleNow, ExpiresAt: expires,
								Replaces: "key-1",
							},
						}
						if expires == hour && overlap > time.Hour { // it never lives longer than it would have
							want.OldExpires = hour
						}
						if diff := cmp.Diff(want, got); diff != "" {
							t.Errorf("%s (-want +got)\n%s", name, diff)
						}
					}
				}
			}
		}
	}
}

func TestOverlaps(t *testing.T) {
	t.Parallel()
	for d, ok := range map[time.Duration]bool{
		-1: false, 0: true, 1: true, DefaultOverlap: true, MaxOverlap: true, MaxOverlap + 1: false,
	} {
		var want []string
		if !ok {
			want = []string{"overlap"}
		}
		if diff := cmp.Diff(want, errstest.Fields(CheckOverlap(d))); diff != "" {
			t.Errorf("%v: broken fields (-want +got)\n%s", d, diff)
		}
	}
}

func TestRequestsForKeys(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		r    KeyRequest
		want []string
	}{
		{"a scope is enough", KeyRequest{Scopes: []string{"svc:tasks:read"}}, nil},
		{"all of it", KeyRequest{Name: "CI", Scopes: []string{"svc:tasks:read", "agent:*"}, ExpiresAt: ruleNow.Add(1)}, nil},
		{"as many scopes as can be", KeyRequest{Scopes: slices.Repeat([]string{"agent:a"}, MaxScopes)}, nil},
		{"too many scopes", KeyRequest{Scopes: slices.Repeat([]string{"agent:a"}, MaxScopes+1)}, []string{"scopes"}},
		{"no scope", KeyRequest{}, []string{"scopes"}},
		{"unknown scopes", KeyRequest{Scopes: []string{"svc:tasks:read", "x", "agent:A"}}, []string{"scopes[1]", "scopes[2]"}},
		{"a deceptive name", KeyRequest{Name: "\u202e", Scopes: []string{"svc:tasks:read"}}, []string{"name"}},
		{"over now", KeyRequest{Scopes: []string{"svc:tasks:read"}, ExpiresAt: ruleNow}, []string{"expires_at"}},
		{"all wrong", KeyRequest{Name: "\u202e", ExpiresAt: ruleNow.Add(-1)}, []string{"scopes", "name", "expires_at"}},
	} {
		if diff := cmp.Diff(c.want, errstest.Fields(c.r.Validate(ruleNow))); diff != "" {
			t.Errorf("%s: broken fields (-want +got)\n%s", c.name, diff)
		}
	}
}

func TestANewKeyHasEachScopeOnce(t *testing.T) {
	t.Parallel()
	r := KeyRequest{
		Principal: Principal{Org: "acme", Kind: User, ID: "ann"}, Name: "CI", CreatedBy: "user:bob",
		ExpiresAt: ruleNow.Add(time.Hour),
		Scopes:    []string{"svc:tasks:read", "agent:a", "svc:tasks:read", "agent:a"},
	}
	got, secret := newKey(r, "key-1", ruleNow)
	want := Key{
		ID: "key-1", Principal: r.Principal, Name: "CI", Prefix: secret[:13], Scopes: Scopes{TasksRead, "agent:a"},
		CreatedAt: ruleNow, CreatedBy: "user:bob", ExpiresAt: r.ExpiresAt,
	}
	if diff := cmp.Diff(want, got); diff != "" || !WellFormed(secret) {
		t.Errorf("well-formed %v, want true (-want +got)\n%s", WellFormed(secret), diff)
	}
}

// What a credential lacks of the scopes that a key of its own shall have.
func TestAKeyOfOnesOwnHasNoMoreThanTheCredential(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		holds, asks string
		lacks       string // by a user, an agent and a service alike
		serves      bool   // agents may nevertheless
	}{
		{"svc:tasks:read", "svc:tasks:read", "", false},
		{"svc:tasks:read svc:tasks:write", "svc:tasks:write", "", false},
		{"svc:tasks:read", "svc:tasks:write", "the scope svc:tasks:write", false},
		{"svc:tasks:read", "svc:tasks:read svc:admin:admin", "the scope svc:admin:admin", false},
		{"svc:admin:admin", "svc:tasks:read", "the scope svc:tasks:read", false},
		{"svc:a2a:write", "svc:a2a:write agent:a", "", false},
		{"svc:a2a:write agent:a", "svc:a2a:write", "access to all agents", false},
		{"svc:a2a:write agent:a", "svc:a2a:write agent:a", "", false},
		{"svc:a2a:write agent:a", "svc:a2a:write agent:b", "the scope agent:b", false},
		{"svc:a2a:write agent:a", "svc:a2a:write agent:a agent:b", "the scope agent:b", false},
		{"svc:a2a:write agent:a", "svc:a2a:write agent:*", "the scope agent:*", false},
		{"svc:a2a:write agent:a agent:b", "svc:a2a:write agent:b", "", false},
		{"svc:a2a:write agent:*", "svc:a2a:write", "", false},
		{"svc:a2a:write agent:*", "svc:a2a:write agent:a", "", false},
		{"svc:a2a:write agent:*", "svc:a2a:write agent:*", "", false},
		{"svc:a2a:serve agent:a", "svc:a2a:serve agent:a", "", false},
		{"svc:a2a:serve agent:*", "svc:a2a:serve agent:a", "", false},
		{"svc:a2a:serve", "svc:a2a:serve", "", false},
		{"svc:a2a:serve", "svc:a2a:serve agent:a", "the scope agent:a", true},
		{"svc:a2a:serve", "svc:a2a:serve agent:*", "the scope agent:*", true},
	} {
		for _, kind := range Kinds {
			want := c.lacks
			if kind == Agent && c.serves {
				want = ""
			}
			caller := &Caller{Principal: Principal{Org: "acme", Kind: kind, ID: "x"}, Scopes: SplitScopes(c.holds)}
			if got := caller.lacks(SplitScopes(c.asks)); got != want {
				t.Errorf("a %s with %q that asks for %q lacks: got %q, want %q", kind, c.holds, c.asks, got, want)
			}
			code := ""
			if want != "" {
				code = "identity.scope_not_held"
			}
			if got := errstest.Code(caller.bound(&KeyRequest{Scopes: strings.Fields(c.asks)})); got != code {
				t.Errorf("a %s with %q that makes a key with %q: got %q, want %q", kind, c.holds, c.asks, got, code)
			}
			old := &Key{Principal: caller.Principal, Scopes: SplitScopes(c.asks)}
			if got := errstest.Code(caller.mayRotate(old)); got != code {
				t.Errorf("a %s with %q that rotates a key with %q: got %q, want %q", kind, c.holds, c.asks, got, code)
			}
		}
	}
}

// Every end of a credential × every end of a key of its own.
func TestAKeyOfOnesOwnEndsWithTheCredential(t *testing.T) {
	t.Parallel()
	early, late := ruleNow.Add(time.Hour), ruleNow.Add(2*time.Hour)
	for _, c := range []struct {
		name            string
		credential, key time.Time
		made            time.Time // the end of a new key
		create, rotate  string
	}{
		{"both without an end", time.Time{}, time.Time{}, time.Time{}, "", ""},
		{"a key that ends, of a credential that does not", time.Time{}, early, early, "", ""},
		{"a key without an end, of a credential that ends", early, time.Time{}, early, "", "identity.key_outlives"},
		{"a key that ends before the credential", late, early, early, "", ""},
		{"a key that ends with the credential", early, early, early, "", ""},
		{"a key that ends after the credential", early, late, late, "request.invalid", "identity.key_outlives"},
	} {
		caller := &Caller{
			Principal: Principal{Org: "acme", Kind: User, ID: "ann"}, Scopes: Scopes{TasksRead},
			ExpiresAt: c.credential,
		}
		r := KeyRequest{Scopes: []string{"svc:tasks:read"}, ExpiresAt: c.key}
		if got := errstest.Code(caller.bound(&r)); got != c.create || !r.ExpiresAt.Equal(c.made) {
			t.Errorf("%s, to make: got %q, end %v; want %q, %v", c.name, got, r.ExpiresAt, c.create, c.made)
		}
		old := &Key{Principal: caller.Principal, Scopes: Scopes{TasksRead}, ExpiresAt: c.key}
		if got := errstest.Code(caller.mayRotate(old)); got != c.rotate {
			t.Errorf("%s, to rotate: got %q, want %q", c.name, got, c.rotate)
		}
		for _, p := range []Principal{
			{Org: "acme", Kind: User, ID: "bob"}, {Org: "acme", Kind: Agent, ID: "ann"}, {Org: "other", Kind: User, ID: "ann"},
		} {
			old.Principal = p
			if got := errstest.Code(caller.mayRotate(old)); got != "resource.not_found" {
				t.Errorf("%s, of %s of %s, to rotate: got %q, want resource.not_found", c.name, p.Ref(), p.Org, got)
			}
		}
	}
}

func TestPagesOfKeys(t *testing.T) {
	t.Parallel()
	k := &Key{ID: "key-abc", ExpiresAt: time.UnixMicro(1_700_000_000_000_001)}
	byEnd := func(id string) string { return keysByEnd.At().Time(k.ExpiresAt).Text(id).String() }
	for _, c := range []struct {
		name   string
		within time.Duration
		cursor string
		want   bool
	}{
		{"by age", 0, "key-abc", true},
		{"by age, with an end", 0, byEnd("key-abc"), false},
		{"by age, no id", 0, "abc", false},
		{"by age, nothing", 0, "", false},
		{"by end", time.Hour, byEnd("key-abc"), true},
		{"by end, without one", time.Hour, "key-abc", false},
		{"by end, of another list", time.Hour, auditPages.At().Time(k.ExpiresAt).Text("key-abc").String(), false},
		{"by end, no id", time.Hour, byEnd(""), false},
	} {
		f := KeyFilter{EndsWithin: c.within}
		if got := f.Continue(c.cursor); got != c.want {
			t.Errorf("%s, %q: got %v, want %v", c.name, c.cursor, got, c.want)
		}
		if !c.want {
			continue
		}
		if got := f.Cursor(k); got != c.cursor || f.Before != k.ID || c.within > 0 && !f.BeforeEnd.Equal(k.ExpiresAt) {
			t.Errorf("%s: got %q, behind %q at %v; want %q", c.name, got, f.Before, f.BeforeEnd, c.cursor)
		}
	}
}

func TestIDsOfKeysAndInvitations(t *testing.T) {
	t.Parallel()
	for prefix, valid := range map[string]func(string) bool{"key-": ValidKeyID, "inv-": ValidInvitationID} {
		for rest, want := range map[string]bool{
			"a": true, "0z": true, strings.Repeat("a", 64): true, "": false, "A": false, "a-b": false, "a b": false, "é": false,
			strings.Repeat("a", 65): false,
		} {
			if got := valid(prefix + rest); got != want {
				t.Errorf("%s%s: got %v, want %v", prefix, rest, got, want)
			}
			if valid("x" + prefix + rest) {
				t.Errorf("x%s%s: got true, want false", prefix, rest)
			}
		}
	}
}

// Every number around every limit.
func TestQuotas(t *testing.T) {
	t.Parallel()
	for most := -1; most <= 4; most++ {
		q := Quota{Most: most, Code: "quota.x", Message: "%d is the limit"}
		for n := range 7 {
			want := ""
			if most > 0 && n >= most {
				want = "quota.x"
			}
			if got := errstest.Code(q.Check(n)); got != want {
				t.Errorf("one more than %d of %d: got %q, want %q", n, most, got, want)
			}
		}
	}
	all := Quotas{OrgKeys: 10, PrincipalKeys: 3, Invitations: 5}
	type limit struct {
		most         int
		perPrincipal bool
		code         string
	}
	for name, c := range map[string]struct {
		got  []Quota
		want []limit
	}{
		"new keys":    {all.keys(), []limit{{3, true, "quota.keys"}, {10, false, "quota.keys"}}},
		"rotations":   {all.rotations(), []limit{{6, true, "quota.keys"}, {20, false, "quota.keys"}}},
		"invitations": {all.invitations(), []limit{{5, false, "quota.invitations"}}},
		"no limits":   {Quotas{}.rotations(), []limit{{0, true, "quota.keys"}, {0, false, "quota.keys"}}},
	} {
		var got []limit
		for _, q := range c.got {
			got = append(got, limit{q.Most, q.PerPrincipal, q.Code})
			if msg := fmt.Sprintf(q.Message, q.Most); strings.Contains(msg, "%!") {
				t.Errorf("%s: the message is %q, want it to take the limit", name, msg)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
}
