package relay

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/parley-dev/parley/internal/budget"
)

// maxQueued bounds how many bytes of one stream are read before earlier events are stored. A larger
// event is read alone.
const maxQueued = 64 << 10

// intake collects what a request has read from a remote, so that its memory is held until it is
// stored and not only until it is parsed. It travels in the context of the request.
type intake struct {
	mu  sync.Mutex
	got parcel

	// repeatable says that the request can be sent again without work of the remote.
	repeatable bool
}

type intakeKey struct{}

func withIntake(ctx context.Context) (context.Context, *intake) {
	in := &intake{}
	return context.WithValue(ctx, intakeKey{}, in), in
}

// addIntake adds n bytes and the account that holds them, which may be nil. Without an intake, nobody keeps
// the bytes.
func addIntake(ctx context.Context, n int64, a *budget.Account) {
	in, ok := ctx.Value(intakeKey{}).(*intake)
	if !ok {
		a.Close()
		return
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.got.bytes += n
	if a != nil {
		in.got.accounts = append(in.got.accounts, a)
	}
}

// take returns what was read since the last call. It must be released.
func (in *intake) take() parcel {
	in.mu.Lock()
	defer in.mu.Unlock()
	out := in.got
	in.got = parcel{}
	return out
}

// parcel is the memory of something that was read.
type parcel struct {
	bytes    int64
	accounts []*budget.Account
}

func (p parcel) release() {
	for _, a := range p.accounts {
		a.Close()
	}
}

// queue bounds the bytes of the events that were read and not stored.
type queue struct{ free *semaphore.Weighted }

func newQueue() queue { return queue{semaphore.NewWeighted(maxQueued)} }

// enter waits until there is room.
func (q queue) enter(ctx context.Context, p parcel) error {
	return q.free.Acquire(ctx, min(p.bytes, maxQueued))
}

func (q queue) leave(p parcel) { q.free.Release(min(p.bytes, maxQueued)) }
