package identity_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

// issuer is another one, that knows one token.
type issuer struct {
	token  string
	caller *identity.Caller
	asked  int
}

func (i *issuer) CallerByJWT(_ context.Context, token string) (*identity.Caller, error) {
	i.asked++
	if token != i.token {
		return nil, errs.New(errs.Unauthenticated, "auth.token_signature", "not ours")
	}
	return i.caller, nil
}

func TestAnotherIssuersTokenIsAskedAboutOnce(t *testing.T) {
	t.Parallel()
	s, key := newShelf()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	a := identity.NewAuthenticator(s, func() time.Time { return now })
	ctx, jwt := t.Context(), "eyJhIjoxfQ.eyJiIjoyfQ.c2ln"
	code := func(secret string) string {
		t.Helper()
		_, err := a.Authenticate(ctx, secret)
		if err == nil {
			return ""
		}
		if errs.KindOf(err) != errs.Unauthenticated {
			t.Fatal(err)
		}
		return errs.As(err).Code
	}
	if code(jwt) == "" {
		t.Error("a token works where no issuer is known")
	}
	is := &issuer{token: jwt, caller: &identity.Caller{KeyID: "ext-acme-1", ExpiresAt: now.Add(time.Hour)}}
	a.AcceptExternal(is)
	for range 3 {
		if c := code(jwt); c != "" || is.asked != 1 {
			t.Errorf("%s; asked %d times", c, is.asked)
		}
	}
	if code(key) != "" || is.asked != 1 {
		t.Error("keys work no more, or the issuer was asked about one")
	}
	// Nobody asks about what cannot be one; a miss is never kept.
	for _, bad := range []string{"", "a.b", "a.b.c.d", "parley_a.b.c", identity.TokenPrefix +
		"a.b.c", strings.Repeat("a", identity.MaxJWT) + ".b.c"} {
		if c := code(bad); c != "auth.invalid" || is.asked != 1 {
			t.Errorf("%.20q: %s, asked %d times", bad, c, is.asked)
		}
	}
	for n := range 3 {
		if c := code("x.y.z"); c != "auth.token_signature" || is.asked != 2+n {
			t.Errorf("%s; asked %d times", c, is.asked)
		}
	}
	// Rights that changed empty the memory, and so does time.
	s.epoch++
	if err := a.Refresh(ctx); err != nil || code(jwt) != "" || is.asked != 5 {
		t.Errorf("%v; asked %d times after a change of rights", err, is.asked)
	}
	now = now.Add(5 * time.Minute)
	for range 2 {
		if code(jwt) != "" || is.asked != 6 {
			t.Errorf("asked %d times after a while", is.asked)
		}
	}
	if err := a.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	if _, ok := s.touched["ext-acme-1"]; ok {
		t.Error("a token was noted as a key that was used")
	}
	now = now.Add(time.Hour)
	if code(jwt) != "auth.invalid" {
		t.Error("an expired token works from memory")
	}
}

// BenchmarkAuthenticateExternal is what a known token of another issuer, of a usual
// size, adds to a request; it must stay under five microseconds.
func BenchmarkAuthenticateExternal(b *testing.B) {
	s, _ := newShelf()
	a, jwt := identity.NewAuthenticator(s, time.Now),
		"eyJhbGciOiJSUzI1NiJ9."+strings.Repeat("a", 900)+"."+strings.Repeat("b", 342)
	a.AcceptExternal(&issuer{token: jwt, caller: &identity.Caller{KeyID: "ext-acme-1", ExpiresAt: time.Now().Add(time.Hour)}})
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := a.Authenticate(ctx, jwt); err != nil {
			b.Fatal(err)
		}
	}
}
