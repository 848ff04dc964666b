package idempotency

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"fmt"

	"github.com/parley-dev/parley/internal/errs"
)

// Once carries a command's Key from a transport to the store, in the request's context. Services
// that only repeat their result need not know of it. A nil *Once is a command without a key.
type Once struct {
	Key     *Key
	Org, By string // the principal that sent the command

	// For an outcome with a secret. The secret is encrypted under a key derived from the caller's
	// credential, which the server does not store: the store alone does not reveal the secret, and
	// the caller can get it again.
	vault    [32]byte
	sealed   []byte
	replayed bool
	done     bool
}

type onceKey struct{}

// Begin puts a Once for the key into the context; without a key it does nothing. credential is the
// secret with which the caller authenticated.
func Begin(ctx context.Context, k *Key, org, by, credential string) (context.Context, *Once, error) {
	if k == nil {
		return ctx, nil, nil
	}
	o := &Once{Key: k, Org: org, By: by}
	info := "parley idempotency " + k.Operation
	vault, err := hkdf.Key(sha256.New, []byte(credential), []byte(k.Value), info, len(o.vault))
	if err != nil {
		return ctx, nil, fmt.Errorf("derive a key: %w", err)
	}
	copy(o.vault[:], vault)
	return context.WithValue(ctx, onceKey{}, o), o, nil
}

// From returns the Once in ctx, or nil if the command has no key.
func From(ctx context.Context) *Once {
	o, _ := ctx.Value(onceKey{}).(*Once)
	return o
}

// Replayed reports whether the command was carried out before.
func (o *Once) Replayed() bool { return o != nil && o.replayed }

// Unused returns an error if an earlier write of this request already used the key. A second write
// would get the outcome of the first, although it does something else.
func (o *Once) Unused() error {
	if o.done {
		return fmt.Errorf("two writes of one request use its idempotency key: %s", o.Key.Operation)
	}
	return nil
}

// Done records that a write was carried out under the key.
func (o *Once) Done() { o.done = true }

// Seal encrypts the secret of the outcome so that it can be stored. Call it before the command is
// carried out.
func (o *Once) Seal(secret string) error {
	if o == nil {
		return nil
	}
	aead, err := o.aead()
	if err != nil {
		return err
	}
	nonce := make([]byte, aead.NonceSize())
	_, _ = rand.Read(nonce) // never fails: crypto/rand ends the program instead
	o.sealed = aead.Seal(nonce, nonce, []byte(secret), nil)
	return nil
}

// Secret returns made, or the secret of the first outcome if the command was replayed.
func (o *Once) Secret(made string) (string, error) {
	if !o.Replayed() {
		return made, nil
	}
	aead, err := o.aead()
	if err != nil {
		return "", err
	}
	n := aead.NonceSize()
	if len(o.sealed) < n {
		return "", ErrSealed
	}
	secret, err := aead.Open(nil, o.sealed[:n], o.sealed[n:], nil)
	if err != nil {
		return "", ErrSealed
	}
	return string(secret), nil
}

func (o *Once) aead() (cipher.AEAD, error) {
	block, err := aes.NewCipher(o.vault[:])
	if err != nil {
		return nil, fmt.Errorf("make a cipher: %w", err)
	}
	return cipher.NewGCM(block)
}

// Kept returns what the store keeps with the outcome.
func (o *Once) Kept() []byte { return o.sealed }

// Replay records that the command was carried out before, and what was kept of it.
func (o *Once) Replay(kept []byte) { o.sealed, o.replayed = kept, true }

// ErrSealed is returned when a replay uses another credential than the first request.
var ErrSealed = errs.New(errs.Conflict, "idempotency.sealed",
	"this request was carried out before with another credential, "+
		"and its secret is shown again to that credential only; use it, or revoke what was made and send the request with a new idempotency key")
