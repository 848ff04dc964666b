// Package secret encrypts values that the store keeps, such as webhook secrets and credentials of
// relays, so that the database alone does not reveal them.
//
// The keys are in a file apart from the database; see Keys. A value names its key, so that several
// keys can be in use during a rotation. It is bound to its place, see Purpose: copied into another
// row, it cannot be decrypted. This package knows no tables and no settings.
package secret

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"fmt"
	"net/url"
	"strings"

	"github.com/parley-dev/parley/internal/errs"
)

// version begins every encrypted value. Its format is s1.KEY_ID.BASE64URL(NONCE CIPHERTEXT TAG), and
// the algorithm is AES-256-GCM with the purpose as additional data.
const version = "s1"

// overhead is the size of the nonce and the tag.
const overhead = 12 + 16

// Codes of errors.
const (
	CodeNoKey      = "secrets.no_key"      // the server has no key file
	CodeUnknownKey = "secrets.unknown_key" // the key file lacks the key of a value
	CodeDamaged    = "secrets.damaged"     // a value was changed or moved
)

// Purpose names the place of a value: its table and the key of its row.
func Purpose(table string, key ...string) string {
	var b strings.Builder
	b.WriteString(table)
	for _, k := range key {
		b.WriteByte('/')
		b.WriteString(url.PathEscape(k))
	}
	return b.String()
}

// KeyOf returns the id of the key that a value is encrypted under. ok is false if s is no encrypted
// value.
func KeyOf(s string) (id string, ok bool) {
	v, ok := parse(s)
	return v.key, ok
}

// value is a parsed encrypted value.
type value struct {
	key  string
	data []byte
}

func parse(s string) (value, bool) {
	rest, ok := strings.CutPrefix(s, version+".")
	if !ok {
		return value{}, false
	}
	id, text, ok := strings.Cut(rest, ".")
	if !ok || !validID(id) {
		return value{}, false
	}
	data, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(data) < overhead {
		return value{}, false
	}
	return value{id, data}, true
}

// seal encrypts a value under one key.
func (k *Key) seal(purpose string, plain []byte) (string, error) {
	aead, err := k.aead()
	if err != nil {
		return "", err
	}
	data := aead.Seal(nil, nil, plain, []byte(purpose))
	return version + "." + k.ID + "." + base64.RawURLEncoding.EncodeToString(data), nil
}

// open decrypts a value of this key.
func (k *Key) open(purpose string, v value) ([]byte, error) {
	aead, err := k.aead()
	if err != nil {
		return nil, err
	}
	plain, err := aead.Open(nil, nil, v.data, []byte(purpose))
	if err != nil {
		return nil, errs.New(errs.Internal, CodeDamaged,
			"an encrypted value of %s does not match key %s: the value was changed or copied from another row, or the key file "+
				"has another key of this id; restore the value from a back-up, or set it again", purpose, k.ID)
	}
	return plain, nil
}

func (k *Key) aead() (cipher.AEAD, error) {
	block, err := aes.NewCipher(k.bytes[:])
	if err != nil {
		return nil, fmt.Errorf("make a cipher: %w", err)
	}
	return cipher.NewGCMWithRandomNonce(block)
}
