package identity_test

import (
	"context"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

// drawer holds one token.
type drawer struct {
	hash   identity.Hash
	caller identity.Caller
	asked  int
}

func (d *drawer) CallerByToken(_ context.Context, h identity.Hash) (*identity.Caller, error) {
	d.asked++
	if h != d.hash {
		return nil, errs.ErrNotFound
	}
	return &d.caller, nil
}

func TestATokenIsToldFromAKeyByItsPrefix(t *testing.T) {
	t.Parallel()
	s, key := newShelf()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	a := identity.NewAuthenticator(s, func() time.Time { return now })
	ctx, token := t.Context(), identity.NewToken()
	works := func(secret string) bool {
		t.Helper()
		_, err := a.Authenticate(ctx, secret)
		if err != nil && errs.KindOf(err) != errs.Unauthenticated {
			t.Fatal(err)
		}
		return err == nil
	}
	if works(token) {
		t.Error("a token works where nobody gives them out")
	}
	d := &drawer{hash: identity.HashSecret(token), caller: identity.Caller{KeyID: "tok-1", ExpiresAt: now.Add(time.Minute)}}
	a.AcceptTokens(d)
	for _, secret := range []string{token, token, key} {
		if !works(secret) || d.asked != 1 {
			t.Errorf("asked %d times", d.asked)
		}
	}
	if works(identity.NewToken()) || works(token[:len(token)-1]+"!") || works(identity.TokenPrefix) || d.asked != 2 {
		t.Errorf("a bad token works, or a mistyped one was looked up: asked %d times", d.asked)
	}
	if err := a.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	if _, ok := s.touched["tok-1"]; ok {
		t.Error("a token was noted as a key that was used")
	}
	now = now.Add(time.Minute)
	if works(token) {
		t.Error("an expired token works from memory")
	}
	if identity.WellFormed(token) || identity.WellFormedToken(key) {
		t.Error("keys and tokens are mixed up")
	}
}

// BenchmarkAuthenticateToken is what a known token adds to a request; it must stay
// under five microseconds.
func BenchmarkAuthenticateToken(b *testing.B) {
	s, _ := newShelf()
	a, token := identity.NewAuthenticator(s, time.Now), identity.NewToken()
	a.AcceptTokens(&drawer{
		hash:   identity.HashSecret(token),
		caller: identity.Caller{KeyID: "tok-1", ExpiresAt: time.Now().Add(time.Hour)},
	})
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := a.Authenticate(ctx, token); err != nil {
			b.Fatal(err)
		}
	}
}
