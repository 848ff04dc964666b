// Package idptest is an identity provider for tests, on its own port. It signs any token that
// a test wants, valid or hostile, and counts the requests.
//
// It is a test double. The tests in e2e use real providers.
package idptest

import (
	"cmp"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Claims are the claims of a token.
type Claims = map[string]any

// Issuer is the provider. Set its fields before the first request.
type Issuer struct {
	*testing.T
	URL    string
	Secret string // of the client "parley"; empty: a public client
	Method string // how the client sends it; empty: any method

	// Person holds the claims of the ID token, More those of the userinfo endpoint.
	Person, More Claims
	// Edit changes an ID token before it is signed.
	Edit func(Claims)
	// Signer signs the ID tokens with the key of another issuer.
	Signer *Issuer
	// Answer changes the query of the redirect.
	Answer func(url.Values)
	// Hold is called before the keys are returned.
	Hold func()

	Documents, KeyReads atomic.Int64 // number of requests
	down                atomic.Bool

	mu    sync.Mutex
	keys  []jose.JSONWebKey // private; the last one signs
	codes map[string]asked
}

// asked holds the authorization request of a code.
type asked struct{ nonce, challenge, redirect string }

// New starts a provider with an RSA key.
func New(t *testing.T) *Issuer {
	t.Helper()
	is := &Issuer{T: t, Secret: "s3cret", codes: map[string]asked{}}
	is.Rotate("k1")
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", is.document)
	mux.HandleFunc("GET /jwks", is.jwks)
	mux.HandleFunc("GET /authorize", is.authorize)
	mux.HandleFunc("POST /token", is.token)
	mux.HandleFunc("GET /userinfo", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, merge(Claims{"sub": is.Person["sub"]}, is.More))
	})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if is.down.Load() {
			http.Error(w, "down", http.StatusBadGateway)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	is.URL = srv.URL
	return is
}

// Down makes the provider fail or work again.
func (is *Issuer) Down(down bool) { is.down.Store(down) }

// Rotate replaces the key.
func (is *Issuer) Rotate(kid string) {
	is.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		is.Fatal(err)
	}
	is.mu.Lock()
	defer is.mu.Unlock()
	is.keys = []jose.JSONWebKey{{Key: key, KeyID: kid, Use: "sig", Algorithm: "RS256"}}
}

// UseEd25519 replaces the key by an Ed25519 key.
func (is *Issuer) UseEd25519(kid string) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		is.Fatal(err)
	}
	is.mu.Lock()
	defer is.mu.Unlock()
	is.keys = []jose.JSONWebKey{{Key: key, KeyID: kid, Use: "sig"}}
}

// Key returns the current signing key.
func (is *Issuer) Key() jose.JSONWebKey {
	is.mu.Lock()
	defer is.mu.Unlock()
	return is.keys[len(is.keys)-1]
}

// Sign returns a token. headers are pairs of names and values.
func (is *Issuer) Sign(c Claims, headers ...string) string {
	is.Helper()
	key := is.Key()
	alg := jose.RS256
	if _, ok := key.Key.(ed25519.PrivateKey); ok {
		alg = jose.EdDSA
	}
	return SignWith(is.T, jose.SigningKey{Algorithm: alg, Key: key}, c, headers...)
}

// SignWith returns a token that is signed with the key.
func SignWith(t *testing.T, key jose.SigningKey, c Claims, headers ...string) string {
	t.Helper()
	o := &jose.SignerOptions{}
	for i := 0; i < len(headers); i += 2 {
		o = o.WithHeader(jose.HeaderKey(headers[i]), headers[i+1])
	}
	s, err := jose.NewSigner(key, o)
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	jws, err := s.Sign(data)
	if err != nil {
		t.Fatal(err)
	}
	out, err := jws.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Access returns the claims of a valid access token for the audience.
func (is *Issuer) Access(audience, subject string, more Claims) Claims {
	now := time.Now()
	return merge(Claims{
		"iss": is.URL, "aud": audience, "sub": subject, "iat": now.Unix(), "exp": now.Add(5 * time.Minute).Unix(),
	}, more)
}

func merge(into, more Claims) Claims {
	maps.Copy(into, more)
	return into
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // the client went away
}

func (is *Issuer) document(w http.ResponseWriter, _ *http.Request) {
	is.Documents.Add(1)
	methods := []string{"client_secret_post", "client_secret_basic"}
	if is.Method != "" {
		methods = []string{is.Method}
	}
	reply(w, Claims{
		"issuer": is.URL, "authorization_endpoint": is.URL + "/authorize", "token_endpoint": is.URL + "/token",
		"jwks_uri": is.URL + "/jwks", "userinfo_endpoint": is.URL + "/userinfo",
		"token_endpoint_auth_methods_supported":          methods,
		"id_token_signing_alg_values_supported":          []string{"RS256", "none", "HS256"},
		"authorization_response_iss_parameter_supported": true,
	})
}

func (is *Issuer) jwks(w http.ResponseWriter, _ *http.Request) {
	is.KeyReads.Add(1)
	if is.Hold != nil {
		is.Hold()
	}
	is.mu.Lock()
	defer is.mu.Unlock()
	set := []any{Claims{"kty": "unheard-of", "kid": "x"}, Claims{"kty": "oct", "kid": "shared", "k": "c2hhcmVk"}}
	for _, k := range is.keys {
		set = append(set, k.Public())
	}
	reply(w, Claims{"keys": set})
}

// authorize signs the person in without asking.
func (is *Issuer) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Get("client_id") != "parley" || q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" ||
		!slices.Contains(strings.Fields(q.Get("scope")), "openid") {
		http.Error(w, "a bad request: "+r.URL.RawQuery, http.StatusBadRequest)
		return
	}
	code := rand.Text()
	is.mu.Lock()
	is.codes[code] = asked{q.Get("nonce"), q.Get("code_challenge"), q.Get("redirect_uri")}
	is.mu.Unlock()
	back := url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {is.URL}}
	if is.Answer != nil {
		is.Answer(back)
	}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

func (is *Issuer) token(w http.ResponseWriter, r *http.Request) {
	is.mu.Lock()
	a, known := is.codes[r.FormValue("code")]
	delete(is.codes, r.FormValue("code"))
	is.mu.Unlock()
	sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	id, secret, basic := r.BasicAuth()
	method := "client_secret_basic"
	if !basic {
		id, secret, method = r.FormValue("client_id"), r.FormValue("client_secret"), "client_secret_post"
	}
	if !known || is.Method != "" && method != is.Method || id != "parley" || secret != is.Secret ||
		base64.RawURLEncoding.EncodeToString(sum[:]) != a.challenge || r.FormValue("redirect_uri") != a.redirect {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`{"error":"invalid_grant","error_description":"<b>no</b>"}`))
		return
	}
	now := time.Now()
	c := merge(Claims{
		"iss": is.URL, "aud": "parley", "iat": now.Unix(), "exp": now.Add(5 * time.Minute).Unix(), "nonce": a.nonce,
	}, is.Person)
	if is.Edit != nil {
		is.Edit(c)
	}
	reply(w, Claims{
		"access_token": "opaque", "token_type": "Bearer", "expires_in": 300, "id_token": cmp.Or(is.Signer, is).Sign(c),
	})
}
