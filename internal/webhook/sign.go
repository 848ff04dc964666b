package webhook

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// The formats of keys and the sizes of secrets are those of Standard Webhooks 1.0.
const (
	secretPrefix  = "whsec_"
	privatePrefix = "whsk_"
	publicPrefix  = "whpk_"

	secretSize = 32
	minSecret  = 24
	maxSecret  = 64
)

// Secrets are the signing keys of one webhook.
type Secrets struct {
	Current  []byte
	Old      []byte // the secret before a rotation; it signs, too, until OldUntil
	OldUntil time.Time
	Private  ed25519.PrivateKey // nil: no asymmetric signature
}

// Sign returns the value of the header webhook-signature: one signature of each key, separated by
// spaces. A receiver accepts the request if any of them verifies, so receivers that know either
// secret accept it during a rotation. id must not contain a full stop.
func (s Secrets) Sign(id string, at time.Time, body []byte) string {
	content := make([]byte, 0, len(id)+len(body)+24)
	content = append(append(content, id...), '.')
	content = append(strconv.AppendInt(content, at.Unix(), 10), '.')
	content = append(content, body...)

	signatures := []string{symmetric(s.Current, content)}
	if len(s.Old) > 0 && at.Before(s.OldUntil) {
		signatures = append(signatures, symmetric(s.Old, content))
	}
	if s.Private != nil {
		signatures = append(signatures, "v1a,"+base64.StdEncoding.EncodeToString(ed25519.Sign(s.Private, content)))
	}
	return strings.Join(signatures, " ")
}

func symmetric(secret, content []byte) string {
	h := hmac.New(sha256.New, secret)
	h.Write(content)
	return "v1," + base64.StdEncoding.EncodeToString(h.Sum(nil))
}

// NewSecret returns a new random secret.
func NewSecret() []byte {
	b := make([]byte, secretSize)
	_, _ = rand.Read(b) // never fails
	return b
}

// FormatSecret returns a secret as users see it: "whsec_" and base64.
func FormatSecret(secret []byte) string {
	return secretPrefix + base64.StdEncoding.EncodeToString(secret)
}

// ParseSecret decodes the output of FormatSecret. The error does not repeat the secret.
func ParseSecret(s string) ([]byte, error) {
	secret, err := decode(s, secretPrefix)
	if err == nil && (len(secret) < minSecret || len(secret) > maxSecret) {
		err = fmt.Errorf("must have %d to %d bytes after decoding; it has %d", minSecret, maxSecret, len(secret))
	}
	if err != nil {
		return nil, fmt.Errorf("webhook secret %w", err)
	}
	return secret, nil
}

// FormatPrivateKey returns "whsk_" and base64 of the key: its seed and its public key.
func FormatPrivateKey(key ed25519.PrivateKey) string {
	return privatePrefix + base64.StdEncoding.EncodeToString(key)
}

// ParsePrivateKey decodes the output of FormatPrivateKey. The error does not repeat the key.
func ParsePrivateKey(s string) (ed25519.PrivateKey, error) {
	b, err := decode(s, privatePrefix)
	if err != nil {
		return nil, fmt.Errorf("webhook private key %w", err)
	}
	if len(b) != ed25519.PrivateKeySize || !ed25519.NewKeyFromSeed(b[:ed25519.SeedSize]).Equal(ed25519.PrivateKey(b)) {
		return nil, errors.New("webhook private key must be a seed followed by its public key")
	}
	return b, nil
}

// FormatPublicKey returns "whpk_" and base64 of the key.
func FormatPublicKey(key ed25519.PublicKey) string {
	return publicPrefix + base64.StdEncoding.EncodeToString(key)
}

// decode returns the bytes after a prefix. Its errors are predicates.
func decode(s, prefix string) ([]byte, error) {
	text, ok := strings.CutPrefix(s, prefix)
	if !ok {
		return nil, fmt.Errorf("must start with %s", prefix)
	}
	b, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("must be base64 after %s", prefix)
	}
	return b, nil
}
