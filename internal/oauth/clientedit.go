package oauth

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/idempotency"
	"github.com/parley-dev/parley/internal/identity"
)

// ClientEdit changes the fields of a client that are not nil. The method of a client cannot
// be changed.
type ClientEdit struct {
	Name         *string
	RedirectURIs *[]string
	Scopes       *[]string
	IfVersion    *int64
	Once         *idempotency.Key
}

// ClientOutcome is the result of an edit, stored under its idempotency key.
type ClientOutcome struct {
	Client   Client
	Replayed bool
}

// Empty reports whether the edit names no field.
func (e *ClientEdit) Empty() bool { return e.Name == nil && e.RedirectURIs == nil && e.Scopes == nil }

// Validate returns all problems that can be found without a look-up.
func (e *ClientEdit) Validate() error {
	var wrong []errs.Field
	if e.Empty() {
		wrong = append(wrong, errs.Field{Message: "must contain at least one of name, redirect_uris and scopes"})
	}
	if e.Name != nil {
		wrong = append(wrong, nameFaults(*e.Name)...)
	}
	if e.RedirectURIs != nil {
		wrong = append(wrong, redirectFaults(*e.RedirectURIs)...)
	}
	if e.Scopes != nil {
		if len(*e.Scopes) == 0 {
			wrong = append(wrong, fault(errs.At("scopes"), "must not be empty; leave it out to keep what there is"))
		}
		wrong = append(wrong, scopeFaults(*e.Scopes)...)
	}
	if len(wrong) > 0 {
		return errs.InvalidFields(wrong...)
	}
	return nil
}

// UpdateClient changes a client of the org. Grants keep those of their scopes that the
// client may still request. For further scopes, the client has to ask people again.
func (s *Service) UpdateClient(ctx context.Context, a identity.Access, id string, e ClientEdit) (ClientOutcome, error) {
	if err := a.For(identity.ManageClients); err != nil {
		return ClientOutcome{}, err
	}
	if err := e.Validate(); err != nil {
		return ClientOutcome{}, err
	}
	var scopes identity.Scopes
	if e.Scopes != nil {
		var err error
		if scopes, err = s.clientScopes(ctx, a.Org(), *e.Scopes); err != nil {
			return ClientOutcome{}, err
		}
	}
	edit := func(c Client) (Client, []identity.AuditEntry, error) {
		next, changes, err := decideClient(c, e, scopes)
		if err != nil || len(changes) == 0 {
			return c, nil, err
		}
		return next, []identity.AuditEntry{s.adminEntry(ctx, a, ClientUpdate, next, strings.Join(changes, "; "))}, nil
	}
	return s.orgClients.UpdateOrgClient(ctx, id, a.Principal(), e.Once, edit)
}

// decideClient applies a validated edit. scopes are the parsed scopes of the edit. It also
// returns a description of each change.
func decideClient(c Client, e ClientEdit, scopes identity.Scopes) (Client, []string, error) {
	if e.IfVersion != nil && *e.IfVersion != c.Version {
		return c, nil, errs.New(errs.Stale, "request.stale",
			"the client has changed since you read it; fetch it again and repeat the request")
	}
	next := c
	var changes []string
	if e.Name != nil {
		if next.Name = strings.TrimSpace(*e.Name); next.Name != c.Name {
			changes = append(changes, fmt.Sprintf("name %q instead of %q", next.Name, c.Name))
		}
	}
	if e.Scopes != nil && !slices.Equal(scopes, c.Scopes) {
		next.Scopes = scopes
		changes = append(changes, "scopes "+scopes.String()+" instead of "+c.Scopes.String())
	}
	if e.RedirectURIs != nil && !slices.Equal(*e.RedirectURIs, c.RedirectURIs) {
		next.RedirectURIs = slices.Clone(*e.RedirectURIs)
		changes = append(changes, "redirect_uris "+strings.Join(next.RedirectURIs, " ")+
			" instead of "+strings.Join(c.RedirectURIs, " "))
	}
	return next, changes, nil
}

// RotateClient gives a client of the org a new secret and returns it; it cannot be read
// again. The old secret works until the overlap ends. Grants do not change. A client has two
// secrets at most: a second rotation ends the oldest at once.
func (s *Service) RotateClient(
	ctx context.Context, a identity.Access, id string, overlap time.Duration,
) (Client, string, error) {
	if err := a.For(identity.ManageClients); err != nil {
		return Client{}, "", err
	}
	if err := identity.CheckOverlap(overlap); err != nil {
		return Client{}, "", err
	}
	now := s.now()
	secret, hash := (&Client{Method: SecretBasic}).newSecret() // decide checks the real method
	once := idempotency.From(ctx)
	if err := once.Seal(secret); err != nil {
		return Client{}, "", err
	}
	decide := func(c Client) (time.Time, identity.AuditEntry, error) {
		if c.Method == Public {
			return time.Time{}, identity.AuditEntry{}, errs.New(errs.Conflict, "oauth.no_secret",
				"the client has no secret to rotate, because its method is %s; "+
					"one that can keep a secret is registered with another method", Public)
		}
		if overlap == 0 {
			return time.Time{}, s.adminEntry(ctx, a, ClientRotate, c, "the old secret ended at once"), nil
		}
		until := now.Add(overlap)
		return until, s.adminEntry(ctx, a, ClientRotate, c,
			"the old secret works until "+until.Format(time.RFC3339)), nil
	}
	c, err := s.orgClients.RotateOrgClient(ctx, a.Org(), id, hash, decide)
	if err == nil {
		secret, err = once.Secret(secret)
	}
	if err != nil {
		return Client{}, "", err
	}
	return c, secret, nil
}

// Secrets returns the secrets that a client can use now: its secret and, during an overlap,
// the previous one.
func (s *Service) Secrets(c Client, secret identity.Hash) []identity.Hash {
	out := []identity.Hash{secret}
	if s.now().Before(c.OldSecretExpires) {
		out = append(out, c.OldSecret)
	}
	return out
}
