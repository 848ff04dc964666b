package identity

import (
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/parley-dev/parley/internal/cursor"
	"github.com/parley-dev/parley/internal/errs"
)

// Key is an API key as it is stored: without its secret.
type Key struct {
	ID         string
	Principal  Principal
	Name       string
	Prefix     string // the first characters of the secret, to recognize it
	Scopes     Scopes
	CreatedAt  time.Time
	CreatedBy  string
	ExpiresAt  time.Time // zero: never
	RevokedAt  time.Time // zero: not revoked
	LastUsedAt time.Time // zero: never used
	ReplacedBy string    // its successor after a rotation
	Replaces   string    // its predecessor before a rotation
	Disabled   bool      // its principal is disabled, so the key does not work
}

// KeyState is the state of a key. It does not depend on the principal.
type KeyState string

// States of a key.
const (
	KeyLive    KeyState = "live"
	KeyRevoked KeyState = "revoked"
	KeyExpired KeyState = "expired"
)

// KeyStates lists all states.
var KeyStates = []KeyState{KeyLive, KeyRevoked, KeyExpired}

// State returns the state of the key at the given time.
func (k *Key) State(now time.Time) KeyState {
	switch {
	case !k.RevokedAt.IsZero():
		return KeyRevoked
	case !k.Live(now):
		return KeyExpired
	}
	return KeyLive
}

// KeyFilter selects keys, newest first, or by their expiry if EndsWithin is set.
type KeyFilter struct {
	Principal Principal // zero: all principals; its org is ignored
	State     KeyState  // empty: all
	Now       time.Time // the time that State and EndsWithin refer to
	Before    string    // id of the last key of the previous page
	BeforeEnd time.Time // and its expiry, if EndsWithin is set
	Limit     int       // 0: all

	EndsWithin time.Duration // live keys that expire within this time; 0: all
	NeverUsed  bool          // only keys without a recorded use
	Scope      Scope         // only keys with this scope; empty: all
}

var keysByEnd = cursor.Of("keys by end")

// Cursor returns the cursor of the page that starts after k. It includes the expiry of k,
// which a rotation may change while a client reads the pages.
func (f *KeyFilter) Cursor(k *Key) string {
	if f.EndsWithin == 0 {
		return k.ID
	}
	return keysByEnd.At().Time(k.ExpiresAt).Text(k.ID).String()
}

// Continue makes the filter start after a cursor. It reports whether the cursor is valid.
func (f *KeyFilter) Continue(after string) bool {
	f.Before = after
	if f.EndsWithin > 0 {
		r := keysByEnd.Read(after)
		if f.BeforeEnd, f.Before = r.Time(), r.Text(); !r.Done() {
			return false
		}
	}
	return ValidKeyID(f.Before)
}

// MaxEndsWithin bounds KeyFilter.EndsWithin.
const MaxEndsWithin = 3650 * 24 * time.Hour

// Rotation is the result of rotating a key.
type Rotation struct {
	OldExpires time.Time
	New        Key
	Grantor    Principal // must be an admin; zero: not checked
	Entry      AuditEntry
	Limits     []Quota // as in KeyStore.CreateKey
}

// KeyRequest asks for a key.
type KeyRequest struct {
	Principal Principal
	Name      string
	Scopes    []string
	CreatedBy string
	ExpiresAt time.Time // zero: never
}

// MaxScopes bounds the scopes of a key.
const MaxScopes = 64

// Validate returns all problems of the request.
func (r *KeyRequest) Validate(now time.Time) error {
	var wrong []errs.Field
	switch n := len(r.Scopes); {
	case n == 0:
		wrong = append(wrong,
			errs.NewField("scopes", fmt.Sprintf("must have at least one scope, for example %s", TasksRead)))
	case n > MaxScopes:
		wrong = append(wrong,
			errs.NewField("scopes", fmt.Sprintf("has %d entries; at most %d are allowed", n, MaxScopes)))
	default:
		for i, s := range r.Scopes {
			if _, err := ParseScope(s); err != nil {
				wrong = append(wrong, errs.Refused(errs.At("scopes", i), err))
			}
		}
	}
	if r.Name != "" {
		wrong = append(wrong, nameFields(r.Name)...)
	}
	if !r.ExpiresAt.IsZero() && !r.ExpiresAt.After(now) {
		wrong = append(wrong, errs.NewField("expires_at", "must lie in the future"))
	}
	return invalid(wrong)
}

// newKey returns the key of a validated request, and its secret.
func newKey(r KeyRequest, id string, now time.Time) (Key, string) {
	var scopes Scopes
	for _, s := range r.Scopes {
		if scope := Scope(s); !scopes.Has(scope) {
			scopes = append(scopes, scope)
		}
	}
	secret := NewSecret()
	return Key{
		ID: id, Principal: r.Principal, Name: r.Name, Prefix: ShownPrefix(secret), Scopes: scopes,
		CreatedAt: now, CreatedBy: r.CreatedBy, ExpiresAt: r.ExpiresAt,
	}, secret
}

// Live reports whether the key may be used at the given time.
func (k *Key) Live(now time.Time) bool {
	return k.RevokedAt.IsZero() && (k.ExpiresAt.IsZero() || now.Before(k.ExpiresAt))
}

// A secret is "parley_" + 30 random base62 characters + 6 characters of their CRC-32. By the
// prefix and the checksum, secret scanners recognize a key, and mistyped keys are refused
// without a look-up.
const (
	secretPrefix = "parley_"
	secretRandom = 30
	secretCheck  = 6
	maxSecret    = len(TokenPrefix) + secretRandom + secretCheck
	shownPrefix  = len(secretPrefix) + 6

	base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// SecretPattern is the regular expression by which secret scanners find a key.
const SecretPattern = `parley_[0-9A-Za-z]{36}`

// Hash is the stored form of a secret.
type Hash [sha256.Size]byte

// NewSecret returns a secret of 178 random bits.
func NewSecret() string { return randomSecret(secretPrefix) }

func randomSecret(prefix string) string {
	out := make([]byte, 0, len(prefix)+secretRandom+secretCheck)
	out = append(out, prefix...)
	var buf [64]byte
	for len(out) < len(prefix)+secretRandom {
		_, _ = rand.Read(buf[:]) // never fails: crypto/rand ends the program instead
		for _, b := range buf {
			// 248 is the largest multiple of 62 in a byte; above it the modulus would be biased.
			if b < 248 && len(out) < len(prefix)+secretRandom {
				out = append(out, base62[b%62])
			}
		}
	}
	return string(appendChecksum(out))
}

func appendChecksum(body []byte) []byte {
	sum := crc32.ChecksumIEEE(body)
	var check [secretCheck]byte
	for i := secretCheck - 1; i >= 0; i-- {
		check[i] = base62[sum%62]
		sum /= 62
	}
	return append(body, check[:]...)
}

// WellFormed reports whether s has the shape and the checksum of a secret.
func WellFormed(s string) bool { return wellFormed(secretPrefix, s) }

func wellFormed(prefix, s string) bool {
	if len(s) != len(prefix)+secretRandom+secretCheck || s[:len(prefix)] != prefix {
		return false
	}
	body := make([]byte, 0, maxSecret)
	body = append(body, s[:len(s)-secretCheck]...)
	return string(appendChecksum(body)) == s
}

// HashSecret returns the stored form of a secret. Secrets are random, so a plain fast hash
// is safe.
func HashSecret(s string) Hash { return sha256.Sum256([]byte(s)) }

// ShownPrefix returns the part of a secret that may be shown again.
func ShownPrefix(secret string) string { return secret[:shownPrefix] }
