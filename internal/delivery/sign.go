package delivery

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
)

// NewKey returns a new private key, encoded for the store.
func NewKey() (string, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(key.Seed()), nil
}

// ParseKey decodes a key that NewKey made.
func ParseKey(s string) (ed25519.PrivateKey, error) {
	seed, err := base64.StdEncoding.DecodeString(s)
	if err != nil || len(seed) != ed25519.SeedSize {
		return nil, errors.New("the stored signing key is malformed") // the cause would show the key
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

// sign returns the signatures of Standard Webhooks: an asymmetric one that verifies with the
// published key and, if there is a token, a symmetric one that verifies with the token.
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

// secretOf returns the key of the symmetric signature. A token may be a key in the notation of
// Standard Webhooks (whsec_ and base64); any other token is used as it is.
func secretOf(token string) []byte {
	if text, ok := strings.CutPrefix(token, "whsec_"); ok {
		if key, err := base64.StdEncoding.DecodeString(text); err == nil && len(key) > 0 {
			return key
		}
	}
	return []byte(token)
}

// JWK returns the public key with which receivers verify signatures, as JSON.
func (c *Client) JWK() string {
	x := base64.RawURLEncoding.EncodeToString(c.key.Public().(ed25519.PublicKey))
	// RFC 7638 prescribes these members in this order for a thumbprint.
	sum := sha256.Sum256(fmt.Appendf(nil, `{"crv":"Ed25519","kty":"OKP","x":"%s"}`, x))
	kid := base64.RawURLEncoding.EncodeToString(sum[:])
	return fmt.Sprintf(`{"kty":"OKP","crv":"Ed25519","alg":"EdDSA","use":"sig","kid":"%s","x":"%s"}`, kid, x)
}
