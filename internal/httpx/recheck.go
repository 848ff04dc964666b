package httpx

import (
	"context"
	"net/http"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

// RecheckEvery is how often a long request authenticates its caller again.
const RecheckEvery = 4 * time.Second

// WhileAllowed returns a context that ends when the request's credentials are no longer valid, or
// when check refuses their caller; its cause is the refusal. A store that is unavailable for a
// moment refuses nothing. The context of a worker's request also ends, as canceled, when the client
// closes its side of the connection. The caller must call stop.
func (rt *Router) WhileAllowed(
	ctx context.Context, r *http.Request, check func(context.Context, *identity.Caller) error,
) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	var again *time.Timer
	ready := make(chan struct{}) // again is set
	again = time.AfterFunc(rt.recheck, func() {
		<-ready
		caller, err := rt.Recheck(ctx, r)
		if err == nil {
			err = check(ctx, caller)
		}
		switch errs.KindOf(err) {
		case errs.Unauthenticated, errs.Forbidden, errs.NotFound:
			if err != nil && ctx.Err() == nil {
				cancel(err)
				return
			}
		}
		if ctx.Err() == nil {
			again.Reset(rt.recheck)
		}
	})
	close(ready)
	unlink := func() bool { return true }
	if x := exchangeOf(ctx); x != nil && x.client != nil {
		unlink = context.AfterFunc(x.client, func() { cancel(context.Canceled) })
	}
	return ctx, func() {
		unlink()
		again.Stop()
		cancel(nil)
	}
}
