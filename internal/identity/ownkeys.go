package identity

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/errs"
)

// Entitled returns the scopes that a user may have and grant. Agents and services get their
// scopes from their keys.
func (m *Member) Entitled() Scopes {
	if m.Kind != User || m.Disabled {
		return nil
	}
	out := Scopes{TasksRead, TasksWrite, A2AWrite}
	if m.Admin {
		out = append(out, Admin)
	}
	return out
}

// OwnKeys lists the caller's own keys, newest first.
func (m *OrgAdmin) OwnKeys(ctx context.Context, a Access, f KeyFilter) ([]Key, error) {
	if err := a.For(ManageOwnCredentials); err != nil {
		return nil, err
	}
	f.Now, f.Principal = m.now(), a.Principal()
	return m.keys.Keys(ctx, a.Org(), f)
}

// OwnKey returns one of the caller's own keys.
func (m *OrgAdmin) OwnKey(ctx context.Context, a Access, id string) (Key, error) {
	if err := a.For(ManageOwnCredentials); err != nil {
		return Key{}, err
	}
	k, err := m.keys.Key(ctx, a.Org(), id)
	if err == nil && k.Principal != a.Principal() {
		err = errs.ErrNotFound
	}
	if err != nil {
		return Key{}, err
	}
	return k, nil
}

// CreateOwnKey creates a key for the caller and returns its secret, which cannot be read
// again. The key can have no scope that the caller's credential lacks. It expires no later
// than the credential, and by default at the same time.
func (m *OrgAdmin) CreateOwnKey(ctx context.Context, a Access, r KeyRequest) (Key, string, error) {
	if err := a.For(ManageOwnCredentials); err != nil {
		return Key{}, "", err
	}
	c := a.Caller()
	r.Principal = c.Principal
	if err := r.Validate(m.now()); err != nil {
		return Key{}, "", err
	}
	if err := c.bound(&r); err != nil {
		return Key{}, "", err
	}
	return m.makeKey(ctx, a, r)
}

// bound returns an error if the key could do more than the caller's credential, and bounds
// its expiry by that of the credential.
func (c *Caller) bound(r *KeyRequest) error {
	var scopes Scopes
	for _, s := range r.Scopes {
		scopes = append(scopes, Scope(s))
	}
	if missing := c.lacks(scopes); missing != "" {
		return notHeld(missing)
	}
	if c.ExpiresAt.IsZero() {
		return nil
	}
	if r.ExpiresAt.IsZero() {
		r.ExpiresAt = c.ExpiresAt
	}
	if r.ExpiresAt.After(c.ExpiresAt) {
		return errs.InvalidFields(errs.NewField("expires_at", fmt.Sprintf(
			"must not be later than the end of the credential that makes the key, %s",
			c.ExpiresAt.Format(time.RFC3339))))
	}
	return nil
}

// RotateOwnKey rotates one of the caller's own keys. The caller gets the new secret, so the
// key must not have more scopes or a later expiry than the caller's credential.
func (m *OrgAdmin) RotateOwnKey(ctx context.Context, a Access, id string, overlap time.Duration) (Key, string, error) {
	if err := a.For(ManageOwnCredentials); err != nil {
		return Key{}, "", err
	}
	c := a.Caller()
	return m.rotateKey(ctx, a, id, overlap, func(old *Key) error {
		return c.mayRotate(old)
	})
}

// mayRotate returns an error if the caller may not have the successor of the key.
func (c *Caller) mayRotate(old *Key) error {
	if old.Principal != c.Principal {
		return errs.ErrNotFound
	}
	if missing := c.lacks(old.Scopes); missing != "" {
		return notHeld(missing)
	}
	if !c.ExpiresAt.IsZero() && (old.ExpiresAt.IsZero() || old.ExpiresAt.After(c.ExpiresAt)) {
		return errs.New(errs.Forbidden, "identity.key_outlives",
			"the key works longer than the credential that would rotate it; use the key itself, or sign in")
	}
	return nil
}

// RevokeOwnKey ends one of the caller's own keys. A key that is revoked already does not
// change.
func (m *OrgAdmin) RevokeOwnKey(ctx context.Context, a Access, id string) (Key, error) {
	if err := a.For(ManageOwnCredentials); err != nil {
		return Key{}, err
	}
	if _, err := m.OwnKey(ctx, a, id); err != nil { // a key never changes its principal
		return Key{}, err
	}
	return revokeKey(originFor(ctx, a), m.keys, a.Org(), id, m.now())
}

func notHeld(what string) error {
	return errs.New(errs.Forbidden, "identity.scope_not_held",
		"your credential cannot make or rotate a key with %s: it has less itself; "+
			"leave that out, or ask an admin of the org for the key", what)
}

// lacks names a right that the scopes have and the caller's credential does not have. It is
// empty if there is none. A restriction to agents must be kept.
func (c *Caller) lacks(scopes Scopes) string {
	only := Scopes{}
	for _, s := range scopes {
		switch {
		case strings.HasPrefix(string(s), agentScopePrefix):
			only = append(only, s)
		case !c.Scopes.Has(s):
			return "the scope " + string(s)
		}
	}
	switch held := c.Scopes; {
	case !held.restricted():
		// To work for an agent, a user or a service needs a scope that names the agent.
		if len(only) > 0 && scopes.Has(A2AServe) && c.Kind != Agent {
			return "the scope " + string(only[0])
		}
	case held.Has(agentScopePrefix + "*"):
	case len(only) == 0:
		return "access to all agents"
	default:
		for _, s := range only {
			if !held.Has(s) {
				return "the scope " + string(s)
			}
		}
	}
	return ""
}
