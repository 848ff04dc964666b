package sso

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
	"golang.org/x/oauth2"

	"github.com/parley-dev/parley/internal/errs"
)

// How often the metadata and keys of a provider are fetched.
const (
	documentFresh = time.Hour
	documentPause = 5 * time.Second
	keysFresh     = 15 * time.Minute // how long a key still works after the issuer removed it
	keysPause     = 10 * time.Second // forged tokens with random key ids must not flood the issuer
)

// Provider is an issuer with its metadata and keys.
type Provider struct {
	Issuer
	client   *http.Client
	now      func() time.Time
	log      *slog.Logger
	document remote[*document]
	keys     remote[[]jose.JSONWebKey]
}

// document is the metadata of a provider.
type document struct {
	*oidc.Provider
	jwks   string
	sendIs bool // authorization responses carry the issuer (RFC 9207)
	style  oauth2.AuthStyle
}

// New returns the providers. It does not contact them.
func New(list []Issuer, log *slog.Logger, now func() time.Time) []*Provider {
	out := make([]*Provider, len(list))
	client := newClient()
	for i, is := range list {
		p := &Provider{Issuer: is, client: client, now: now, log: log}
		p.document = remote[*document]{load: p.discover, now: now, fresh: documentFresh, pause: documentPause}
		p.keys = remote[[]jose.JSONWebKey]{load: p.readKeys, now: now, fresh: keysFresh, pause: keysPause}
		out[i] = p
	}
	return out
}

func (p *Provider) discover(ctx context.Context) (*document, error) {
	d, err := p.readDocument(ctx)
	if err != nil {
		p.log.Warn("cannot read the metadata of an identity provider", "issuer", p.Name, "error", err)
	}
	return d, err
}

func (p *Provider) readDocument(ctx context.Context) (*document, error) {
	ctx = oidc.ClientContext(ctx, p.client)
	op, err := oidc.NewProvider(ctx, p.Issuer.Issuer)
	if err != nil {
		return nil, err
	}
	var d struct {
		JWKS    string   `json:"jwks_uri"`
		SendIs  bool     `json:"authorization_response_iss_parameter_supported"`
		Methods []string `json:"token_endpoint_auth_methods_supported"`
	}
	if err := op.Claims(&d); err != nil {
		return nil, err
	}
	used := map[string]string{"jwks_uri": d.JWKS}
	if p.SignIn != nil {
		used["authorization_endpoint"], used["token_endpoint"] = op.Endpoint().AuthURL, op.Endpoint().TokenURL
		if u := op.UserInfoEndpoint(); u != "" {
			used["userinfo_endpoint"] = u
		}
	}
	for name, addr := range used {
		if err := checkEndpoint(addr); err != nil {
			return nil, fmt.Errorf("its %s %w", name, err)
		}
	}
	// Set explicitly: trying out the style would send a code twice, which looks like theft.
	style := oauth2.AuthStyleInHeader
	if slices.Contains(d.Methods, "client_secret_post") && !slices.Contains(d.Methods, "client_secret_basic") {
		style = oauth2.AuthStyleInParams
	}
	return &document{op, d.JWKS, d.SendIs, style}, nil
}

// readKeys fetches the signing keys of the issuer. Keys of unknown types are ignored.
func (p *Provider) readKeys(ctx context.Context) ([]jose.JSONWebKey, error) {
	keys, err := p.fetchKeys(ctx)
	if err != nil {
		p.log.Warn("cannot read the keys of an identity provider", "issuer", p.Name, "error", err)
	}
	return keys, err
}

func (p *Provider) fetchKeys(ctx context.Context) ([]jose.JSONWebKey, error) {
	d, err := p.document.get(ctx)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, d.jwks, nil)
	if err != nil {
		return nil, err
	}
	res, err := p.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s returned %s", d.jwks, res.Status)
	}
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(body, &set); err != nil {
		return nil, fmt.Errorf("%s: %w", d.jwks, err)
	}
	var keys []jose.JSONWebKey
	for _, raw := range set.Keys {
		var k jose.JSONWebKey
		if json.Unmarshal(raw, &k) == nil && k.Valid() && k.IsPublic() && (k.Use == "" || k.Use == "sig") {
			keys = append(keys, k)
		}
	}
	return keys, nil
}

// algorithms are the accepted algorithms. All have a public key: with "none" and HS256, anyone
// could sign.
var algorithms = []string{
	oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512,
	oidc.PS256, oidc.PS384, oidc.PS512, oidc.EdDSA,
}

var joseAlgorithms = func() []jose.SignatureAlgorithm {
	out := make([]jose.SignatureAlgorithm, len(algorithms))
	for i, a := range algorithms {
		out[i] = jose.SignatureAlgorithm(a)
	}
	return out
}()

// keySet implements oidc.KeySet. If a key is unknown, it fetches the keys again; with insist,
// which is for tokens that came directly from the issuer, without a pause.
type keySet struct {
	p      *Provider
	insist bool
	away   error // why the issuer could not be reached; the library does not wrap errors
}

var errSignature = errors.New("no key of the issuer made the signature")

// VerifySignature implements oidc.KeySet.
func (s *keySet) VerifySignature(ctx context.Context, token string) ([]byte, error) {
	jws, err := jose.ParseSigned(token, joseAlgorithms)
	if err != nil {
		return nil, err
	}
	if len(jws.Signatures) != 1 {
		return nil, errSignature
	}
	keys, err := s.p.keys.get(ctx)
	if err != nil {
		s.away = err
		return nil, err
	}
	if payload, known := try(jws, keys); payload != nil || known {
		return signed(payload)
	}
	switch keys, err = s.p.keys.renew(ctx, s.insist); {
	case errors.Is(err, errTooSoon):
		return nil, errSignature
	case err != nil:
		s.away = err
		return nil, err
	}
	payload, _ := try(jws, keys)
	return signed(payload)
}

// skew is the allowed difference between the issuer's clock and ours.
const skew = time.Minute

// lenient returns the time to compare expiries with.
func (p *Provider) lenient() time.Time { return p.now().Add(-skew) }

func signed(payload []byte) ([]byte, error) {
	if payload == nil {
		return nil, errSignature
	}
	return payload, nil
}

// try verifies the signature with the matching keys. known reports whether the key that the
// token names is among them; then fetching the keys again would not help.
func try(jws *jose.JSONWebSignature, keys []jose.JSONWebKey) (payload []byte, known bool) {
	h := jws.Signatures[0].Header
	for i := range keys {
		k := &keys[i]
		if h.KeyID != "" && k.KeyID != h.KeyID || k.Algorithm != "" && k.Algorithm != h.Algorithm {
			continue
		}
		known = known || h.KeyID != ""
		if payload, err := jws.Verify(k); err == nil {
			return payload, true
		}
	}
	return nil, known
}

// Reach returns an error unless the metadata and the keys of the provider can be read now.
func (p *Provider) Reach(ctx context.Context) error {
	_, err := p.fetchKeys(ctx)
	return err
}

// away returns the error for a provider that cannot be reached.
func (p *Provider) away(cause error) error {
	e := errs.Wrap(cause, errs.Unavailable, "auth.issuer_unreachable",
		"%s cannot be reached at the moment; try again later", p.Title)
	e.RetryAfter = documentPause
	return e
}
