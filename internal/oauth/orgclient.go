package oauth

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/idempotency"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/text"
)

// MaxRedirects is the maximum number of redirect URIs of a client.
const MaxRedirects = maxRedirects

// ClientRequest describes a client that an admin registers for the org.
type ClientRequest struct {
	Name         string
	RedirectURIs []string
	Scopes       []string // empty: Registrable
	Method       Method   // empty: Public
}

// ClientFilter selects clients, newest first.
type ClientFilter struct {
	Before string // id of the last client of the previous page
	Limit  int
}

// ValidClientID reports whether s can be the id of a registered client.
func ValidClientID(s string) bool {
	rest, ok := strings.CutPrefix(s, ClientPrefix)
	if !ok || rest == "" || len(s) > 64 {
		return false
	}
	return !strings.ContainsFunc(rest, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
}

// Validate returns all problems that can be found without a look-up.
func (r *ClientRequest) Validate() error {
	wrong := slices.Concat(nameFaults(r.Name), redirectFaults(r.RedirectURIs), scopeFaults(r.Scopes))
	if r.Method != "" && !slices.Contains(Methods, r.Method) {
		wrong = append(wrong, fault(errs.At("method"), "must be %s, %s or %s", Public, SecretBasic, SecretPost))
	}
	if len(wrong) > 0 {
		return errs.InvalidFields(wrong...)
	}
	return nil
}

func fault(at errs.Path, format string, args ...any) errs.Field {
	return errs.Field{Path: at, Message: fmt.Sprintf(format, args...)}
}

func nameFaults(name string) []errs.Field {
	if text.Blank(name) {
		return []errs.Field{fault(errs.At("name"),
			"is required and must not be blank: people read it when they are asked")}
	}
	if problem := identity.NameRule.Check(name); problem != "" {
		return []errs.Field{fault(errs.At("name"), "%s", problem)}
	}
	return nil
}

func redirectFaults(uris []string) (wrong []errs.Field) {
	if n := len(uris); n == 0 || n > maxRedirects {
		return []errs.Field{fault(errs.At("redirect_uris"), "must have 1 to %d entries", maxRedirects)}
	}
	for i, u := range uris {
		if err := checkRedirect(u); err != nil {
			wrong = append(wrong, errs.Refused(errs.At("redirect_uris", i), err))
		}
	}
	return wrong
}

func scopeFaults(scopes []string) (wrong []errs.Field) {
	if n := len(scopes); n > identity.MaxScopes {
		return []errs.Field{fault(errs.At("scopes"), "has %d entries; at most %d are allowed", n, identity.MaxScopes)}
	}
	for i, s := range scopes {
		if scope, err := identity.ParseScope(s); err != nil {
			wrong = append(wrong, errs.Refused(errs.At("scopes", i), err))
		} else if scope == identity.A2AServe {
			wrong = append(wrong, fault(errs.At("scopes", i),
				"is for workers, which use a key; a person cannot give it to a program"))
		}
	}
	return wrong
}

// CreateClient registers a client of the org. Unlike a client that registered itself, it may
// request svc:admin:admin, if the admin allows that. CreateClient returns the secret, which
// cannot be read again and is empty for a public client.
func (s *Service) CreateClient(ctx context.Context, a identity.Access, r ClientRequest) (Client, string, error) {
	if err := a.For(identity.ManageClients); err != nil {
		return Client{}, "", err
	}
	if err := r.Validate(); err != nil {
		return Client{}, "", err
	}
	scopes, err := s.clientScopes(ctx, a.Org(), r.Scopes)
	if err != nil {
		return Client{}, "", err
	}
	c := Client{
		ID: s.newID(ClientPrefix), Org: a.Org(), CreatedBy: a.Principal().Ref(),
		Name: strings.TrimSpace(r.Name), Method: r.Method,
		RedirectURIs: slices.Clone(r.RedirectURIs), Scopes: scopes, CreatedAt: s.now(), Version: 1,
	}
	if c.Method == "" {
		c.Method = Public
	}
	secret, hash := c.newSecret()
	e := s.adminEntry(ctx, a, ClientCreate, c, c.says())
	once := idempotency.From(ctx)
	if err := once.Seal(secret); err != nil {
		return Client{}, "", err
	}
	if c, err = s.orgClients.CreateOrgClient(ctx, c, hash, s.maxClients, e); err == nil {
		secret, err = once.Secret(secret)
	}
	return c, secret, err
}

func (s *Service) clientScopes(ctx context.Context, org string, asked []string) (identity.Scopes, error) {
	var out identity.Scopes
	var wrong []errs.Field
	for i, name := range asked {
		scope := identity.Scope(name)
		if id, ok := strings.CutPrefix(name, "agent:"); ok && id != "*" {
			reachable, err := s.agents.Reachable(ctx, org, id)
			if err != nil {
				return nil, err
			}
			if !reachable {
				wrong = append(wrong, fault(errs.At("scopes", i),
					"names an agent that this org cannot reach: %q is neither one of its own nor a public one", id))
			}
		}
		if !out.Has(scope) {
			out = append(out, scope)
		}
	}
	if len(wrong) > 0 {
		return nil, errs.InvalidFields(wrong...)
	}
	if rights, _ := agents(out); len(rights) == 0 {
		out = append(slices.Clone(Registrable), out...)
	}
	return out, nil
}

func (s *Service) adminEntry(
	ctx context.Context, a identity.Access, action identity.AuditAction, c Client, detail string,
) identity.AuditEntry {
	e := identity.NewEntry(ctx, s.now(), a.Org(), action, c.ID, detail)
	e.Actor, e.KeyID = a.Principal().Ref(), a.Caller().KeyID
	return e
}

// says describes the client in the audit log.
func (c *Client) says() string {
	return c.Name + ": " + c.Scopes.String() + " " + strings.Join(c.RedirectURIs, " ")
}

// Clients lists the clients of the org, newest first.
func (s *Service) Clients(ctx context.Context, a identity.Access, f ClientFilter) ([]Client, error) {
	if err := a.For(identity.ReadClients); err != nil {
		return nil, err
	}
	return s.orgClients.OrgClients(ctx, a.Org(), f)
}

// OrgClient returns one client of the org.
func (s *Service) OrgClient(ctx context.Context, a identity.Access, id string) (Client, error) {
	if err := a.For(identity.ReadClients, identity.ManageClients); err != nil {
		return Client{}, err
	}
	return s.orgClients.OrgClient(ctx, a.Org(), id)
}

// DeleteClient deletes a client of the org with all its grants.
func (s *Service) DeleteClient(ctx context.Context, a identity.Access, id string) (Client, error) {
	if err := a.For(identity.ManageClients); err != nil {
		return Client{}, err
	}
	return s.orgClients.DeleteOrgClient(ctx, a.Org(), id, s.now(), func(c Client) identity.AuditEntry {
		return s.adminEntry(ctx, a, ClientDelete, c, c.says())
	})
}
