package web

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"strings"

	"golang.org/x/crypto/argon2"
)

// Argon2id hashes passwords. What is kept names its parameters, so that they can be
// raised without making old passwords useless.
type Argon2id struct {
	turns chan struct{} // bounds the memory that many logins at once may take
}

// The cost of one hash: about 50 ms, and as much memory as keeps graphics cards slow.
const (
	argonTime    = 3
	argonMemory  = 32 << 10 // KiB
	argonThreads = 1
	argonSalt    = 16
	argonKey     = 32
	argonAtOnce  = 4
)

// NewArgon2id makes the hasher.
func NewArgon2id() *Argon2id { return &Argon2id{turns: make(chan struct{}, argonAtOnce)} }

// Hash implements account.Hasher.
func (a *Argon2id) Hash(password string) string {
	salt := make([]byte, argonSalt)
	_, _ = rand.Read(salt) // never fails: crypto/rand ends the program instead
	key := a.key(password, salt, argonTime, argonMemory, argonThreads, argonKey)
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, argonMemory, argonTime, argonThreads,
		base64.RawStdEncoding.EncodeToString(salt), base64.RawStdEncoding.EncodeToString(key))
}

func (a *Argon2id) key(password string, salt []byte, time, memory uint32, threads uint8, length uint32) []byte {
	a.turns <- struct{}{}
	defer func() { <-a.turns }()
	return argon2.IDKey([]byte(password), salt, time, memory, threads, length)
}

// Verify implements account.Hasher.
func (a *Argon2id) Verify(hash, password string) bool {
	parts := strings.Split(hash, "$")
	if len(parts) != 6 || parts[1] != "argon2id" {
		return false
	}
	var version int
	var memory, time uint32
	var threads uint8
	if _, err := fmt.Sscanf(parts[2], "v=%d", &version); err != nil || version != argon2.Version {
		return false
	}
	if _, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &memory, &time, &threads); err != nil || time == 0 || threads == 0 {
		return false
	}
	salt, err := base64.RawStdEncoding.DecodeString(parts[4])
	if err != nil {
		return false
	}
	want, err := base64.RawStdEncoding.DecodeString(parts[5])
	if err != nil || len(want) < argonSalt {
		return false
	}
	return subtle.ConstantTimeCompare(a.key(password, salt, time, memory, threads, uint32(len(want))), want) == 1
}
