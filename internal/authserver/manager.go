package authserver

import (
	"context"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/luikyv/go-oidc/pkg/goidc"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/oauth"
)

// manager implements the storage interfaces of the library with package oauth.
type manager struct{ *server }

// Context keys of a request for the manager.
type (
	styleKey    struct{} // how the client sent its secret: a goidc.AuthnMethod
	redirectKey struct{} // the requested redirect URI: a string
	orgKey      struct{} // the org of the signed-in person: a string
	addressKey  struct{} // the IP address of the browser, for limits: a string
	redeemKey   struct{} // set at the token endpoint, where a refresh token is consumed
	proofKey    struct{} // the authentication of the client: a *proof
)

// Keys in the Store of a goidc.Grant: the oauth.Grant, and the person who consented.
const (
	storedGrant = "grant"
	storedOrg   = "org"
	storedUser  = "user"
)

func hashCode(s string) identity.Hash    { return identity.HashSecret("code:" + s) }
func hashRefresh(s string) identity.Hash { return identity.HashSecret("refresh:" + s) }
func hashRequest(s string) identity.Hash { return identity.HashSecret("request:" + s) }

// notFound translates NotFound into the error of the library.
func notFound(err error) error {
	if err != nil && errs.KindOf(err) == errs.NotFound {
		return goidc.ErrNotFound
	}
	return err
}

var errOver = goidc.NewError(goidc.ErrorCodeInvalidGrant, "invalid grant")

// SaveGrant implements goidc.GrantManager. The library reads, changes and saves a grant
// without a lock, so the version of the grant detects concurrent changes.
func (m *manager) SaveGrant(ctx context.Context, g *goidc.Grant) error {
	now, life := m.Now(), m.Service.Lifetimes()
	dom, known := g.Store[storedGrant].(oauth.Grant)
	switch {
	case known && g.RevokedAt != 0:
		return m.Service.Revoke(ctx, dom)
	case known:
		if g.AuthCodeConsumedAt != 0 && dom.CodeUsedAt.IsZero() {
			dom.CodeUsedAt = now
		}
		if g.RefreshToken != "" {
			dom.Refresh, dom.RefreshExpires = hashRefresh(g.RefreshToken), now.Add(life.Refresh)
			dom.EndsAt = later(dom.EndsAt, dom.RefreshExpires)
		}
		err := m.Service.Use(ctx, dom)
		if err != nil && errs.KindOf(err) == errs.NotFound {
			return errOver
		}
		return err
	}
	dom = oauth.Grant{
		ID: g.ID, ClientID: g.ClientID, Scopes: identity.SplitScopes(g.Scopes), Audience: m.audience(g.Resources),
		CreatedAt: now, EndsAt: now.Add(life.Token), Version: 1,
	}
	if p, ok := g.Store["principal"].(identity.Principal); ok {
		dom.Principal = p
	} else {
		org, _ := g.Store[storedOrg].(string)
		user, _ := g.Store[storedUser].(string)
		dom.Principal = identity.Principal{Org: org, Kind: identity.User, ID: user}
	}
	if g.AuthCode != "" {
		dom.Code, dom.CodeExpires = hashCode(g.AuthCode), time.Unix(int64(g.AuthCodeExpiresAt), 0).UTC()
		dom.Challenge, dom.RedirectURI = g.AuthParams.CodeChallenge, g.AuthParams.RedirectURI
		dom.EndsAt = later(dom.EndsAt, dom.CodeExpires)
	}
	if g.RefreshToken != "" {
		// The library makes the refresh token now and returns it when the code is redeemed.
		// The token would have to be stored in clear until then, so another one is made at
		// that time.
		dom.RefreshExpires = now.Add(life.Refresh)
		dom.EndsAt = later(dom.EndsAt, dom.RefreshExpires)
	}
	g.Store = map[string]any{storedGrant: dom}
	return m.Service.Create(ctx, dom)
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func (m *manager) grantOf(dom oauth.Grant) *goidc.Grant {
	return &goidc.Grant{
		ID: dom.ID, CreatedAt: seconds(dom.CreatedAt), RevokedAt: seconds(dom.RevokedAt),
		Subject: subject(dom.Principal), ClientID: dom.ClientID,
		Username: dom.Principal.ID, Scopes: dom.Scopes.String(), Resources: m.resourcesOf(dom.Audience),
		RefreshTokenExpiresAt: seconds(dom.RefreshExpires), AuthCodeExpiresAt: seconds(dom.CodeExpires),
		AuthCodeConsumedAt: seconds(dom.CodeUsedAt),
		AuthParams: goidc.AuthorizationParameters{
			RedirectURI: dom.RedirectURI, CodeChallenge: dom.Challenge,
			CodeChallengeMethod: goidc.CodeChallengeMethodSHA256,
		},
		Store: map[string]any{storedGrant: dom},
	}
}

// subject returns the sub claim of a principal.
func subject(p identity.Principal) string { return p.Org + "/" + p.Ref() }

func seconds(t time.Time) int {
	if t.IsZero() {
		return 0
	}
	return int(t.Unix())
}

// Grant implements goidc.GrantManager.
func (m *manager) Grant(ctx context.Context, id string) (*goidc.Grant, error) {
	dom, err := m.Service.Grant(ctx, id)
	if err != nil {
		return nil, notFound(err)
	}
	return m.grantOf(dom), nil
}

// GrantByAuthCode implements goidc.AuthManager.
func (m *manager) GrantByAuthCode(ctx context.Context, code string) (*goidc.Grant, error) {
	dom, err := m.Service.GrantByCode(ctx, hashCode(code))
	if err != nil {
		return nil, notFound(err)
	}
	g := m.grantOf(dom)
	if g.AuthCode = code; !dom.RefreshExpires.IsZero() {
		g.RefreshToken = random(ctx)
	}
	return g, nil
}

// GrantByRefreshToken implements goidc.RefreshTokenManager.
func (m *manager) GrantByRefreshToken(ctx context.Context, token string) (*goidc.Grant, error) {
	dom, err := m.Service.GrantByRefresh(ctx, hashRefresh(token), ctx.Value(redeemKey{}) != nil)
	if err != nil {
		return nil, notFound(err)
	}
	return m.grantOf(dom), nil
}

// handleGrant is called for every grant before it is saved.
func (m *manager) handleGrant(ctx context.Context, typ goidc.GrantType, g *goidc.Grant) error {
	if typ != goidc.GrantClientCredentials {
		return nil
	}
	key, _, err := m.Service.KeyClient(ctx, g.ClientID)
	if err != nil {
		return goidc.WrapError(goidc.ErrorCodeInvalidClient, "invalid client", notFound(err))
	}
	scopes, err := oauth.SelfGrant(key, identity.SplitScopes(g.Scopes))
	if err != nil {
		return goidc.NewError(goidc.ErrorCodeInvalidScope, errs.As(err).Message)
	}
	g.Scopes = scopes.String()
	g.Store = map[string]any{"principal": key.Principal}
	return nil
}

// handleToken is called for every token before it is saved. The library has only checked that
// each scope was granted, so a request for a scope without its restriction to agents would
// remove the restriction.
func (m *manager) handleToken(ctx context.Context, t *goidc.Token, g *goidc.Grant) error {
	dom, ok := g.Store[storedGrant].(oauth.Grant)
	if !ok {
		return errors.New("a token of a grant that was not saved")
	}
	member, err := m.Members.Member(ctx, dom.Principal)
	if err != nil {
		return err
	}
	scopes, err := m.Service.TokenScopes(ctx, dom, member, identity.SplitScopes(t.Scopes))
	if err != nil {
		return goidc.NewError(goidc.ErrorCodeInvalidGrant, errs.As(err).Message)
	}
	t.Scopes = scopes.String()
	return nil
}

// SaveToken implements goidc.OpaqueTokenManager.
func (m *manager) SaveToken(ctx context.Context, t *goidc.Token) error {
	h := identity.HashSecret(t.ID)
	if t.RevokedAt != 0 {
		st, err := m.Service.Token(ctx, h)
		if err != nil {
			return notFound(err)
		}
		return m.Service.RevokeToken(ctx, st, h)
	}
	dom, err := m.Service.Grant(ctx, t.GrantID)
	if err != nil {
		return err
	}
	return m.Service.Issue(ctx, dom, oauth.Token{
		GrantID: t.GrantID, ClientID: t.ClientID,
		Scopes: identity.SplitScopes(t.Scopes), Audience: m.audience(t.Resources),
		CreatedAt: time.Unix(int64(t.CreatedAt), 0).UTC(), ExpiresAt: time.Unix(int64(t.ExpiresAt), 0).UTC(),
	}, h)
}

// Token implements goidc.OpaqueTokenManager.
func (m *manager) Token(ctx context.Context, value string) (*goidc.Token, error) {
	if !identity.WellFormedToken(value) {
		return nil, goidc.ErrNotFound
	}
	st, err := m.Service.Token(ctx, identity.HashSecret(value))
	if err != nil {
		return nil, notFound(err)
	}
	t := &goidc.Token{
		ID: value, GrantID: st.GrantID, ClientID: st.ClientID, Subject: subject(st.Grant.Principal),
		CreatedAt: seconds(st.CreatedAt), ExpiresAt: seconds(st.ExpiresAt), RevokedAt: seconds(st.RevokedAt),
		Format: goidc.TokenFormatOpaque, Type: goidc.TokenTypeBearer,
		Scopes: st.Scopes.String(), Resources: m.resourcesOf(st.Audience),
	}
	if t.RevokedAt == 0 && !m.Service.Works(&st) {
		t.RevokedAt = seconds(m.Now())
	}
	return t, nil
}

// claims returns the claims of introspection beyond the standard ones.
func (m *manager) claims(_ context.Context, _ *goidc.Token, g *goidc.Grant) map[string]any {
	dom, ok := g.Store[storedGrant].(oauth.Grant)
	if !ok {
		return nil
	}
	return map[string]any{"org": dom.Principal.Org, "principal": dom.Principal.Ref()}
}

// mayIntrospect reports whether a client may introspect a token: a client with a secret its
// own tokens, a key with svc:admin:admin all tokens of its org.
func (m *manager) mayIntrospect(ctx context.Context, c *goidc.Client, info goidc.TokenInfo) bool {
	if c.IsPublic() {
		return false
	}
	if info.ClientID == c.ID {
		return true
	}
	key, _, err := m.Service.KeyClient(ctx, c.ID)
	if err != nil || !key.Scopes.Has(identity.Admin) {
		return false
	}
	g, err := m.Service.Grant(ctx, info.GrantID)
	return err == nil && g.Principal.Org == key.Principal.Org
}

// Client implements goidc.DCRManager. The id is that of a client or of a key.
func (m *manager) Client(ctx context.Context, id string) (*goidc.Client, error) {
	if strings.HasPrefix(id, oauth.KeyPrefix) {
		key, h, err := m.Service.KeyClient(ctx, id)
		if err != nil {
			return nil, notFound(err)
		}
		// The library supports one authentication method per client, but a key accepts both.
		style, _ := ctx.Value(styleKey{}).(goidc.AuthnMethod)
		if style == "" {
			style = goidc.AuthnMethodSecretBasic
		}
		return &goidc.Client{ID: id, Secret: stored(h), ClientMeta: goidc.ClientMeta{
			GrantTypes: []goidc.GrantType{goidc.GrantClientCredentials},
			ScopeIDs:   scopeIDs(key.Scopes), TokenAuthnMethod: style,
		}}, nil
	}
	find := m.Service.Client
	if org, signedIn := ctx.Value(orgKey{}).(string); signedIn {
		// For this person, clients of other orgs do not exist.
		find = func(ctx context.Context, id string) (oauth.Client, identity.Hash, error) {
			return m.Service.ClientFor(ctx, org, id)
		}
	}
	c, h, err := find(ctx, id)
	if err != nil {
		return nil, notFound(err)
	}
	out := &goidc.Client{ID: id, Secret: stored(m.Service.Secrets(c, h)...), ClientMeta: goidc.ClientMeta{
		Name: c.Name, RedirectURIs: slices.Clone(c.RedirectURIs), ScopeIDs: scopeIDs(c.Scopes),
		TokenAuthnMethod: goidc.AuthnMethod(c.Method),
		GrantTypes:       []goidc.GrantType{goidc.GrantAuthorizationCode, goidc.GrantRefreshToken},
		ResponseTypes:    []goidc.ResponseType{goidc.ResponseTypeCode},
		// For native clients the library would remove the port of the requested URI and not
		// match URIs that were registered with one. oauth.MatchRedirect is used instead.
		ApplicationType: goidc.ApplicationTypeWeb,
	}}
	if asked, _ := ctx.Value(redirectKey{}).(string); asked != "" && oauth.MatchRedirect(c.RedirectURIs, asked) {
		out.RedirectURIs = append(out.RedirectURIs, asked)
	}
	return out, nil
}

// scopeIDs returns the scopes as the library compares them: all restrictions to agents are one
// scope, which every client may request.
func scopeIDs(s identity.Scopes) string {
	ids := []string{agentScope}
	for _, scope := range s {
		if !strings.HasPrefix(string(scope), agentScope+":") {
			ids = append(ids, string(scope))
		}
	}
	return strings.Join(ids, " ")
}

var errNotHere = errors.New("clients are registered elsewhere")

// SaveClient implements goidc.DCRManager. The routes that use it are not mounted.
func (m *manager) SaveClient(context.Context, *goidc.Client) error { return errNotHere }

// DeleteClient implements goidc.DCRManager. The routes that use it are not mounted.
func (m *manager) DeleteClient(context.Context, string) error { return errNotHere }

// stored returns the hashes of a client's secrets for the library. Each of them is valid.
func stored(secrets ...identity.Hash) string {
	out := make([]string, len(secrets))
	for i, h := range secrets {
		out[i] = hex.EncodeToString(h[:])
	}
	return strings.Join(out, " ")
}

// verifySecret compares a secret with all stored hashes, in constant time. If the secret is
// right, the request is charged to the client.
func (m *manager) verifySecret(ctx context.Context, stored, presented string) error {
	h := identity.HashSecret(presented)
	asked := []byte(hex.EncodeToString(h[:]))
	same := 0
	for one := range strings.FieldsSeq(stored) {
		same |= subtle.ConstantTimeCompare([]byte(one), asked)
	}
	if presented == "" || same != 1 {
		return errors.New("wrong secret")
	}
	if p, ok := ctx.Value(proofKey{}).(*proof); ok {
		p.refusal = m.limits.clients.Take(p.client)
		return p.refusal
	}
	return nil
}

// SaveSession implements goidc.AuthManager. An authorization request is deleted when it is
// decided, so a second decision fails.
func (m *manager) SaveSession(ctx context.Context, as *goidc.AuthnSession) error {
	id := hashRequest(as.ID)
	if as.Status == goidc.StatusPending {
		data, err := json.Marshal(as)
		if err != nil {
			return err
		}
		expires := time.Unix(int64(as.ExpiresAt), 0)
		if address, ok := ctx.Value(addressKey{}).(string); ok {
			m.limits.questions.put(id, address, expires)
		}
		return m.Requests.PutRequest(ctx, id, data, expires)
	}
	m.limits.questions.end(id)
	err := m.Requests.EndRequest(ctx, id)
	if err != nil && errs.KindOf(err) == errs.NotFound {
		if as.Status == goidc.StatusSuccess {
			return goidc.NewError(goidc.ErrorCodeInvalidRequest, "this authorization request was already decided")
		}
		return nil
	}
	return err
}

// Session implements goidc.AuthManager.
func (m *manager) Session(ctx context.Context, id string) (*goidc.AuthnSession, error) {
	data, err := m.Requests.Request(ctx, hashRequest(id), m.Now())
	if err != nil {
		return nil, notFound(err)
	}
	var as goidc.AuthnSession
	if err := json.Unmarshal(data, &as); err != nil {
		return nil, err
	}
	as.ID = id
	return &as, nil
}
