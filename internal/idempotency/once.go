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

// Once is a command with its Key on the way from a transport to the store. It travels in
// the request's context, so that a service whose result needs nothing but to be repeated
// does not have to know of it. A nil *Once is a command without a key.
type Once struct {
	Key     *Key
	Org, By string // the principal that sent the command

	// Of an outcome with a secret. The secret is kept encrypted under a key that is made
	// of the caller's own credential, which the server does not keep: whoever reads the
	// store cannot read the secret, and the caller gets it again.
	vault    [32]byte
	sealed   []byte
	replayed bool
	done     bool
}

type onceKey struct{}

// Begin makes a Once of the key and puts it into the context; without a key it does
// nothing. credential is the secret that the caller has authenticated with.
func Begin(ctx context.Context, k *Key, org, by, credential string) (context.Context, *Once, error) {
	if k == nil {
		return ctx, nil, nil
	}
	o := &Once{Key: k, Org: org, By: by}
	vault, err := hkdf.Key(sha256.New, []byte(credential), []byte(k.Value), "parley idempotency "+k.Operation, len(o.vault))
	if err != nil {
		return ctx, nil, fmt.Errorf("derive a key: %w", err)
	}
	copy(o.vault[:], vault)
	return context.WithValue(ctx, onceKey{}, o), o, nil
}

// From returns the command of the request with the given context; nil: it has no key.
func From(ctx context.Context) *Once {
	o, _ := ctx.Value(onceKey{}).(*Once)
	return o
}

// Replayed reports whether the command had been carried out before.
func (o *Once) Replayed() bool { return o != nil && o.replayed }

// Unused is an error if a write of this request was carried out under the key before. A
// second one would get the outcome of the first, though it does something else.
func (o *Once) Unused() error {
	if o.done {
		return fmt.Errorf("two writes of one request use its idempotency key: %s", o.Key.Operation)
	}
	return nil
}

// Done notes that a write was carried out under the key.
func (o *Once) Done() { o.done = true }

// Seal encrypts the secret of the outcome, to be kept with it. It is called before the
// command is carried out.
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

// Secret is the secret of the outcome: the one that was made for this command or, if
// another was carried out before, the one of that.
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

// Kept is what the store keeps beside the outcome.
func (o *Once) Kept() []byte { return o.sealed }

// Replay notes that the command had been carried out before, and what was kept of it.
func (o *Once) Replay(kept []byte) { o.sealed, o.replayed = kept, true }

// ErrSealed refuses to show a secret to another credential than the one that it was made
// for.
var ErrSealed = errs.New(errs.Conflict, "idempotency.sealed",
	"this request was carried out before with another credential, and its secret is shown again to that credential only; "+
		"use it, or revoke what was made and send the request with a new idempotency key")
