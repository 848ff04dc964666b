package app

import (
	"crypto/rand"
	"strings"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"
)

// Now is the clock of the program: UTC, and no finer than what the store keeps,
// so that a record reads the same before and after it was stored.
func Now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

// ids makes sortable ids. Within one process each is greater than the one before,
// even if the clock is set back.
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
	g.mu.Lock()
	defer g.mu.Unlock()
	g.last = max(g.last, ulid.Timestamp(g.now()))
	id, err := ulid.New(g.last, g.entropy)
	if err != nil {
		// The 80 random bits of this millisecond ran over, which takes a start near
		// their very end; the next millisecond starts afresh.
		g.last++
		id = ulid.MustNew(g.last, g.entropy)
	}
	return prefix + strings.ToLower(id.String())
}
