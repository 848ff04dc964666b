package app

import (
	"crypto/rand"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"
)

// Now is the clock of the program. It returns UTC with the precision of the store, so that a
// record is equal before and after it was stored.
func Now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

// ids makes sortable ids. Within one process each id is greater than the previous one, even
// if the clock is set back.
type ids struct {
	mu      sync.Mutex
	entropy *ulid.MonotonicEntropy
	last    uint64
	now     func() time.Time
}

func newIDs(now func() time.Time) *ids {
	return &ids{entropy: ulid.Monotonic(rand.Reader, 0), now: now}
}

// next returns prefix followed by a ULID in lower case.
func (g *ids) next(prefix string) string {
	id := g.make()
	out := make([]byte, len(prefix)+ulid.EncodedSize)
	copy(out, prefix)
	_ = id.MarshalTextTo(out[len(prefix):]) // fails only if out has another size
	for i := len(prefix); i < len(out); i++ {
		if c := out[i]; 'A' <= c && c <= 'Z' {
			out[i] = c + ('a' - 'A')
		}
	}
	return string(out)
}

func (g *ids) make() ulid.ULID {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.last = max(g.last, ulid.Timestamp(g.now()))
	id, err := ulid.New(g.last, g.entropy)
	if err != nil {
		// The 80 random bits of this millisecond overflowed, because they started near
		// their maximum. The next millisecond starts with new bits.
		g.last++
		id = ulid.MustNew(g.last, g.entropy)
	}
	return id
}
