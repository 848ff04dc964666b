package oauth

import (
	"context"
	"crypto/rand"
	"slices"
	"strings"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

// Registration is what a client says about itself (RFC 7591).
type Registration struct {
	Name          string
	RedirectURIs  []string
	GrantTypes    []string // empty: authorization_code
	ResponseTypes []string // empty: code
	Method        Method   // empty: none
	Scope         string   // empty: all that may be registered
}

// The grants that a client which registered itself may use. client_credentials is
// for those whom an admin gave a key.
const (
	AuthorizationCode = "authorization_code"
	RefreshToken      = "refresh_token"
	ClientCredentials = "client_credentials"
)

// ClientPrefix starts the id of a registered client; KeyPrefix that of a key.
const (
	ClientPrefix = "client-"
	KeyPrefix    = "key-"
	grantPrefix  = "grant-"
)

// Register makes a client for whoever asks. The secret is shown this once, and empty
// for a public client.
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
			return Client{}, "", metadata("a client that registers itself cannot have the scope %s; it can have %s and agent:<agent_id>",
				scope, Registrable)
		}
	}
	c := Client{
		ID: s.newID(ClientPrefix), Name: r.Name, Method: r.Method, RedirectURIs: r.RedirectURIs, Scopes: scopes, CreatedAt: s.now(),
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
	// It belongs to no org yet, so its entry stands in the platform's own log.
	e := identity.NewEntry(ctx, c.CreatedAt, "", ClientRegister, c.ID, c.Name+" "+strings.Join(c.RedirectURIs, " "))
	return c, secret, s.store.CreateClient(ctx, c, hash, e)
}

// newSecret is empty for a public client.
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
	// Clients list all grants that they know; the answer says which ones they got.
	if slices.Contains(r.GrantTypes, ClientCredentials) || len(r.GrantTypes) > 0 && !slices.Contains(r.GrantTypes, AuthorizationCode) {
		return metadata("grant_types must have %s, and can have %s; %s needs a key that an admin made", AuthorizationCode, RefreshToken, ClientCredentials)
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

// CommandLine is the client that "parley login" is: known to every server, without
// a secret. Its answers can only go to the person's own machine, so it may ask for all
// that a person may give.
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
	return s.store.Client(ctx, id)
}

// ClientFor is Client for a member of an org: the clients of other orgs do not exist.
func (s *Service) ClientFor(ctx context.Context, org, id string) (Client, identity.Hash, error) {
	c, h, err := s.Client(ctx, id)
	if err == nil && c.Org != "" && c.Org != org {
		return Client{}, identity.Hash{}, errs.ErrNotFound
	}
	return c, h, err
}

// Vouched reports whether somebody stands for a client before the person is asked: it is
// part of Parley, an admin of the person's org registered it, or the person allows it
// something already. Only such a client is sent an error without the person's doing;
// any other could use this server to send people wherever it likes.
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
	return s.store.HasGrant(ctx, p, c.ID, s.now())
}

// KeyClient returns the key of an agent or a service that acts as a client of its
// own, with the hash of its secret. A key of a user is no client: people act by
// themselves, or allow a client to.
func (s *Service) KeyClient(ctx context.Context, id string) (identity.Key, identity.Hash, error) {
	if !identity.ValidKeyID(id) {
		return identity.Key{}, identity.Hash{}, errs.ErrNotFound
	}
	k, h, err := s.store.KeyClient(ctx, id)
	if err == nil && (k.Disabled || !k.Live(s.now()) || k.Principal.Kind == identity.User) {
		err = errs.ErrNotFound
	}
	return k, h, err
}
