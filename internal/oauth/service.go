package oauth

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

// Service manages clients, grants and tokens.
type Service struct {
	clients    ClientStore
	orgClients OrgClientStore
	grants     GrantStore
	tokens     TokenStore
	agents     identity.Agents
	now        func() time.Time
	newID      func(prefix string) string
	lifetimes  Lifetimes
	maxClients int
}

// Options configure a Service.
type Options struct {
	Stores     Stores
	Agents     identity.Agents
	Now        func() time.Time
	NewID      func(prefix string) string // returns a new id with the prefix
	Lifetimes  Lifetimes
	MaxClients int // per org; 0: no limit
}

// Lifetimes of tokens; 0 means the default.
type Lifetimes struct {
	Token   time.Duration // of an access token
	Refresh time.Duration // of a refresh token that is not used
}

// Default lifetimes.
const (
	DefaultToken   = 15 * time.Minute
	DefaultRefresh = 30 * 24 * time.Hour
)

// New returns the service.
func New(o Options) *Service {
	s := o.Stores
	return &Service{
		clients: s.Clients, orgClients: s.OrgClients, grants: s.Grants, tokens: s.Tokens,
		agents: o.Agents, now: o.Now, newID: o.NewID, maxClients: o.MaxClients,
		lifetimes: Lifetimes{
			Token:   cmp.Or(o.Lifetimes.Token, DefaultToken),
			Refresh: cmp.Or(o.Lifetimes.Refresh, DefaultRefresh),
		},
	}
}

// Lifetimes returns the lifetimes, with the defaults filled in.
func (s *Service) Lifetimes() Lifetimes { return s.lifetimes }

// NewGrantID returns a new id for a grant.
func (s *Service) NewGrantID() string { return s.newID(grantPrefix) }

// Offer returns the wanted scopes that the person may grant to the client: those that both
// may have. Agents that the org cannot reach are omitted.
func (s *Service) Offer(
	ctx context.Context, m identity.Member, c Client, wanted identity.Scopes,
) (identity.Scopes, error) {
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
		out = slices.DeleteFunc(rights, forAgents.Has) // no wanted agent is reachable
	}
	return out, nil
}

// Chosen returns the scopes of an offer that the person chose. It is an error to choose none.
func Chosen(offered, chosen identity.Scopes) (identity.Scopes, error) {
	rights, _ := agents(chosen)
	rights = slices.DeleteFunc(rights, func(s identity.Scope) bool { return !offered.Has(s) })
	if len(rights) == 0 {
		return nil, errs.New(errs.Invalid, "oauth.nothing_chosen", "choose at least one right, or refuse")
	}
	return Narrow(offered, rights), nil
}

// SelfGrant returns the scopes of a token for a key of an agent or a service: the wanted
// ones, or all of the key's. A scope that the key does not have is an error.
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

// Create stores a new grant.
func (s *Service) Create(ctx context.Context, g Grant) error {
	var entries []identity.AuditEntry
	if g.Code != (identity.Hash{}) {
		entries = append(entries, s.entry(ctx, g, Consented, g.ID, g.Scopes.String()))
	}
	return s.grants.CreateGrant(ctx, g, entries...)
}

func (s *Service) entry(
	ctx context.Context, g Grant, action identity.AuditAction, target, detail string,
) identity.AuditEntry {
	e := identity.NewEntry(ctx, s.now(), g.Principal.Org, action, target, detail)
	e.Actor, e.KeyID = g.Principal.Ref(), g.ClientID
	return e
}

// Grant returns a grant by its id.
func (s *Service) Grant(ctx context.Context, id string) (Grant, error) {
	return s.grants.Grant(ctx, id)
}

// GrantByCode returns the grant of a code that was not redeemed. A code that comes a second
// time ends its grant, because someone else has it, too. A code whose redirect URI the client
// no longer has is NotFound.
func (s *Service) GrantByCode(ctx context.Context, code identity.Hash) (Grant, error) {
	g, err := s.grants.GrantByCode(ctx, code)
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

// GrantByRefresh returns the grant of a valid refresh token. If use is set, a refresh token
// that was used before ends its grant.
func (s *Service) GrantByRefresh(ctx context.Context, refresh identity.Hash, use bool) (Grant, error) {
	g, err := s.grants.GrantByRefresh(ctx, refresh)
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

// replayed ends the grant and returns NotFound.
func (s *Service) replayed(ctx context.Context, g Grant, what string) error {
	_, err := s.grants.RevokeGrant(ctx, g.ID, s.now(), s.entry(ctx, g, GrantReplay, g.ID, what+" was used twice"))
	if err != nil {
		return err
	}
	return errs.ErrNotFound
}

// Use records that the grant's code was redeemed or its refresh token replaced. If another
// use was faster, it ends the grant and returns NotFound.
func (s *Service) Use(ctx context.Context, g Grant) error {
	err := s.grants.UpdateGrant(ctx, g)
	if err != nil && errs.KindOf(err) == errs.Conflict {
		return s.replayed(ctx, g, "a code or a refresh token")
	}
	return err
}

// Revoke ends a grant with all its tokens.
func (s *Service) Revoke(ctx context.Context, g Grant) error {
	_, err := s.grants.RevokeGrant(ctx, g.ID, s.now(), s.entry(ctx, g, GrantRevoke, g.ID, ""))
	return err
}
