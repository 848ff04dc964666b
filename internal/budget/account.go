package budget

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Account counts the bytes that one request holds. A nil Account and the zero Account have no
// limits. Its methods are safe for concurrent use: a transport may read the body and write the
// response in separate goroutines.
type Account struct {
	Pool  *Pool
	Owner Owner

	inLane atomic.Bool

	mu       sync.Mutex
	closed   bool
	response int64     // bytes of the response so far
	held     int64     // bytes that the request holds
	counted  int64     // the part of held that is taken from the pool
	until    time.Time // when the request stops waiting, over all its waits; zero: it has not waited yet
}

// Key is the context key of an Account.
type Key struct{}

// From returns the account in ctx, or nil.
func From(ctx context.Context) *Account {
	a, _ := ctx.Value(Key{}).(*Account)
	return a
}

func (a *Account) unbound() bool { return a == nil || a.Pool == nil }

// Take counts n bytes of the response, takes memory for them and, if the request holds much, a
// lane. It waits a few seconds for both.
func (a *Account) Take(ctx context.Context, n int64) error {
	if a.unbound() {
		return nil
	}
	if err := a.grow(n); err != nil {
		return err
	}
	err := a.Hold(ctx, 2*n) // as values and as text
	if err == nil {
		if err = a.Work(ctx); err == nil {
			return nil
		}
		a.Drop(2 * n)
	}
	_ = a.grow(-n)
	return err
}

// TakeNow is like Take but does not wait.
func (a *Account) TakeNow(n int64) error {
	now, cancel := context.WithCancel(context.Background())
	cancel()
	return a.Take(now, n)
}

// Count is like Take, for bytes that are in memory already. It does not wait for room, but it does
// wait for a lane.
func (a *Account) Count(ctx context.Context, n int64) error {
	if a.unbound() {
		return nil
	}
	if err := a.grow(n); err != nil {
		return err
	}
	now, cancel := context.WithCancel(context.Background())
	cancel()
	if err := a.Hold(now, 2*n); err != nil {
		return err
	}
	return a.Work(ctx)
}

// grow adds n to the size of the response. The first part may have any size.
func (a *Account) grow(n int64) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n > 0 && a.response > 0 && a.response+n > a.Pool.limits.Response {
		return ErrResponseTooLarge
	}
	a.response += n
	return nil
}

// Hold takes memory until Release. It waits a few seconds for room and leaves its lane while it
// waits.
func (a *Account) Hold(ctx context.Context, n int64) error {
	if a.unbound() {
		return nil
	}
	a.mu.Lock()
	if a.closed {
		a.mu.Unlock()
		return errBusy()
	}
	count := a.held+n > small
	if !count {
		a.held += n
	}
	a.mu.Unlock()
	if !count {
		return nil
	}
	if _, ok := a.Pool.try(a.Owner, n); !ok {
		a.Settle()
		ctx, cancel := a.wait(ctx)
		defer cancel()
		if err := a.Pool.hold(ctx, a.Owner, n); err != nil {
			return err
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		a.Pool.give(a.Owner, n)
		return errBusy()
	}
	a.held += n
	a.counted += n
	return nil
}

// Drop gives back n of the bytes that Hold took.
func (a *Account) Drop(n int64) {
	if a.unbound() {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.held -= n
	n = min(n, a.counted)
	a.counted -= n
	a.Pool.give(a.Owner, n)
}

// Work waits for a lane if the request holds much. Settle leaves the lane.
func (a *Account) Work(ctx context.Context) error {
	if a.unbound() || a.inLane.Load() {
		return nil
	}
	a.mu.Lock()
	held := a.held
	a.mu.Unlock()
	if held < heavy {
		return nil
	}
	ctx, cancel := a.wait(ctx)
	defer cancel()
	if err := a.Pool.enter(ctx); err != nil {
		return err
	}
	if !a.inLane.CompareAndSwap(false, true) {
		a.Pool.leave()
	}
	return nil
}

// Settle leaves the lane. Call it when only waiting remains: for the client, the agent or memory.
func (a *Account) Settle() {
	if a != nil && a.inLane.Load() && a.inLane.CompareAndSwap(true, false) {
		a.Pool.leave()
	}
}

// wait bounds the total time that the request waits.
func (a *Account) wait(ctx context.Context) (context.Context, context.CancelFunc) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.until.IsZero() {
		a.until = time.Now().Add(patience)
	}
	return context.WithDeadline(ctx, a.until)
}

// Insist lets the request wait longer than others, for a result that must not be refused because
// the command was already carried out.
func (a *Account) Insist() {
	if a.unbound() {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.until = time.Now().Add(insistence)
}

// Borrow takes n bytes and, if they are many, a lane, for a value that several requests share. It
// waits a few seconds. worked leaves the lane, release gives the bytes back; both must be called.
func (a *Account) Borrow(ctx context.Context, n int64) (worked, release func(), err error) {
	if a.unbound() {
		return func() {}, func() {}, nil
	}
	a.Settle() // a request must not wait for its own lane
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := a.Pool.hold(ctx, a.Owner, n); err != nil {
		return nil, nil, err
	}
	release = func() { a.Pool.give(a.Owner, n) }
	if n < heavy {
		return func() {}, release, nil
	}
	if err := a.Pool.enter(ctx); err != nil {
		release()
		return nil, nil, err
	}
	return a.Pool.leave, release, nil
}

// Release gives back all that the account holds, and restarts the time that it may wait.
func (a *Account) Release() {
	if a.unbound() {
		return
	}
	a.Settle()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.Pool.give(a.Owner, a.counted)
	a.response, a.held, a.counted, a.until = 0, 0, 0, time.Time{}
}

// Close releases the account at the end of the request. Nothing can be taken after it.
func (a *Account) Close() {
	if a.unbound() {
		return
	}
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	a.Release()
}
