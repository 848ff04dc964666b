package web

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"runtime"
	"strings"
	"time"

	"golang.org/x/crypto/argon2"

	"github.com/parley-dev/parley/internal/errs"
)

// Argon2id hashes passwords. A hash contains its parameters, so that they can be raised without
// invalidating old passwords.
type Argon2id struct {
	cost    Cost
	turns   chan struct{} // limits the memory of concurrent hashes
	waiting chan struct{} // limits how many wait for a turn or have one
}

// Cost is the cost of one hash.
type Cost struct {
	Passes uint32
	Memory uint32 // in KiB
}

// StandardCost takes about 50 ms, and enough memory to slow down graphics cards.
var StandardCost = Cost{Passes: 3, Memory: 32 << 10}

const (
	argonThreads = 1
	argonSalt    = 16
	argonKey     = 32
	argonQueue   = 64 // how many may wait for a turn
)

// atOnce returns how many passwords are hashed concurrently: on half of the processors, so that
// other requests are served meanwhile. A hash takes 32 MiB, of which the garbage collector keeps a
// multiple, so there are at most four.
func atOnce() int { return min(4, max(1, runtime.GOMAXPROCS(0)/2)) }

// errBusy is returned while too many passwords wait to be hashed.
var errBusy = func() error {
	e := errs.New(errs.Unavailable, "account.busy",
		"too many people are signing in at the moment; try again in a few seconds")
	e.RetryAfter = 5 * time.Second
	return e
}()

// NewArgon2id creates the hasher.
func NewArgon2id(cost Cost) *Argon2id {
	n := atOnce()
	return &Argon2id{cost: cost, turns: make(chan struct{}, n), waiting: make(chan struct{}, n+argonQueue)}
}

// turn waits until the caller may hash. done ends the turn.
func (a *Argon2id) turn(ctx context.Context) (done func(), err error) {
	select {
	case a.waiting <- struct{}{}:
	default:
		return nil, errBusy
	}
	select {
	case a.turns <- struct{}{}:
		return func() { <-a.turns; <-a.waiting }, nil
	case <-ctx.Done():
		<-a.waiting
		return nil, ctx.Err()
	}
}

// Decoy implements account.Hasher.
func (a *Argon2id) Decoy() string {
	random := make([]byte, argonSalt+argonKey)
	_, _ = rand.Read(random) // never fails: crypto/rand crashes the program instead
	return a.cost.encode(random[:argonSalt], random[argonSalt:])
}

// Hash implements account.Hasher.
func (a *Argon2id) Hash(ctx context.Context, password string) (string, error) {
	done, err := a.turn(ctx)
	if err != nil {
		return "", err
	}
	defer done()
	salt := make([]byte, argonSalt)
	_, _ = rand.Read(salt)
	key := argon2.IDKey([]byte(password), salt, a.cost.Passes, a.cost.Memory, argonThreads, argonKey)
	return a.cost.encode(salt, key), nil
}

func (c Cost) encode(salt, key []byte) string {
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, c.Memory, c.Passes, argonThreads,
		base64.RawStdEncoding.EncodeToString(salt), base64.RawStdEncoding.EncodeToString(key))
}

// Bounds of a stored hash, which may come from another server: a higher cost would stop this one.
const (
	maxMemory  = 256 << 10 // KiB
	maxPasses  = 16
	maxThreads = 16
	maxKey     = 64
)

// Verify implements account.Hasher. A hash beyond the bounds matches no password.
func (a *Argon2id) Verify(ctx context.Context, hash, password string) (bool, error) {
	parts := strings.Split(hash, "$")
	if len(parts) != 6 || parts[1] != "argon2id" {
		return false, nil
	}
	var version int
	var memory, passes uint32
	var threads uint8
	if _, err := fmt.Sscanf(parts[2], "v=%d", &version); err != nil || version != argon2.Version {
		return false, nil
	}
	_, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &memory, &passes, &threads)
	if err != nil || passes == 0 || threads == 0 || memory > maxMemory || passes > maxPasses || threads > maxThreads {
		return false, nil
	}
	salt, err := base64.RawStdEncoding.DecodeString(parts[4])
	if err != nil {
		return false, nil // not a hash, so no password matches
	}
	want, err := base64.RawStdEncoding.DecodeString(parts[5])
	if err != nil || len(want) < argonSalt || len(want) > maxKey {
		return false, nil // as above
	}
	done, err := a.turn(ctx)
	if err != nil {
		return false, err
	}
	defer done()
	got := argon2.IDKey([]byte(password), salt, passes, memory, threads, uint32(len(want)))
	return subtle.ConstantTimeCompare(got, want) == 1, nil
}
