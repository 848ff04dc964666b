package budget

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-dev/parley/internal/errs"
)

const mib = 1 << 20

func account(p *Pool, org, principal string) *Account {
	return &Account{Pool: p, Owner: Owner{org, principal}}
}

func TestAResponseHoldsAtMostItsLimit(t *testing.T) {
	t.Parallel()
	a := account(NewPool(DefaultLimits), "acme", "user:ann")
	if err := a.Take(t.Context(), 16*mib); err != nil {
		t.Fatalf("the largest task: err = %v, want nil", err)
	}
	if err := a.Take(t.Context(), 2*mib); !errors.Is(err, ErrResponseTooLarge) {
		t.Errorf("beyond the limit: err = %v, want response.too_large", err)
	}
	a.Release()
	if err := a.Take(t.Context(), 16*mib); err != nil {
		t.Errorf("after a release: err = %v, want nil", err)
	}
}

func TestNoOwnerUsesUpThePool(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(Limits{Memory: 64 * mib, Response: 64 * mib})
		busy := func(a *Account, n int64) bool { return IsBusy(a.Hold(t.Context(), n)) }
		ann, bob, eve := account(p, "acme", "user:ann"), account(p, "acme", "user:bob"), account(p, "other", "user:eve")
		if busy(ann, 16*mib) || !busy(ann, mib) {
			t.Error("the share of a principal is not a quarter of the pool")
		}
		if cat := account(p, "acme", "user:cat"); busy(bob, 16*mib) || !busy(cat, mib) {
			t.Error("the share of an org is not half of the pool")
		}
		if busy(eve, 16*mib) {
			t.Error("no room for another org")
		}
		for _, a := range []*Account{ann, bob, eve} {
			a.Release()
		}
		if n := p.Used(); n != 0 {
			t.Errorf("bytes held after all was released = %d, want 0", n)
		}
	})
}

func TestAHoldWaitsUntilBytesAreGivenBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(Limits{Memory: 4 * mib})
		o := Owner{"acme", "user:ann"}
		if err := p.hold(t.Context(), o, mib); err != nil {
			t.Fatal(err)
		}
		got := make(chan error)
		go func() {
			err := p.hold(t.Context(), o, mib)
			if err == nil {
				p.give(o, mib)
			}
			got <- err
		}()
		synctest.Wait()
		select {
		case <-got:
			t.Fatal("the share was exceeded, want a wait")
		default:
		}
		p.give(o, mib)
		if err := <-got; err != nil || p.Used() != 0 {
			t.Errorf("after the release: err = %v, want nil; %d bytes held", err, p.Used())
		}
	})
}

func TestABusyPoolSaysWhenToComeAgain(t *testing.T) {
	t.Parallel()
	p := NewPool(Limits{Memory: mib})
	if err := p.hold(t.Context(), Owner{"a", "x"}, mib); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := p.hold(ctx, Owner{"b", "y"}, mib)
	if e := errs.As(err); !IsBusy(err) || e.Kind != errs.Unavailable || e.RetryAfter <= 0 {
		t.Errorf("got %+v, want Unavailable with RetryAfter", e)
	}
}

func TestSmallAmountsAndNoPoolAreFree(t *testing.T) {
	t.Parallel()
	p := NewPool(Limits{Memory: mib, Response: mib})
	if err := account(p, "a", "x").Hold(t.Context(), small); err != nil || p.Used() != 0 {
		t.Errorf("a small amount: err = %v, want nil; %d bytes held, want 0", err, p.Used())
	}
	var none *Account
	if err := errors.Join(none.Take(t.Context(), 1<<40), (&Account{}).Hold(t.Context(), 1<<40)); err != nil {
		t.Errorf("without a pool: err = %v, want nil", err)
	}
	none.Release()
}

func TestHalfOfTheProcessorsAreLeftToSmallRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(Limits{Memory: 1 << 30, Response: 1 << 30})
		var first *Account
		for i := range cap(p.lanes) {
			a := account(p, "acme", "user:ann")
			if err := a.Take(t.Context(), mib); err != nil {
				t.Fatalf("lane %d: err = %v, want nil", i, err)
			}
			first = a
		}
		late := account(p, "other", "user:eve")
		held := p.Used()
		if err := late.Take(t.Context(), mib); !IsBusy(err) || p.Used() != held {
			t.Errorf("one more large request: err = %v, %d more bytes held, want server.busy and 0", err, p.Used()-held)
		}
		if err := account(p, "other", "user:eve").Take(t.Context(), 1000); err != nil {
			t.Errorf("a small request: err = %v, want nil", err)
		}
		first.Settle()
		if err := account(p, "other", "user:eve").Take(t.Context(), mib); err != nil {
			t.Errorf("after one has settled: err = %v, want nil", err)
		}
	})
}

func TestARequestWaitsForMemoryOutsideOfItsLane(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(Limits{Memory: 64 * mib, Response: 64 * mib})
		full := account(p, "acme", "user:ann")
		for range cap(p.lanes) { // each in a lane
			if err := account(p, "acme", "user:ann").Take(t.Context(), mib); err != nil {
				t.Fatal(err)
			}
		}
		full.inLane.Store(true) // one of them asks for more than its share has
		done := make(chan error)
		go func() { done <- full.Take(t.Context(), 16*mib) }()
		synctest.Wait()
		if err := account(p, "other", "user:eve").TakeNow(mib); err != nil {
			t.Errorf("another org during a wait for memory: err = %v, want nil", err)
		}
		if err := <-done; !IsBusy(err) {
			t.Errorf("beyond the share: err = %v, want server.busy", err)
		}
	})
}

func TestPatienceBeginsWithTheFirstWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(Limits{Memory: 4 * mib, Response: 4 * mib})
		a := account(p, "acme", "user:ann")
		if err := a.Hold(t.Context(), 100<<10); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute) // the agent works
		other := Owner{"acme", "user:bob"}
		if err := p.hold(t.Context(), other, 2*mib-200<<10); err != nil {
			t.Fatal(err)
		}
		go func() {
			time.Sleep(time.Second)
			p.give(other, 2*mib-200<<10)
		}()
		if err := a.Take(t.Context(), 400<<10); err != nil {
			t.Errorf("memory that was free after a second: err = %v, want nil", err)
		}
	})
}

func TestNothingIsTakenAfterTheEnd(t *testing.T) {
	t.Parallel()
	p := NewPool(DefaultLimits)
	a := account(p, "acme", "user:ann")
	if err := a.Take(t.Context(), mib); err != nil {
		t.Fatal(err)
	}
	a.Close()
	if err := a.Hold(t.Context(), mib); !IsBusy(err) || p.Used() != 0 || len(p.lanes) != 0 {
		t.Errorf("after the end: err = %v, want server.busy; %d bytes held and %d lanes taken, want 0",
			err, p.Used(), len(p.lanes))
	}
}

func TestACountedPageWaitsForALaneOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(Limits{Memory: 64 * mib, Response: 64 * mib})
		var busy []*Account
		for range cap(p.lanes) {
			a := account(p, "other", "user:eve")
			if err := a.Take(t.Context(), mib); err != nil {
				t.Fatal(err)
			}
			busy = append(busy, a)
		}
		go func() {
			time.Sleep(time.Second)
			busy[0].Settle()
		}()
		if err := account(p, "acme", "user:ann").Count(t.Context(), mib); err != nil {
			t.Errorf("a page while others encode: err = %v, want nil", err)
		}
		if err := account(p, "acme", "user:bob").Count(t.Context(), 60*mib); !IsBusy(err) {
			t.Errorf("a page without memory for it: err = %v, want server.busy", err)
		}
	})
}
