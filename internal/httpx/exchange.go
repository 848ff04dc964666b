package httpx

import (
	"context"
	"io"
	"net/http"
	"net/netip"
	"time"

	"github.com/parley-dev/parley/internal/budget"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/trace"
)

// exchange is the state of one request. It is the request's context and contains its response
// writer, so that a request costs one allocation here instead of one per middleware.
type exchange struct {
	context.Context // of the connection, unless detached

	rec    recorder
	start  time.Time
	id     [1]string // the request id, as a header value
	caller *identity.Caller
	route  *route
	cause  error        // of a response with a server error, for the log
	shed   bool         // refused to protect others: not a failure of the server or the caller
	busy   []shedReason // why the handler refused the request, or parts of it, to protect others

	limit  *limits[identity.Principal] // rate limit of the caller; nil: no caller
	holder holder                      // what the request is counted for
	place  place
	span   trace.Span // zero unless spans are exported

	account budget.Account // memory that the request holds
	body    io.ReadCloser  // the body if it is counted while it is read, else nil
	taken   *takenConn     // the connection if a stream has taken it over, else nil
	slow    slowBody

	client  context.Context // the connection's context of a detached request, else nil
	request *http.Request   // the original request
	router  *Router         // that serves it; nil in some tests
	trusted []netip.Prefix

	metadata string // URL of the resource metadata, for challenges; empty: none
}

type exchangeKey struct{}

// Value lets exchangeOf find the exchange in derived contexts.
func (x *exchange) Value(key any) any {
	switch key.(type) {
	case exchangeKey:
		return x
	case identity.OriginKey:
		return x.origin()
	case budget.Key:
		return &x.account
	case trace.Key:
		return x.sentTrace()
	}
	return x.Context.Value(key)
}

// origin returns what the audit log keeps of the request.
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

// exchangeOf returns nil outside of a Router, as in a test of one handler.
func exchangeOf(ctx context.Context) *exchange {
	if x, ok := ctx.(*exchange); ok {
		return x
	}
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	return x
}

// CallerOf returns the caller of the request, or nil for an anonymous one.
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

// recorder records the response for metrics and the log.
type recorder struct {
	http.ResponseWriter
	x      *exchange // that the recorder is part of
	status int       // 0: nothing was written yet
	bytes  int64
	// takeOver, if set, takes over the connection for a stream; see Router.Stream.
	takeOver func() *takenConn
}

// WriteHeader records the final status; informational ones may precede it. A handler that fails
// after it began to write, for example because the client is gone, may write a second status; it is
// ignored.
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
	r.x.account.Settle()
	if len(p) >= gatherFrom && r.bytes == 0 {
		r.x.gather(len(p))
	}
	n, err := r.ResponseWriter.Write(p)
	r.bytes += int64(n)
	return n, err
}

// Unwrap lets http.ResponseController reach the connection.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// Flush supports code that asserts http.Flusher instead of using a ResponseController.
func (r *recorder) Flush() {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	_ = http.NewResponseController(r.ResponseWriter).Flush()
}
