package oauth

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

// Service decides about clients, grants and tokens.
type Service struct {
	store  Store
	agents identity.Agents
	now    func() time.Time
	newID  func(prefix string) string
	o      Lifetimes

	MaxClients int // of one org, to be set before use; 0: no limit
}

// Lifetimes say how long things work.
type Lifetimes struct {
	Token   time.Duration // of an access token
	Refresh time.Duration // of a refresh token that is not used
}

// Defaults of the lifetimes.
const (
	DefaultToken   = 15 * time.Minute
	DefaultRefresh = 30 * 24 * time.Hour
)

// New makes the service. newID returns a fresh id with the given prefix.
func New(store Store, agents identity.Agents, now func() time.Time, newID func(prefix string) string, o Lifetimes) *Service {
	if o.Token == 0 {
		o.Token = DefaultToken
	}
	if o.Refresh == 0 {
		o.Refresh = DefaultRefresh
	}
	return &Service{store: store, agents: agents, now: now, newID: newID, o: o, MaxClients: MaxClients}
}

// Lifetimes returns how long things work.
func (s *Service) Lifetimes() Lifetimes { return s.o }

// NewGrantID returns a fresh id of a grant.
func (s *Service) NewGrantID() string { return s.newID(grantPrefix) }

// Offer is what the person may allow the client of what it asks for: what both may
// have. Agents that the org cannot reach are left out.
func (s *Service) Offer(ctx context.Context, m identity.Member, c Client, wanted identity.Scopes) (identity.Scopes, error) {
	allowed := Narrow(Entitled(m), c.Scopes)
	rights, only := agents(Narrow(allowed, wanted))
	out := rights
	for _, scope := range only {
		id := strings.TrimPrefix(string(scope), "agent:")
		if id != "*" {
			ok, err := s.agents.Reachable(ctx, m.Org, id)
			if err != nil {
				return nil, err
			}
			if !ok {
				continue
			}
		}
		out = append(out, scope)
	}
	if len(only) > 0 && len(out) == len(rights) {
		out = slices.DeleteFunc(rights, forAgents.Has) // agents out of reach only
	}
	return out, nil
}

// Chosen is what of an offer the person lets the client have. It must be something.
func Chosen(offered, chosen identity.Scopes) (identity.Scopes, error) {
	rights, _ := agents(chosen)
	if rights = slices.DeleteFunc(rights, func(s identity.Scope) bool { return !offered.Has(s) }); len(rights) == 0 {
		return nil, errs.New(errs.Invalid, "oauth.nothing_chosen", "choose at least one right, or refuse")
	}
	return Narrow(offered, rights), nil
}

// SelfGrant is what a key of an agent or a service may have of what it asks for:
// exactly that, or it is refused.
func SelfGrant(k identity.Key, wanted identity.Scopes) (identity.Scopes, error) {
	if len(wanted) == 0 {
		return k.Scopes, nil
	}
	out := Narrow(k.Scopes, wanted)
	for _, s := range wanted {
		if !out.Has(s) {
			return nil, errs.New(errs.Invalid, "oauth.bad_scope", "the key does not have the scope %s", s)
		}
	}
	return out, nil
}

// Create keeps a new grant.
func (s *Service) Create(ctx context.Context, g Grant) error {
	var entries []identity.AuditEntry
	if g.Code != (identity.Hash{}) {
		entries = append(entries, s.entry(ctx, g, Consented, g.ID, g.Scopes.String()))
	}
	return s.store.CreateGrant(ctx, g, entries...)
}

func (s *Service) entry(ctx context.Context, g Grant, action identity.AuditAction, target, detail string) identity.AuditEntry {
	e := identity.NewEntry(ctx, s.now(), g.Principal.Org, action, target, detail)
	e.Actor, e.KeyID = g.Principal.Ref(), g.ClientID
	return e
}

// Grant returns a grant by its id.
func (s *Service) Grant(ctx context.Context, id string) (Grant, error) { return s.store.Grant(ctx, id) }

// GrantByCode returns the grant of a code that was not redeemed. One that was, ends
// its grant: somebody else has it, too. One that was sent to an address which the
// client has no more is none.
func (s *Service) GrantByCode(ctx context.Context, code identity.Hash) (Grant, error) {
	g, err := s.store.GrantByCode(ctx, code)
	switch {
	case err != nil:
		return Grant{}, err
	case !g.RevokedAt.IsZero():
		return Grant{}, errs.ErrNotFound
	case !g.CodeUsedAt.IsZero():
		return Grant{}, s.replayed(ctx, g, "a code")
	}
	c, err := s.kept(ctx, g.ClientID)
	if err == nil && c.ID != "" && !MatchRedirect(c.RedirectURIs, g.RedirectURI) {
		err = errs.ErrNotFound
	}
	return g, err
}

// GrantByRefresh returns the grant of a refresh token that works. With use set, one
// that was used before ends its grant.
func (s *Service) GrantByRefresh(ctx context.Context, refresh identity.Hash, use bool) (Grant, error) {
	g, err := s.store.GrantByRefresh(ctx, refresh)
	switch {
	case err != nil:
		return Grant{}, err
	case !g.RevokedAt.IsZero():
		return Grant{}, errs.ErrNotFound
	case g.Refresh != refresh && use:
		return Grant{}, s.replayed(ctx, g, "a refresh token")
	case g.Refresh != refresh:
		return Grant{}, errs.ErrNotFound
	}
	return g, nil
}

// replayed ends the grant and returns the refusal.
func (s *Service) replayed(ctx context.Context, g Grant, what string) error {
	_, err := s.store.RevokeGrant(ctx, g.ID, s.now(), s.entry(ctx, g, GrantReplay, g.ID, what+" was used twice"))
	if err != nil {
		return err
	}
	return errs.ErrNotFound
}

// Use writes that the grant's code was redeemed or its refresh token replaced. Who
// loses a race against another use ends the grant and gets NotFound.
func (s *Service) Use(ctx context.Context, g Grant) error {
	err := s.store.UpdateGrant(ctx, g)
	if err != nil && errs.KindOf(err) == errs.Conflict {
		return s.replayed(ctx, g, "a code or a refresh token")
	}
	return err
}

// Revoke ends a grant with all its tokens.
func (s *Service) Revoke(ctx context.Context, g Grant) error {
	_, err := s.store.RevokeGrant(ctx, g.ID, s.now(), s.entry(ctx, g, GrantRevoke, g.ID, ""))
	return err
}
