package oauth

import (
	"context"
	"crypto/rand"
	"slices"
	"strings"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

// Registration is the metadata that a client sends about itself (RFC 7591).
type Registration struct {
	Name          string
	RedirectURIs  []string
	GrantTypes    []string // empty: authorization_code
	ResponseTypes []string // empty: code
	Method        Method   // empty: none
	Scope         string   // empty: Registrable
}

// Grant types. A client that registered itself cannot use client_credentials, which needs a
// key that an admin made.
const (
	AuthorizationCode = "authorization_code"
	RefreshToken      = "refresh_token"
	ClientCredentials = "client_credentials"
)

// Prefixes of the ids of clients, keys and grants.
const (
	ClientPrefix = "client-"
	KeyPrefix    = "key-"
	grantPrefix  = "grant-"
)

// Register creates a client without authentication. It returns the secret, which cannot be
// read again and is empty for a public client.
func (s *Service) Register(ctx context.Context, r Registration) (Client, string, error) {
	if err := r.check(); err != nil {
		return Client{}, "", err
	}
	scopes, err := ParseScopes(r.Scope)
	if err != nil {
		return Client{}, "", metadata("%s", errs.As(err).Message)
	}
	rights, _ := agents(scopes)
	for _, scope := range rights {
		if !Registrable.Has(scope) {
			return Client{}, "", metadata(
				"a client that registers itself cannot have the scope %s; it can have %s and agent:<agent_id>",
				scope, Registrable)
		}
	}
	c := Client{
		ID: s.newID(ClientPrefix), Name: r.Name, Method: r.Method, RedirectURIs: r.RedirectURIs,
		Scopes: scopes, CreatedAt: s.now(),
	}
	if len(rights) == 0 {
		c.Scopes = append(Registrable[:len(Registrable):len(Registrable)], scopes...)
	}
	if c.Method == "" {
		c.Method = Public
	}
	if c.Name == "" {
		c.Name = "An unnamed program"
	}
	secret, hash := c.newSecret()
	// The client belongs to no org, so its entry goes to the log of the platform.
	e := identity.NewEntry(ctx, c.CreatedAt, "", ClientRegister, c.ID, c.Name+" "+strings.Join(c.RedirectURIs, " "))
	return c, secret, s.clients.CreateClient(ctx, c, hash, e)
}

// newSecret returns a new secret and its hash. Both are empty for a public client.
func (c *Client) newSecret() (string, identity.Hash) {
	if c.Method == Public {
		return "", identity.Hash{}
	}
	secret := strings.ToLower(rand.Text() + rand.Text())
	return secret, identity.HashSecret(secret)
}

func metadata(format string, args ...any) error {
	return errs.New(errs.Invalid, "oauth.bad_client_metadata", format, args...)
}

func (r *Registration) check() error {
	if n := len(r.RedirectURIs); n == 0 || n > maxRedirects {
		return errs.New(errs.Invalid, "oauth.bad_redirect_uri", "redirect_uris must have 1 to %d entries", maxRedirects)
	}
	for _, u := range r.RedirectURIs {
		if err := checkRedirect(u); err != nil {
			return err
		}
	}
	// Other grant types are ignored: clients list all that they support, and the response
	// lists those that they got.
	if slices.Contains(r.GrantTypes, ClientCredentials) ||
		len(r.GrantTypes) > 0 && !slices.Contains(r.GrantTypes, AuthorizationCode) {
		return metadata("grant_types must have %s, and can have %s; %s needs a key that an admin made",
			AuthorizationCode, RefreshToken, ClientCredentials)
	}
	for _, t := range r.ResponseTypes {
		if t != "code" {
			return metadata("response_types can be code only")
		}
	}
	switch r.Method {
	case "", Public, SecretBasic, SecretPost:
	default:
		return metadata("token_endpoint_auth_method must be %s, %s or %s", Public, SecretBasic, SecretPost)
	}
	if problem := identity.NameRule.Check(r.Name); problem != "" && r.Name != "" {
		return metadata("client_name %s", problem)
	}
	return nil
}

// CommandLine is the client of "parley login". Every server has it, and it has no secret. It
// redirects to the person's own machine only, so it may request every scope of a person.
var CommandLine = Client{
	ID: "client-parley-cli", Name: "Parley command line", BuiltIn: true, Method: Public,
	RedirectURIs: []string{"http://127.0.0.1/callback"},
	Scopes:       identity.Scopes{identity.TasksRead, identity.TasksWrite, identity.A2AWrite, identity.Admin},
}

// Client returns a client, with the hash of its secret.
func (s *Service) Client(ctx context.Context, id string) (Client, identity.Hash, error) {
	switch {
	case id == CommandLine.ID:
		return CommandLine, identity.Hash{}, nil
	case !ValidClientID(id) && !ValidDocumentID(id):
		return Client{}, identity.Hash{}, errs.ErrNotFound
	}
	return s.clients.Client(ctx, id)
}

// ClientFor returns a client as a member of an org sees it: clients of other orgs are
// NotFound.
func (s *Service) ClientFor(ctx context.Context, org, id string) (Client, identity.Hash, error) {
	c, h, err := s.Client(ctx, id)
	if err == nil && c.Org != "" && c.Org != org {
		return Client{}, identity.Hash{}, errs.ErrNotFound
	}
	return c, h, err
}

// Vouched reports whether a client is trusted before the person is asked: it is part of
// Parley, an admin of the person's org registered it, or the person has a grant for it. Only
// to such a client errors are redirected without asking the person. Any other client could
// use the server as an open redirector.
func (s *Service) Vouched(ctx context.Context, p identity.Principal, id string) (bool, error) {
	c, _, err := s.ClientFor(ctx, p.Org, id)
	switch {
	case err != nil && errs.KindOf(err) == errs.NotFound:
		return false, nil
	case err != nil:
		return false, err
	case c.BuiltIn || c.Org != "":
		return true, nil
	}
	return s.grants.HasGrant(ctx, p, c.ID, s.now())
}

// KeyClient returns the key of an agent or a service as a client, with the hash of its
// secret. The key of a user is NotFound: people act themselves or consent to a client.
func (s *Service) KeyClient(ctx context.Context, id string) (identity.Key, identity.Hash, error) {
	if !identity.ValidKeyID(id) {
		return identity.Key{}, identity.Hash{}, errs.ErrNotFound
	}
	k, h, err := s.clients.KeyClient(ctx, id)
	if err == nil && (k.Disabled || !k.Live(s.now()) || k.Principal.Kind == identity.User) {
		err = errs.ErrNotFound
	}
	return k, h, err
}
