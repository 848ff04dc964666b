package secret

import (
	"errors"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/parley-dev/parley/internal/errs"
)

// Keyring encrypts and decrypts with the keys of a file. It reads the file again when it has
// changed, so that a rotation needs no restart. A nil *Keyring has no keys. All methods may be called
// concurrently.
type Keyring struct {
	path string
	now  func() time.Time

	mu      sync.Mutex
	keys    Keys
	read    fs.FileInfo // of the file that was read last
	checked time.Time
	problem error
}

// Every limits how old the keys are that Seal uses. Whoever replaces the file can rely on it.
const Every = 2 * time.Second

// Load reads a key file.
func Load(path string, now func() time.Time) (*Keyring, error) {
	k := &Keyring{path: path, now: now}
	if err := k.Refresh(); err != nil {
		return nil, err
	}
	return k, nil
}

// Find is Load for a file that need not exist: without it there are no keys until Make or another
// process has made it.
func Find(path string, now func() time.Time) (*Keyring, error) {
	k := &Keyring{path: path, now: now}
	if err := k.Refresh(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return k, nil
}

// Make makes the file with a new key. A file that exists by now is read instead.
func (k *Keyring) Make() error {
	if err := CreateFile(k.path, Keys{NewKey(k.now())}); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return k.Refresh()
}

// Seal encrypts a value under the current key.
func (k *Keyring) Seal(purpose string, plain []byte) (string, error) {
	keys := k.Keys()
	if len(keys) == 0 {
		return "", ErrNoKey()
	}
	return keys[0].seal(purpose, plain)
}

// Open decrypts a value. The purpose must be the one that it was encrypted for.
func (k *Keyring) Open(purpose, sealed string) ([]byte, error) {
	v, ok := parse(sealed)
	if !ok {
		return nil, errs.New(errs.Internal, CodeDamaged, "the value of %s is not encrypted", purpose)
	}
	if k == nil {
		return nil, errUnknown(v.key, "the server has no key file")
	}
	key := k.fresh(Every).find(v.key)
	if key == nil { // perhaps a rotation on another node has just begun
		key = k.fresh(0).find(v.key)
	}
	if key == nil {
		return nil, errUnknown(v.key, "the key file "+k.path+" does not have it")
	}
	return key.open(purpose, v)
}

// Keys returns the keys, the current one first.
func (k *Keyring) Keys() Keys {
	if k == nil {
		return nil
	}
	return k.fresh(Every)
}

// Current returns the id of the key that Seal uses; empty: there is none.
func (k *Keyring) Current() string {
	keys := k.Keys()
	if len(keys) == 0 {
		return ""
	}
	return keys[0].ID
}

// Path returns the name of the file.
func (k *Keyring) Path() string {
	if k == nil {
		return ""
	}
	return k.path
}

// fresh returns keys of a file that was looked at within a time. If the file cannot be read, the
// keys of the last one stay; see Refresh.
func (k *Keyring) fresh(within time.Duration) Keys {
	k.mu.Lock()
	defer k.mu.Unlock()
	if now := k.now(); now.Sub(k.checked) >= within || now.Before(k.checked) {
		_ = k.refresh(now)
	}
	return k.keys
}

// Refresh reads the file again if it has changed. The error is that of the last look: as long as
// there is one, the keys from before are used.
func (k *Keyring) Refresh() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.refresh(k.now())
}

func (k *Keyring) refresh(now time.Time) error {
	k.checked = now
	st, err := os.Stat(k.path)
	if err == nil && k.problem == nil && k.read != nil && os.SameFile(st, k.read) && st.Size() == k.read.Size() &&
		st.ModTime().Equal(k.read.ModTime()) && st.Mode() == k.read.Mode() {
		return nil
	}
	st, keys, err := readFile(k.path)
	if k.problem = err; err == nil {
		k.read, k.keys = st, keys
	}
	return err
}

// ErrNoKey is the error of an operation that needs a key.
func ErrNoKey() error {
	return errs.New(errs.Conflict, CodeNoKey, "the server has no key to encrypt secrets with; its operator can make a key "+
		"file with \"parley secrets add-key\", and give it to every server with --secret-key-file")
}

func errUnknown(id, why string) error {
	return errs.New(errs.Unavailable, CodeUnknownKey, "a secret is encrypted under the key %s, and %s; its operator must give "+
		"the server the key file of this store with --secret-key-file", id, why)
}
