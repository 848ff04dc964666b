package sso

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/idptest"
)

// people are the members of an org, and who signs in with what.
type people struct {
	members  map[string]identity.Member
	subjects map[string]string
}

func (p people) Member(_ context.Context, who identity.Principal) (identity.Member, error) {
	if m, ok := p.members[who.Ref()]; ok && who.Org == m.Org {
		return m, nil
	}
	return identity.Member{}, errs.ErrNotFound
}

func (p people) MemberBySubject(ctx context.Context, org, _, subject string) (identity.Member, error) {
	who, err := identity.ParseRef(org, p.subjects[subject])
	if err != nil {
		return identity.Member{}, errs.ErrNotFound
	}
	return p.Member(ctx, who)
}

func somebody(ref string, edit ...func(*identity.Member)) identity.Member {
	who, _ := identity.ParseRef("main", ref)
	m := identity.Member{Principal: who, Name: ref}
	for _, e := range edit {
		e(&m)
	}
	return m
}

const audience = "https://parley.example"

// clock is moved by the test.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func verifier(t *testing.T, is *idptest.Issuer) (*Verifier, *clock, *people) {
	t.Helper()
	text := fmt.Sprintf(`{"issuers": [{"name": "acme", "title": "Acme", "issuer": %q, "org": "main",
		"sign_in": {"client_id": "parley"}, "tokens": {
		"audience": %q, "users": true,
		"principals": [{"claim": "client_id", "value": "crm-backend", "principal": "service:crm"},
			{"claim": "client_id", "value": "ghost", "principal": "service:ghost"},
			{"claim": "client_id", "value": "old", "principal": "service:old"}],
		"scopes": [{"claim": "scope", "value": "read", "grants": ["svc:tasks:read"]},
			{"claim": "groups", "value": "boss", "grants": ["svc:admin:admin", "svc:a2a:serve"]},
			{"claim": "groups", "value": "eng", "grants": ["svc:tasks:read", "svc:a2a:write", "agent:helper"]}]
	}}]}`, is.URL, audience)
	list, err := parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	c := &clock{at: time.Now()}
	who := &people{map[string]identity.Member{}, map[string]string{
		"s-ada": "user:ada", "s-boss": "user:boss",
		"s-gone": "user:gone",
	}}
	for _, m := range []identity.Member{
		somebody("user:ada"),
		somebody("user:boss", func(m *identity.Member) { m.Admin = true }),
		somebody("user:gone", func(m *identity.Member) { m.Disabled = true }),
		somebody("service:crm"),
		somebody("service:old", func(m *identity.Member) { m.Disabled = true }),
	} {
		who.members[m.Ref()] = m
	}
	return NewVerifier(New(list, slog.New(slog.DiscardHandler), c.now), who, c.now), c, who
}

func TestATokenSpeaksForAndMay(t *testing.T) {
	t.Parallel()
	is := idptest.New(t)
	v, _, _ := verifier(t, is)
	for _, c := range []struct {
		name, subject string
		more          idptest.Claims
		want          string // principal and scopes, or the code of the refusal
	}{
		{"a user", "s-ada", idptest.Claims{"scope": "openid read"}, "user:ada svc:tasks:read"},
		{"a user gets no more than the person may have", "s-ada", idptest.Claims{"groups": []string{"boss"}}, "user:ada"},
		{"an admin", "s-boss", idptest.Claims{"groups": []string{"boss"}}, "user:boss svc:admin:admin"},
		{
			"a union, with its restriction", "s-ada",
			idptest.Claims{"groups": []string{"eng", "x"}, "scope": "read"},
			"user:ada svc:tasks:read svc:a2a:write agent:helper",
		},
		{"no scopes", "s-ada", nil, "user:ada"},
		{
			"a service", "crm",
			idptest.Claims{"client_id": "crm-backend", "groups": []string{"boss"}},
			"service:crm svc:admin:admin svc:a2a:serve",
		},
		{
			"a person's token that a program got is the person's", "s-ada",
			idptest.Claims{"client_id": "crm-backend", "scope": "read"},
			"user:ada svc:tasks:read",
		},
		{
			"several audiences", "s-ada",
			idptest.Claims{"aud": []string{"x", audience}, "scope": "read"},
			"user:ada svc:tasks:read",
		},
		{"nobody", "s-eve", idptest.Claims{"scope": "read"}, "auth.token_nobody"},
		{"a principal that does not exist", "x", idptest.Claims{"client_id": "ghost"}, "auth.token_nobody"},
		{"a disabled user", "s-gone", idptest.Claims{"scope": "read"}, "auth.token_disabled"},
		{"a disabled service", "x", idptest.Claims{"client_id": "old"}, "auth.token_disabled"},
		{"a bound token", "s-ada", idptest.Claims{"cnf": idptest.Claims{"jkt": "x"}}, "auth.token_bound"},
		{"an ID token", "s-ada", idptest.Claims{"nonce": "n"}, "auth.token_type"},
		{"an ID token beside an access token", "s-ada", idptest.Claims{"at_hash": "h"}, "auth.token_type"},
		{"an ID token of Keycloak", "s-ada", idptest.Claims{"typ": "ID"}, "auth.token_type"},
		{
			"an access token of Keycloak", "s-ada",
			idptest.Claims{"typ": "Bearer", "nonce": "n", "scope": "read"},
			"user:ada svc:tasks:read",
		},
		{"a logout token", "s-ada", idptest.Claims{"events": idptest.Claims{"x": idptest.Claims{}}}, "auth.token_type"},
	} {
		token := is.Sign(is.Access(audience, c.subject, c.more))
		if got := who(t, v, token); got != c.want {
			t.Errorf("%s: %s; want %s", c.name, got, c.want)
		}
	}
	if n := is.KeyReads.Load(); n != 1 {
		t.Errorf("the keys were read %d times; want once", n)
	}
}

// who returns the principal and the scopes of a token, or the reason why it is refused.
func who(t *testing.T, v *Verifier, token string) string {
	t.Helper()
	c, err := v.CallerByJWT(t.Context(), token)
	if err != nil {
		if errs.KindOf(err) != errs.Unauthenticated && errs.KindOf(err) != errs.Unavailable {
			t.Errorf("%v is of kind %s", err, errs.KindOf(err))
		}
		return errs.As(err).Code
	}
	if c.Org != "main" || !strings.HasPrefix(c.KeyID, "ext-acme-") {
		t.Errorf("%+v", c)
	}
	return strings.TrimSpace(c.Ref() + " " + c.Scopes.String())
}

func TestHostileTokens(t *testing.T) {
	t.Parallel()
	is, evil := idptest.New(t), idptest.New(t)
	v, c, _ := verifier(t, is)
	good := is.Access(audience, "s-ada", idptest.Claims{"scope": "read"})
	edit := func(more idptest.Claims) idptest.Claims {
		out := is.Access(audience, "s-ada", idptest.Claims{"scope": "read"})
		for k, v := range more {
			if v == nil {
				delete(out, k)
				continue
			}
			out[k] = v
		}
		return out
	}
	part := func(v any) string {
		data, _ := json.Marshal(v)
		return base64.RawURLEncoding.EncodeToString(data)
	}
	token := is.Sign(good)
	pieces := strings.Split(token, ".")
	other, _ := rsa.GenerateKey(rand.Reader, 2048)
	key := is.Key()
	public, _ := json.Marshal(key.Public())
	hs := jose.SigningKey{Algorithm: jose.HS256, Key: jose.JSONWebKey{Key: public, KeyID: "k1"}}
	for _, h := range []struct{ name, token, want string }{
		{"not JSON", "a.b.c", "auth.invalid"},
		{"not base64", "!!.??.--", "auth.invalid"},
		{"null", part(nil) + "." + part(nil) + ".x", "auth.invalid"},
		{"alg none", part(idptest.Claims{"alg": "none"}) + "." + pieces[1] + ".", "auth.token_algorithm"},
		{"alg None", part(idptest.Claims{"alg": "None"}) + "." + pieces[1] + ".", "auth.token_algorithm"},
		{"HS256 with the public key", idptest.SignWith(t, hs, good), "auth.token_algorithm"},
		{"HS256 with a key that is published", idptest.SignWith(t,
			jose.SigningKey{Algorithm: jose.HS256, Key: jose.JSONWebKey{
				Key:   []byte("sharedsharedsharedsharedsharedshared"),
				KeyID: "shared",
			}}, good), "auth.token_algorithm"},
		{"another key by the same name", idptest.SignWith(t,
			jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: other, KeyID: "k1"}}, good), "auth.token_signature"},
		{"a key that the token brings along", idptest.SignWith(t, jose.SigningKey{Algorithm: jose.RS256, Key: other}, good,
			"jwk", "x"), "auth.token_signature"},
		{
			"another payload", pieces[0] + "." + part(edit(idptest.Claims{"sub": "s-boss"})) + "." + pieces[2],
			"auth.token_signature",
		},
		{"no signature", pieces[0] + "." + pieces[1] + ".", "auth.token_signature"},
		{"another issuer's token", evil.Sign(evil.Access(audience, "s-ada", nil)), "auth.token_issuer"},
		{"another issuer signs for ours", evil.Sign(good), "auth.token_signature"},
		{"another audience", is.Sign(edit(idptest.Claims{"aud": "https://other.example"})), "auth.audience"},
		{"the client's audience", is.Sign(edit(idptest.Claims{"aud": "parley"})), "auth.audience"},
		{"no audience", is.Sign(edit(idptest.Claims{"aud": nil})), "auth.invalid"},
		{"no end", is.Sign(edit(idptest.Claims{"exp": nil})), "auth.token_expired"},
		{"an end that is no time", is.Sign(edit(idptest.Claims{"exp": -5})), "auth.token_expired"},
		{"expired", is.Sign(edit(idptest.Claims{"exp": c.now().Add(-61 * time.Second).Unix()})), "auth.token_expired"},
		{
			"expired by less than clocks differ", is.Sign(edit(idptest.Claims{"exp": c.now().Add(-30 * time.Second).Unix()})),
			"user:ada svc:tasks:read",
		},
		{"an end far away", is.Sign(edit(idptest.Claims{"exp": 1e17})), "user:ada svc:tasks:read"},
		{"not yet", is.Sign(edit(idptest.Claims{"nbf": c.now().Add(2 * time.Minute).Unix()})), "auth.token_early"},
		{"nearly", is.Sign(edit(idptest.Claims{"nbf": c.now().Add(30 * time.Second).Unix()})), "user:ada svc:tasks:read"},
		{"of another type", is.Sign(good, "typ", "logout+jwt"), "auth.token_type"},
		{"an access token by its type", is.Sign(edit(idptest.Claims{"nonce": "n"}), "typ", "at+jwt"), "user:ada svc:tasks:read"},
		{"a critical header", is.Sign(good, "crit", "x"), "auth.token_signature"},
		{"too long", is.Sign(edit(idptest.Claims{"pad": strings.Repeat("x", identity.MaxJWT)})), "auth.invalid"},
		{"a good one, still", token, "user:ada svc:tasks:read"},
	} {
		if got := who(t, v, h.token); got != h.want {
			t.Errorf("%s: %s; want %s", h.name, got, h.want)
		}
	}
	if n := evil.Documents.Load() + evil.KeyReads.Load(); n != 0 {
		t.Errorf("an issuer that nobody trusts was asked %d times", n)
	}
}

// The audit log distinguishes tokens.
func TestATokenHasAName(t *testing.T) {
	t.Parallel()
	is := idptest.New(t)
	v, _, _ := verifier(t, is)
	token := is.Sign(is.Access(audience, "s-boss", idptest.Claims{"groups": []string{"boss", "eng"}}))
	id := func(token string) string {
		c, err := v.CallerByJWT(t.Context(), token)
		if err != nil {
			t.Fatal(err)
		}
		return c.KeyID
	}
	first := id(token)
	if id(token) != first {
		t.Error("one token has two names")
	}
	if id(is.Sign(is.Access(audience, "s-ada", idptest.Claims{"groups": []string{"boss", "eng"}}))) == first {
		t.Error("two people share a name")
	}
}

func TestKeysRotate(t *testing.T) {
	t.Parallel()
	is := idptest.New(t)
	v, c, _ := verifier(t, is)
	sign := func() string { return is.Sign(is.Access(audience, "s-ada", idptest.Claims{"scope": "read"})) }
	old := sign()
	const works = "user:ada svc:tasks:read"
	if got := who(t, v, old); got != works {
		t.Fatal(got)
	}
	c.advance(keysPause)
	is.Rotate("k2")
	if got := who(t, v, sign()); got != works {
		t.Error("signed with the new key:", got)
	}
	if got := who(t, v, old); got != "auth.token_signature" {
		t.Error("signed with a key that was taken back:", got)
	}
	c.advance(keysPause)
	is.UseEd25519("k3")
	if got := who(t, v, sign()); got != works {
		t.Error("signed with a key of another kind:", got)
	}
	if n := is.KeyReads.Load(); n != 3 {
		t.Errorf("the keys were read %d times; want 3", n)
	}
	// A key that is taken back is noticed without a new one, too, if later.
	last := sign()
	is.Rotate("k4")
	if got := who(t, v, last); got != works {
		t.Error("known and fresh:", got)
	}
	c.advance(keysFresh)
	if got := who(t, v, is.Sign(is.Access(audience, "s-ada",
		idptest.Claims{"exp": c.now().Add(time.Hour).Unix(), "scope": "read"}))); got != works {
		t.Error("after a while:", got)
	}
}

// Forged tokens with made-up keys cost the issuer one request in a while, and those
// who bring good ones nothing.
func TestAFloodOfForgedKeysAsksTheIssuerOnce(t *testing.T) {
	t.Parallel()
	is := idptest.New(t)
	v, c, _ := verifier(t, is)
	claims := is.Access(audience, "s-ada", idptest.Claims{"scope": "read"})
	good := is.Sign(claims)
	if got := who(t, v, good); got != "user:ada svc:tasks:read" {
		t.Fatal(got)
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	flood := func() {
		var wg sync.WaitGroup
		for i := range 50 {
			token := idptest.SignWith(t, jose.SigningKey{
				Algorithm: jose.RS256,
				Key:       jose.JSONWebKey{Key: key, KeyID: fmt.Sprintf("forged-%d", i)},
			}, claims)
			wg.Go(func() {
				if got := who(t, v, token); got != "auth.token_signature" {
					t.Error("a forged token:", got)
				}
				if got := who(t, v, good); got != "user:ada svc:tasks:read" {
					t.Error("a good one beside it:", got)
				}
			})
		}
		wg.Wait()
	}
	before := is.KeyReads.Load()
	flood()
	if n := is.KeyReads.Load() - before; n > 0 {
		t.Errorf("50 forged tokens asked for keys %d times right after they were read", n)
	}
	c.advance(keysPause)
	// By the name of a known key there is nothing to ask for.
	known := idptest.SignWith(t, jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: key, KeyID: "k1"}}, claims)
	if got := who(t, v, known); got != "auth.token_signature" || is.KeyReads.Load() != before {
		t.Errorf("%s; the keys were read %d times more", got, is.KeyReads.Load()-before)
	}
	flood()
	flood()
	if n := is.KeyReads.Load() - before; n != 1 {
		t.Errorf("100 forged tokens asked for keys %d times; want once", n)
	}
}

// While the issuer thinks about a forged key, good tokens go on working.
func TestAnIssuerThatHangsHoldsUpForgedTokensOnly(t *testing.T) {
	t.Parallel()
	is := idptest.New(t)
	v, c, _ := verifier(t, is)
	claims := is.Access(audience, "s-ada", idptest.Claims{"scope": "read"})
	good := is.Sign(claims)
	if got := who(t, v, good); got != "user:ada svc:tasks:read" {
		t.Fatal(got)
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	asked, release := make(chan struct{}), make(chan struct{})
	is.Hold = func() { close(asked); <-release }
	c.advance(keysPause)
	forged := idptest.SignWith(t, jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: key, KeyID: "forged"}}, claims)
	done := make(chan string)
	go func() { done <- who(t, v, forged) }()
	<-asked
	if got := who(t, v, good); got != "user:ada svc:tasks:read" { // would wait for ever
		t.Error(got)
	}
	// Whoever gives up does not spoil it for the others.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := v.CallerByJWT(ctx, forged); err == nil {
		t.Error("a forged token was taken")
	}
	close(release)
	if got := <-done; got != "auth.token_signature" {
		t.Error(got)
	}
}

func TestAnIssuerThatIsDown(t *testing.T) {
	t.Parallel()
	is := idptest.New(t)
	is.Down(true)
	v, c, _ := verifier(t, is)
	token := is.Sign(is.Access(audience, "s-ada", idptest.Claims{"scope": "read"}))
	for range 20 {
		if got := who(t, v, token); got != "auth.issuer_unreachable" {
			t.Fatal(got)
		}
	}
	is.Down(false)
	c.advance(keysPause)
	if got := who(t, v, token); got != "user:ada svc:tasks:read" {
		t.Error("up again:", got)
	}
	// What is known stays known when it goes down again.
	is.Down(true)
	c.advance(keysFresh)
	token = is.Sign(is.Access(audience, "s-ada", idptest.Claims{"exp": c.now().Add(time.Hour).Unix(), "scope": "read"}))
	if got := who(t, v, token); got != "user:ada svc:tasks:read" {
		t.Error("down again:", got)
	}
	if n := is.Documents.Load(); n != 1 {
		t.Errorf("the document was read %d times", n)
	}
}
