// Package idempotency identifies a command that may arrive more than once.
//
// A transport makes a Key from the request; the store writes it in the transaction that carries out
// the command, with the outcome. A repeated command finds the row and gets the first outcome again.
// The package holds no state and knows neither HTTP nor SQL.
package idempotency

import (
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/parley-dev/parley/internal/errs"
)

// TTL is how long an outcome is remembered, unless a setting says otherwise.
const TTL = 24 * time.Hour

// Field is the name of the caller's key in errors.
const Field = "idempotency_key"

// MaxLength is the maximum length of the caller's key.
const MaxLength = 255

// Key identifies one command of one principal. A nil *Key means that the caller sent no key.
type Key struct {
	Operation   string   // method and target, e.g. "POST /api/v1/orgs/main/proposals"
	Value       string   // the caller's own key
	Fingerprint [32]byte // of the command, to detect a key reused with another body

	// Keep is how long the outcome is remembered; zero: TTL, or what the store is told.
	Keep time.Duration
}

// Of returns the key of one part of the command, which is carried out separately.
func (k *Key) Of(part string) *Key {
	if k == nil {
		return nil
	}
	out := *k
	out.Operation += " " + part
	return &out
}

// New checks value and makes a Key. It returns nil for an empty value.
func New(operation, value string, command []byte) (*Key, error) {
	return NewOf(operation, value, sha256.Sum256(command))
}

// NewOf is New with the SHA-256 of a command that is too large to hold as one string.
func NewOf(operation, value string, fingerprint [32]byte) (*Key, error) {
	if value == "" {
		return nil, nil
	}
	if len(value) > MaxLength {
		return nil, invalid(fmt.Sprintf("must be at most %d characters long", MaxLength))
	}
	for _, r := range value {
		if r < 0x20 || r > 0x7e {
			return nil, invalid("must consist of printable ASCII characters")
		}
	}
	return &Key{Operation: operation, Value: value, Fingerprint: fingerprint}, nil
}

func invalid(msg string) error {
	return errs.InvalidFields(errs.Field{Path: errs.At(Field), Message: msg})
}

// ErrReused is returned when a known key arrives with a different command.
var ErrReused = errs.New(errs.Invalid, "idempotency.key_reused",
	"this idempotency key was already used with a different request; use a new key for a new request")
