package webhook

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/parley-dev/parley/internal/httpx"
)

// NewKey makes a private key, as text for a store.
func NewKey() (string, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(key.Seed()), nil
}

// ParseKey reads what NewKey made.
func ParseKey(s string) (ed25519.PrivateKey, error) {
	seed, err := base64.StdEncoding.DecodeString(s)
	if err != nil || len(seed) != ed25519.SeedSize {
		return nil, errors.New("the stored signing key cannot be read") // without it: it is secret
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

// sign makes the signatures of Standard Webhooks: one that anybody can verify with
// the published key and, if there is a token, one that whoever knows it can.
func sign(key ed25519.PrivateKey, token, id string, at time.Time, body []byte) (string, error) {
	content := append([]byte(id+"."+strconv.FormatInt(at.Unix(), 10)+"."), body...)
	out := "v1a," + base64.StdEncoding.EncodeToString(ed25519.Sign(key, content))
	if token == "" {
		return out, nil
	}
	w, err := standard.NewWebhookRaw(secretOf(token))
	if err != nil {
		return "", err
	}
	more, err := w.Sign(id, at, body)
	return out + " " + more, err
}

// secretOf is the key of the signature under a token. The libraries of Standard Webhooks
// write a key as whsec_ and its base64; any other token is a key as it stands.
func secretOf(token string) []byte {
	if text, ok := strings.CutPrefix(token, "whsec_"); ok {
		if key, err := base64.StdEncoding.DecodeString(text); err == nil && len(key) > 0 {
			return key
		}
	}
	return []byte(token)
}

// KeysPath is where the public keys of the server are published.
const KeysPath = "/.well-known/jwks.json"

// Mount publishes the key by which receivers verify what this server sends, before other
// keys of the server.
func (s *Sender) Mount(rt *httpx.Router, others ...string) {
	x := base64.RawURLEncoding.EncodeToString(s.key.Public().(ed25519.PublicKey))
	// The members and their order are those that RFC 7638 wants for a thumbprint.
	sum := sha256.Sum256(fmt.Appendf(nil, `{"crv":"Ed25519","kty":"OKP","x":"%s"}`, x))
	kid := base64.RawURLEncoding.EncodeToString(sum[:])
	own := fmt.Sprintf(`{"kty":"OKP","crv":"Ed25519","alg":"EdDSA","use":"sig","kid":"%s","x":"%s"}`, kid, x)
	rt.HandlePublic("GET "+KeysPath, httpx.KeySet(append([]string{own}, others...)...))
}
