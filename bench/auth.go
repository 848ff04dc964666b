package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/app"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/oauth"
	"github.com/parley-dev/parley/internal/store"
)

// cost is what a credential adds to a request, measured in this process without a network, or what a
// request costs the database.
type cost struct {
	Engine  string  `json:"engine"`
	Name    string  `json:"name"`
	Micros  float64 `json:"us"`
	Target  string  `json:"target,omitempty"`
	Verdict string  `json:"verdict,omitempty"`
}

// measureAuth verifies credentials as the server does, on a new store.
func measureAuth(ctx context.Context, set settings, engine string) ([]cost, error) {
	s, cleanup, err := openStore(ctx, engine)
	if err != nil {
		return nil, err
	}
	defer cleanup()
	auth := identity.NewAuthenticator(s.Identity(), app.Now)
	key, token, err := newCredentials(ctx, s.Store, auth)
	if err != nil {
		return nil, err
	}
	unknown, mistyped := identity.NewSecret(), key[:len(key)-1]+"!"
	var out []cost
	for _, c := range []struct {
		name   string
		secret string
		good   bool
		most   float64 // µs; 0: no target
	}{
		{"a known key", key, true, 2},
		{"a known access token", token, true, 5},
		{"a mistyped key", mistyped, false, 0},
		{"an unknown key: one look-up", unknown, false, 0},
		{"an unknown access token: one look-up", identity.NewToken(), false, 0},
	} {
		progress("%s: %s", engine, c.name)
		us, err := timeAuth(ctx, set, auth, c.secret, c.good)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		l := cost{Engine: engine, Name: c.name, Micros: us}
		if c.most > 0 {
			l.Target, l.Verdict = fmt.Sprintf("< %g µs", c.most), verdict(us < c.most)
		}
		out = append(out, l)
	}
	return out, nil
}

// newCredentials makes a service with a key and an access token, and authenticates both once, so
// that the authenticator has cached them.
func newCredentials(ctx context.Context, s *store.Store, auth *identity.Authenticator) (key, token string, err error) {
	newID := func(prefix string) string { return prefix + strings.ToLower(rand.Text()) }
	operator := identity.NewOperator(s.IdentityStores(), app.Now, newID)
	tokens := oauth.New(oauth.Options{
		Stores: s.OAuthStores(), Now: app.Now, NewID: newID, Lifetimes: oauth.Lifetimes{Token: 24 * time.Hour},
	})
	auth.AcceptTokens(tokens)
	p := identity.Principal{Org: "bench", Kind: identity.Service, ID: "crm"}
	if _, err = operator.CreateOrg(ctx, p.Org, ""); err != nil {
		return "", "", err
	}
	if _, err = operator.CreateMember(ctx, p, "", false); err != nil {
		return "", "", err
	}
	k, key, err := operator.CreateKey(ctx, identity.KeyRequest{
		Principal: p, Scopes: []string{string(identity.TasksRead), string(identity.A2AWrite)},
	})
	if err != nil {
		return "", "", err
	}
	now := app.Now()
	end := now.Add(tokens.Lifetimes().Token)
	g := oauth.Grant{
		ID: tokens.NewGrantID(), Principal: p, ClientID: k.ID, Scopes: k.Scopes, CreatedAt: now, EndsAt: end,
	}
	if err = tokens.Create(ctx, g); err != nil {
		return "", "", err
	}
	token = identity.NewToken()
	err = tokens.Issue(ctx, g, oauth.Token{
		GrantID: g.ID, ClientID: k.ID, Scopes: k.Scopes, CreatedAt: now, ExpiresAt: end,
	}, identity.HashSecret(token))
	for _, secret := range []string{key, token} {
		if err == nil {
			_, err = auth.Authenticate(ctx, secret)
		}
	}
	return key, token, err
}

// keyJob is the input of the role "keys", which measures how many checks of a known key per second
// the identity package of this program does.
type keyJob struct{ Duration time.Duration }

func runKeys(in io.Reader, out io.Writer) error {
	var j keyJob
	if err := json.NewDecoder(in).Decode(&j); err != nil {
		return err
	}
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "parley-bench")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	s, err := store.Open(ctx, store.Options{Dir: dir})
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	auth := identity.NewAuthenticator(s.Identity(), app.Now)
	key, _, err := newCredentials(ctx, s, auth)
	if err != nil {
		return err
	}
	us, err := timeAuth(ctx, settings{rounds: 1, duration: j.Duration}, auth, key, true)
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(1e6 / us)
}

// timeAuth returns the median of the rounds, in µs per verification.
func timeAuth(
	ctx context.Context, set settings, auth *identity.Authenticator, secret string, good bool,
) (float64, error) {
	const batch = 100 // between two readings of the clock
	rounds := make([]float64, set.rounds)
	for i := range rounds {
		n, start := 0, time.Now()
		for time.Since(start) < set.duration {
			for range batch {
				_, err := auth.Authenticate(ctx, secret)
				if (err == nil) != good || err != nil && errs.KindOf(err) != errs.Unauthenticated {
					return 0, fmt.Errorf("unexpected result: %w", err)
				}
			}
			n += batch
		}
		rounds[i] = float64(time.Since(start).Nanoseconds()) / 1000 / float64(n)
	}
	slices.Sort(rounds)
	return rounds[len(rounds)/2], nil
}
