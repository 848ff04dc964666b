package oauth

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

// OAuth Client ID Metadata Documents: the id of a client can be the URL of a document with
// its metadata, in the format of a registration. The document is fetched before a person is
// asked for consent. Its content is stored, so that tokens can be renewed without it.

// ClientDescribe is the audit action for a document that is new or has changed.
const ClientDescribe identity.AuditAction = "oauth.client.describe"

const maxDocumentID = 500

// ValidDocumentID reports whether s can be the URL of a client's document.
func ValidDocumentID(s string) bool {
	notASCII := func(r rune) bool { return r <= ' ' || r >= 0x7f }
	if !strings.HasPrefix(s, "https://") || len(s) > maxDocumentID || strings.ContainsFunc(s, notASCII) {
		return false
	}
	u, err := url.Parse(s)
	if err != nil || u.Hostname() == "" || u.User != nil || strings.Contains(s, "#") ||
		strings.Trim(u.Path, "/") == "" {
		return false
	}
	// Only the canonical form is accepted, so that a document has one id.
	dots := func(segment string) bool { return segment == "." || segment == ".." }
	return u.String() == s && u.Host == strings.ToLower(u.Host) &&
		!slices.ContainsFunc(strings.Split(u.Path, "/"), dots)
}

// Describe stores the client that the document at the URL id describes.
func (s *Service) Describe(ctx context.Context, id string, r Registration) error {
	c, err := described(id, r)
	if err != nil {
		return err
	}
	c.CreatedAt = s.now()
	// Like a registered client, it belongs to no org.
	e := identity.NewEntry(ctx, c.CreatedAt, "", ClientDescribe, c.ID, c.Name+" "+strings.Join(c.RedirectURIs, " "))
	return s.clients.PutDescribedClient(ctx, c, e)
}

// described returns the client that a document describes. A document is written for many
// authorization servers. What this one does not support is skipped, where a registration
// would be refused, but at least one redirect URI must be left.
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
		return Client{}, errs.New(errs.Invalid, "oauth.bad_redirect_uri",
			"redirect_uris must have a URL with https, of the user's own machine, or with a scheme of an app")
	}
	if err := r.check(); err != nil {
		return Client{}, err
	}
	c := Client{ID: id, Name: r.Name, Method: Public, RedirectURIs: r.RedirectURIs}
	for scope := range strings.FieldsSeq(r.Scope) {
		known, err := identity.ParseScope(scope)
		_, restrictions := agents(identity.Scopes{known})
		if err == nil && (Registrable.Has(known) || len(restrictions) > 0) &&
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

// DocumentHost returns the host of a client's document, the only verified property of the
// client. It is empty for an id that is not a URL.
func DocumentHost(id string) string {
	u, err := url.Parse(id)
	if err != nil || !ValidDocumentID(id) {
		return ""
	}
	return u.Host
}
