package identity_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

// shelf holds one key and counts how often it is looked for.
type shelf struct {
	key      identity.Key
	hash     identity.Hash
	lookups  atomic.Int64
	epoch    int64
	touched  map[string]time.Time
	disabled bool
}

func (s *shelf) KeyByHash(_ context.Context, h identity.Hash) (identity.Key, error) {
	s.lookups.Add(1)
	if h != s.hash {
		return identity.Key{}, errs.ErrNotFound
	}
	k := s.key
	k.Disabled = s.disabled
	return k, nil
}

func (s *shelf) Epoch(context.Context) (int64, error) { return s.epoch, nil }

func (s *shelf) TouchKeys(_ context.Context, used map[string]time.Time) error {
	s.touched = used
	return nil
}

func newShelf() (*shelf, string) {
	secret := identity.NewSecret()
	return &shelf{
		hash: identity.HashSecret(secret),
		key: identity.Key{
			ID: "key-1", Principal: identity.Principal{Org: "acme", Kind: identity.User, ID: "ada"},
			Scopes: identity.Scopes{identity.TasksRead},
		},
	}, secret
}

// A wrong key costs one look-up, a mistyped one none, and a known one none.
func TestWhatAKeyCosts(t *testing.T) {
	t.Parallel()
	s, secret := newShelf()
	a := identity.NewAuthenticator(s, time.Now)
	d := &drawer{}
	a.AcceptTokens(d)
	token, wrong := identity.NewToken(), identity.NewSecret()
	for name, c := range map[string]struct {
		secret string
		cost   int64
	}{
		"mistyped":       {secret[:len(secret)-1] + "_", 0},
		"two swapped":    {swapped(secret), 0},
		"short":          {"parley_x", 0},
		"empty":          {"", 0},
		"wrong":          {wrong, 1},
		"wrong again":    {wrong, 1}, // that it is unknown is not kept
		"mistyped token": {token[:len(token)-1] + "_", 0},
		"swapped token":  {swapped(token), 0},
		"short token":    {identity.TokenPrefix, 0},
		"wrong token":    {token, 1},
	} {
		before := s.lookups.Load() + int64(d.asked)
		if _, err := a.Authenticate(t.Context(), c.secret); errs.KindOf(err) != errs.Unauthenticated {
			t.Errorf("%s: %v", name, err)
		}
		if got := s.lookups.Load() + int64(d.asked) - before; got != c.cost {
			t.Errorf("%s: %d look-ups, want %d", name, got, c.cost)
		}
	}
	before := s.lookups.Load()
	for range 10 {
		if _, err := a.Authenticate(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.lookups.Load() - before; got != 1 {
		t.Errorf("a known key was looked up %d times", got)
	}
}

// swapped exchanges two letters that differ, which the checksum notices.
func swapped(secret string) string {
	b := []byte(secret)
	for i := len(b) - 8; ; i-- {
		if b[i] != b[i-1] {
			b[i], b[i-1] = b[i-1], b[i]
			return string(b)
		}
	}
}

func TestADisabledPrincipalIsForgotten(t *testing.T) {
	t.Parallel()
	s, secret := newShelf()
	a := identity.NewAuthenticator(s, time.Now)
	works := func() bool {
		t.Helper()
		if err := a.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, err := a.Authenticate(t.Context(), secret)
		return err == nil
	}
	if !works() {
		t.Fatal("the key does not work")
	}
	s.disabled = true
	s.epoch++
	if works() {
		t.Error("the key of a disabled principal works")
	}
	if s.touched["key-1"].IsZero() {
		t.Error("when it was last used was forgotten with it")
	}
	s.disabled = false // nobody need be told: a refusal is not remembered
	if !works() {
		t.Error("enabled again, the key does not work")
	}
}

// BenchmarkAuthenticate is what a known key adds to a request; it must stay under
// two microseconds.
func BenchmarkAuthenticate(b *testing.B) {
	s, secret := newShelf()
	a := identity.NewAuthenticator(s, time.Now)
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := a.Authenticate(ctx, secret); err != nil {
			b.Fatal(err)
		}
	}
}
