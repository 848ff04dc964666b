package sso

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/oauth"
)

// Members looks up the members that tokens belong to.
type Members interface {
	Member(ctx context.Context, p identity.Principal) (identity.Member, error)
	// MemberBySubject returns the user that signs in with the identity, or NotFound.
	MemberBySubject(ctx context.Context, org, issuer, subject string) (identity.Member, error)
}

// Verifier verifies access tokens of other issuers. It implements identity.ExternalTokens.
type Verifier struct {
	members   Members
	now       func() time.Time
	providers []*Provider // whose tokens are accepted
}

// NewVerifier returns the verifier, or nil if no provider has accepted tokens.
func NewVerifier(providers []*Provider, members Members, now func() time.Time) *Verifier {
	v := &Verifier{members: members, now: now}
	for _, p := range providers {
		if p.Tokens != nil {
			v.providers = append(v.providers, p)
		}
	}
	if len(v.providers) == 0 {
		return nil
	}
	return v
}

// Issuers lists the issuers whose tokens are accepted.
func (v *Verifier) Issuers() []string {
	var out []string
	for _, p := range v.providers {
		if !slices.Contains(out, p.Issuer.Issuer) {
			out = append(out, p.Issuer.Issuer)
		}
	}
	return out
}

func bad(code, format string, args ...any) error {
	return errs.New(errs.Unauthenticated, code, format, args...)
}

var errShape = bad("auth.invalid", "the access token is not a signed JWT that can be read; ask its issuer for a new one")

// peeked holds the unverified header and claims of a token.
type peeked struct {
	alg, typ  string
	issuer    string
	audience  []string
	ends      float64
	notBefore float64
}

// peek parses a token without verifying its signature.
func peek(token string) (peeked, bool) {
	parts := strings.Split(token, ".")
	if len(token) > identity.MaxJWT || len(parts) != 3 {
		return peeked{}, false
	}
	var head struct {
		Alg string `json:"alg"`
		Typ string `json:"typ"`
	}
	var body struct {
		Issuer    string          `json:"iss"`
		Audience  json.RawMessage `json:"aud"`
		Ends      float64         `json:"exp"`
		NotBefore float64         `json:"nbf"`
	}
	for i, into := range []any{&head, &body} {
		data, err := base64.RawURLEncoding.DecodeString(parts[i])
		if err != nil || json.Unmarshal(data, into) != nil {
			return peeked{}, false
		}
	}
	out := peeked{alg: head.Alg, typ: head.Typ, issuer: body.Issuer, ends: body.Ends, notBefore: body.NotBefore}
	var one string
	if json.Unmarshal(body.Audience, &one) == nil {
		out.audience = []string{one}
	} else if json.Unmarshal(body.Audience, &out.audience) != nil {
		return peeked{}, false
	}
	return out, true
}

// accessTypes are the values of typ that an access token can have (RFC 9068).
var accessTypes = []string{"", "jwt", "at+jwt", "application/at+jwt"}

// choose finds the issuer of a token. It refuses tokens that are invalid whatever their
// signature, so that a forged token costs neither a verification nor a request.
func (v *Verifier) choose(token string) (*Provider, peeked, error) {
	t, ok := peek(token)
	if !ok {
		return nil, t, errShape
	}
	var found *Provider
	known := false
	for _, p := range v.providers {
		if p.Issuer.Issuer == t.issuer {
			known = true
			if slices.Contains(t.audience, p.Tokens.Audience) {
				found = p
				break
			}
		}
	}
	now := v.now()
	switch {
	case !known:
		return nil, t, bad("auth.token_issuer", "tokens of the issuer of this access token are not accepted here")
	case found == nil:
		return nil, t, bad("auth.audience",
			"the access token was made for another audience; ask its issuer for one that is meant for this server")
	case !slices.Contains(algorithms, t.alg):
		return nil, t, bad("auth.token_algorithm",
			"the access token must be signed with one of %s", strings.Join(algorithms, ", "))
	case !slices.Contains(accessTypes, strings.ToLower(t.typ)):
		return nil, t, bad("auth.token_type", "the token is no access token")
	case !now.Before(end(t.ends)):
		return nil, t, bad("auth.token_expired", "the access token has expired; ask its issuer for a new one")
	case now.Add(skew).Before(unix(t.notBefore)):
		return nil, t, bad("auth.token_early",
			"the access token is not valid yet; compare the clocks of this server and its issuer")
	}
	return found, t, nil
}

// maxUnix is the end of the year 9999, the latest accepted time.
const maxUnix = 253402300799

func unix(sec float64) time.Time {
	if !(sec >= 0) {
		sec = 0
	}
	return time.UnixMilli(int64(min(sec, maxUnix) * 1000))
}

// end returns when a token expires by our clock.
func end(exp float64) time.Time { return unix(exp).Add(skew) }

// CallerByJWT implements identity.ExternalTokens.
func (v *Verifier) CallerByJWT(ctx context.Context, token string) (*identity.Caller, error) {
	p, t, err := v.choose(token)
	if err != nil {
		return nil, err
	}
	keys := &keySet{p: p}
	verified, err := oidc.NewVerifier(p.Issuer.Issuer, keys, &oidc.Config{
		ClientID: p.Tokens.Audience, SupportedSigningAlgs: algorithms, Now: p.lenient,
	}).Verify(ctx, token)
	switch {
	case keys.away != nil && ctx.Err() != nil:
		return nil, ctx.Err()
	case keys.away != nil:
		return nil, p.away(keys.away)
	case err != nil:
		return nil, bad("auth.token_signature",
			"no key that %s publishes made the signature of this access token; ask for a new one", p.Title)
	}
	var c claims
	if err := verified.Claims(&c); err != nil {
		return nil, errShape
	}
	if err := onlyAccess(t.typ, c); err != nil {
		return nil, err
	}
	m, err := v.speaksFor(ctx, p, verified.Subject, c)
	if err != nil {
		return nil, err
	}
	scopes := p.Tokens.scopes(c)
	if m.Kind == identity.User {
		scopes = oauth.Within(m, scopes)
	}
	return &identity.Caller{
		Principal: m.Principal, KeyID: keyID(p.Name, token), Scopes: scopes, ExpiresAt: end(t.ends),
	}, nil
}

// onlyAccess refuses other tokens that the issuer signs with the same keys, such as ID tokens,
// and tokens that are bound to a key of their holder.
func onlyAccess(typ string, c claims) error {
	access := strings.HasSuffix(strings.ToLower(typ), "at+jwt")
	for _, claim := range []string{"at_hash", "c_hash", "s_hash", "events"} { // of ID and logout tokens
		if c[claim] != nil {
			return bad("auth.token_type", "the token is no access token")
		}
	}
	kind := strings.ToLower(c.text("typ")) // set by Keycloak
	if kind != "" && kind != "bearer" || c["nonce"] != nil && !access && kind != "bearer" {
		return bad("auth.token_type", "the token is no access token")
	}
	if c["cnf"] != nil {
		return bad("auth.token_bound",
			"the access token is bound to a key of its holder, which is not supported; ask for a bearer token")
	}
	return nil
}

// speaksFor returns the member that the token belongs to: the user that signs in with the
// subject, or the principal of a matching rule.
func (v *Verifier) speaksFor(ctx context.Context, p *Provider, subject string, c claims) (identity.Member, error) {
	m, err := identity.Member{}, error(errs.ErrNotFound)
	if p.Tokens.Users && subject != "" && len(subject) <= maxSubject {
		m, err = v.members.MemberBySubject(ctx, p.Org, p.Issuer.Issuer, subject)
	}
	if who, ok := p.Tokens.principal(c); ok && err != nil && errs.KindOf(err) == errs.NotFound {
		m, err = v.members.Member(ctx, who)
	}
	switch {
	case err != nil && errs.KindOf(err) == errs.NotFound:
		return m, bad("auth.token_nobody",
			"the access token is valid, but belongs to no member here; "+
				"people sign in with %s once, and programs are named by the operator", p.Title)
	case err != nil:
		return m, err
	case m.Disabled:
		return m, bad("auth.token_disabled", "%s is disabled; ask an admin of the org", m.Ref())
	}
	return m, nil
}

// keyID returns the id of the credential for the audit log.
func keyID(issuer, token string) string {
	sum := sha256.Sum256([]byte("external:" + token))
	return "ext-" + issuer + "-" + hex.EncodeToString(sum[:8])
}
