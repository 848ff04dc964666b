package httpx

import (
	"context"
	"io"
	"net/http"
	"net/netip"
	"time"

	"github.com/parley-dev/parley/internal/budget"
	"github.com/parley-dev/parley/internal/identity"
)

// exchange is everything the server remembers of one request. It is the
// request's context and carries its response writer, so that a request costs one
// allocation here and not one per middleware.
type exchange struct {
	context.Context // of the connection, unless it was detached from it

	rec    recorder
	start  time.Time
	id     [1]string // the request id, in the shape in which a header map takes it
	caller *identity.Caller
	route  *route
	cause  error        // of an answer that is our fault, for the log
	shed   bool         // refused to protect others: neither our fault nor the caller's
	busy   []shedReason // why the handler refused it, or parts of it, to protect others

	limit  *limits[identity.Principal] // that the caller's requests are taken from; nil: no caller
	holder holder                      // whom the request is counted for
	place  place

	account budget.Account // of the memory that the request holds
	body    io.ReadCloser  // if it is counted while it is read; else nil

	client  context.Context // of the connection of a detached request; nil: it is not
	request *http.Request   // as it came
	trusted []netip.Prefix

	metadata string // of the protected resource, named in challenges; empty: none
}

type exchangeKey struct{}

// Value makes the exchange find itself below contexts derived from it.
func (x *exchange) Value(key any) any {
	switch key.(type) {
	case exchangeKey:
		return x
	case identity.OriginKey:
		return x.origin()
	case budget.Key:
		return &x.account
	}
	return x.Context.Value(key)
}

// origin is what the audit log keeps of the request.
func (x *exchange) origin() identity.Origin {
	o := identity.Origin{RequestID: x.id[0]}
	if addr := clientAddr(x.request, x.trusted); addr.IsValid() {
		o.Address = addr.String()
	}
	if x.caller != nil {
		o.Actor, o.KeyID = x.caller.Ref(), x.caller.KeyID
	}
	return o
}

// exchangeOf returns nil outside a Router, as in a test of one handler.
func exchangeOf(ctx context.Context) *exchange {
	if x, ok := ctx.(*exchange); ok {
		return x
	}
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	return x
}

// CallerOf returns who sent the request; nil: nobody that is known.
func CallerOf(ctx context.Context) *identity.Caller {
	if x := exchangeOf(ctx); x != nil {
		return x.caller
	}
	return nil
}

// RequestID returns the id under which the request is logged.
func RequestID(ctx context.Context) string {
	if x := exchangeOf(ctx); x != nil {
		return x.id[0]
	}
	return ""
}

// recorder notes what was answered, for metrics and the log.
type recorder struct {
	http.ResponseWriter
	account *budget.Account // of the request
	status  int             // 0: nothing was written yet
	bytes   int64
}

// WriteHeader notes the final status; informational ones may come before it. A
// handler that fails after it began to write, as when its client is gone, may try to
// write another; that one comes too late.
func (r *recorder) WriteHeader(status int) {
	if r.status != 0 {
		return
	}
	if status >= 200 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(p []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	r.account.Settle()
	n, err := r.ResponseWriter.Write(p)
	r.bytes += int64(n)
	return n, err
}

// Unwrap lets http.ResponseController reach the connection.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// Flush serves code that asserts http.Flusher instead of asking a ResponseController.
func (r *recorder) Flush() {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	_ = http.NewResponseController(r.ResponseWriter).Flush()
}
