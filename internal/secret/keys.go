package secret

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Key is one key of a key file.
type Key struct {
	ID        string
	CreatedAt time.Time

	bytes [keySize]byte
}

// Keys are the keys of a file, of which the first is current: it encrypts new values. The others
// decrypt old ones.
//
// The file has one line for each: id, base64 of 32 bytes, and the time at which it was made. Empty
// lines and lines that begin with # do not count.
type Keys []Key

const (
	keySize = 32
	idSize  = 4 // bytes, written in hexadecimal

	maxKeys = 100
	maxFile = 64 << 10
)

// NewKey returns a random key.
func NewKey(now time.Time) Key {
	k := Key{CreatedAt: now.UTC().Truncate(time.Second)}
	var id [idSize]byte
	_, _ = rand.Read(id[:]) // never fails: crypto/rand ends the program instead
	_, _ = rand.Read(k.bytes[:])
	k.ID = hex.EncodeToString(id[:])
	return k
}

// String hides the key.
func (k Key) String() string { return "key " + k.ID }

// GoString hides the key.
func (k Key) GoString() string { return k.String() }

// IDs returns the ids in the order of the file.
func (ks Keys) IDs() []string {
	out := make([]string, len(ks))
	for i := range ks {
		out[i] = ks[i].ID
	}
	return out
}

// Has reports whether there is a key of this id.
func (ks Keys) Has(id string) bool { return ks.find(id) != nil }

func (ks Keys) find(id string) *Key {
	i := slices.IndexFunc(ks, func(k Key) bool { return k.ID == id })
	if i < 0 {
		return nil
	}
	return &ks[i]
}

// Add adds a key that only decrypts until Rotate makes it current.
func (ks Keys) Add(k Key) Keys { return append(slices.Clone(ks), k) }

// Pending returns the key that Add has added last, if the current key is older.
func (ks Keys) Pending() (Key, bool) {
	if len(ks) < 2 || !ks[len(ks)-1].CreatedAt.After(ks[0].CreatedAt) {
		return Key{}, false
	}
	return ks[len(ks)-1], true
}

// Rotate makes the pending key current, or fresh if there is none.
func (ks Keys) Rotate(fresh Key) Keys {
	if k, ok := ks.Pending(); ok {
		return append(Keys{k}, ks[:len(ks)-1]...)
	}
	return append(Keys{fresh}, ks...)
}

// Without removes keys. The current key stays.
func (ks Keys) Without(ids []string) Keys {
	var out Keys
	for i, k := range ks {
		if i == 0 || !slices.Contains(ids, k.ID) {
			out = append(out, k)
		}
	}
	return out
}

const head = `# Keys of a Parley server: the first encrypts secrets in the database, all of them decrypt.
# Whoever has this file and the database can read the secrets. If it is lost, so are they.
# Keep a copy of it, but not beside the back-ups of the database.
`

// Format returns the text of the file.
func (ks Keys) Format() []byte {
	var b bytes.Buffer
	b.WriteString(head)
	for i := range ks {
		fmt.Fprintf(&b, "%s %s %s\n", ks[i].ID, base64.StdEncoding.EncodeToString(ks[i].bytes[:]),
			ks[i].CreatedAt.Format(time.RFC3339))
	}
	return b.Bytes()
}

// Parse reads the text of a file. Errors do not repeat what a line has.
func Parse(text []byte) (Keys, error) {
	var out Keys
	n := 0
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		n++
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		k, err := parseKey(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if out.Has(k.ID) {
			return nil, fmt.Errorf("line %d: the id %s is there twice", n, k.ID)
		}
		out = append(out, k)
	}
	switch {
	case len(out) == 0:
		return nil, errors.New("it has no key")
	case len(out) > maxKeys:
		return nil, fmt.Errorf("it has %d keys; the limit is %d", len(out), maxKeys)
	}
	return out, nil
}

var errLine = errors.New("a key must be ID BASE64 TIME, as \"parley secrets add-key\" writes it")

func parseKey(line string) (Key, error) {
	fields := strings.Fields(line)
	if len(fields) != 3 || !validID(fields[0]) {
		return Key{}, errLine
	}
	b, err := base64.StdEncoding.Strict().DecodeString(fields[1])
	if err != nil || len(b) != keySize {
		return Key{}, fmt.Errorf("%w: the second field must be base64 of %d bytes", errLine, keySize)
	}
	at, err := time.Parse(time.RFC3339, fields[2])
	if err != nil {
		return Key{}, fmt.Errorf("%w: the third field must be a time such as 2026-11-18T09:00:00Z", errLine)
	}
	return Key{ID: fields[0], CreatedAt: at.UTC(), bytes: [keySize]byte(b)}, nil
}

func validID(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == idSize && s == strings.ToLower(s)
}
