package oauth

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

// A client need not register: its id can be the address of a document that describes
// it, written as a registration is (Client ID Metadata Documents). The document is
// read when a person is about to be asked; what it said then is kept, so that tokens
// can be renewed without it.

// ClientDescribe goes to the audit log when a document is new or says something else.
const ClientDescribe identity.AuditAction = "oauth.client.describe"

const maxDocumentID = 500

// ValidDocumentID reports whether s can be the address of a client's document.
func ValidDocumentID(s string) bool {
	if !strings.HasPrefix(s, "https://") || len(s) > maxDocumentID || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return false
	}
	u, err := url.Parse(s)
	if err != nil || u.Hostname() == "" || u.User != nil || strings.Contains(s, "#") || strings.Trim(u.Path, "/") == "" {
		return false
	}
	// One document has one address: nothing that is written in two ways.
	return u.String() == s && u.Host == strings.ToLower(u.Host) &&
		!slices.ContainsFunc(strings.Split(u.Path, "/"), func(segment string) bool { return segment == "." || segment == ".." })
}

// Describe takes down what the document at a client's address says of it.
func (s *Service) Describe(ctx context.Context, id string, r Registration) error {
	c, err := described(id, r)
	if err != nil {
		return err
	}
	c.CreatedAt = s.now()
	// As with a registration, no org has to do with it yet.
	e := identity.NewEntry(ctx, c.CreatedAt, "", ClientDescribe, c.ID, c.Name+" "+strings.Join(c.RedirectURIs, " "))
	return s.store.PutDescribedClient(ctx, c, e)
}

// described makes a client of a document. One document serves every authorization
// server there is, so what this one does not have is passed over, where a registration
// would be refused; but something must be left.
func described(id string, r Registration) (Client, error) {
	if !ValidDocumentID(id) {
		return Client{}, errs.ErrNotFound
	}
	if len(r.GrantTypes) > 0 && !slices.Contains(r.GrantTypes, AuthorizationCode) {
		return Client{}, metadata("grant_types must have %s", AuthorizationCode)
	}
	if len(r.ResponseTypes) > 0 && !slices.Contains(r.ResponseTypes, "code") {
		return Client{}, metadata("response_types must have code")
	}
	if r.Method != "" && r.Method != Public {
		return Client{}, metadata("token_endpoint_auth_method must be %s: a document is no place for a secret", Public)
	}
	all := r.RedirectURIs
	r.GrantTypes, r.ResponseTypes, r.RedirectURIs = nil, nil, nil
	for _, u := range all {
		if checkRedirect(u) == nil && len(r.RedirectURIs) < maxRedirects {
			r.RedirectURIs = append(r.RedirectURIs, u)
		}
	}
	if len(r.RedirectURIs) == 0 {
		return Client{}, errs.New(errs.Invalid, "oauth.bad_redirect_uri", "redirect_uris must have an address with https, of the user's own machine, or of a scheme of an app's own")
	}
	if err := r.check(); err != nil {
		return Client{}, err
	}
	c := Client{ID: id, Name: r.Name, Method: Public, RedirectURIs: r.RedirectURIs}
	for scope := range strings.FieldsSeq(r.Scope) {
		known, err := identity.ParseScope(scope)
		if _, restrictions := agents(identity.Scopes{known}); err == nil && (Registrable.Has(known) || len(restrictions) > 0) &&
			!c.Scopes.Has(known) && len(c.Scopes) < identity.MaxScopes {
			c.Scopes = append(c.Scopes, known)
		}
	}
	if rights, _ := agents(c.Scopes); len(rights) == 0 {
		c.Scopes = append(slices.Clone(Registrable), c.Scopes...)
	}
	if c.Name == "" {
		c.Name = DocumentHost(id)
	}
	return c, nil
}

// DocumentHost is the host that the document of a client comes from, the one thing
// about the client that is known to be true. It is empty for an id that is no address.
func DocumentHost(id string) string {
	u, err := url.Parse(id)
	if err != nil || !ValidDocumentID(id) {
		return ""
	}
	return u.Host
}
