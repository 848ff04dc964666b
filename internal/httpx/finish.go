package httpx

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"
)

// finish ends every request: it turns a panic into a 500, counts the request and logs it if it
// failed. It must be deferred directly, for recover.
func (rt *Router) finish(x *exchange, r *http.Request) {
	var abort any
	if p := recover(); p != nil {
		abort = rt.survive(x, r, p)
	}
	if x.taken != nil {
		return // the stream ends the request
	}
	rt.end(x, r)
	if abort != nil {
		panic(abort)
	}
}

// end gives back what the request holds, counts it and logs it.
func (rt *Router) end(x *exchange, r *http.Request) {
	x.account.Close()
	status := x.rec.status
	if status == 0 {
		status = http.StatusOK // net/http sends it when a handler writes nothing
	}
	rt.leave(x)
	took := rt.now().Sub(x.start)
	if rt.metrics != nil {
		rt.metrics.inFlight.Dec()
	}
	x.route.observe(status, took, x.span.TraceID())
	if x.span.On() {
		x.endSpan(status)
	}
	for _, reason := range x.busy {
		_ = rt.shed(x, reason, nil)
	}
	switch {
	case x.abandoned(status):
		rt.logRequest(slog.LevelDebug, "client disconnected", x, r, status, took)
	case len(x.busy) > 0 && x.cause != nil, !x.shed && (status >= http.StatusInternalServerError || x.cause != nil):
		rt.logRequest(slog.LevelError, "request failed", x, r, status, took)
	case rt.accessLog:
		rt.logRequest(slog.LevelInfo, "request", x, r, status, took)
	}
}

// abandoned reports whether the request failed because its client is gone, which operators need not
// look into.
func (x *exchange) abandoned(status int) bool {
	return x.Context.Err() != nil && (status == StatusCanceled || status == http.StatusServiceUnavailable ||
		errors.Is(x.cause, context.Canceled))
}

// survive responds to a panic with a 500. It returns the value to panic with again, or nil: a
// handler that aborts on purpose and a response that is half sent must end the connection, or the
// client would take the half for the whole.
func (rt *Router) survive(x *exchange, r *http.Request, p any) (abort any) {
	if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		return http.ErrAbortHandler
	}
	rt.log.LogAttrs(x, slog.LevelError, "panic",
		slog.String("request_id", x.id[0]),
		slog.String("panic", fmt.Sprint(p)),
		slog.String("stack", string(debug.Stack())))
	if x.rec.status != 0 {
		return http.ErrAbortHandler
	}
	rt.refuse(&x.rec, r, NewProblem(x, fmt.Errorf("panic: %v", p)))
	return nil
}

// logRequest writes one log line. It has the path but neither the query nor headers, which may
// contain secrets.
func (rt *Router) logRequest(
	level slog.Level, msg string, x *exchange, r *http.Request, status int, took time.Duration,
) {
	attrs := make([]slog.Attr, 0, 10)
	attrs = append(attrs,
		slog.String("request_id", x.id[0]),
		slog.String("method", r.Method),
		slog.String("path", rt.loggedPath(r.URL.Path)),
		slog.String("route", x.route.pattern),
		slog.Int("status", status),
		slog.Int64("bytes", x.rec.bytes),
		slog.Duration("took", took),
		slog.String("client", clientAddr(r, rt.trusted).String()))
	if x.caller != nil {
		attrs = append(attrs, slog.String("org", x.caller.Org), slog.String("principal", x.caller.Ref()))
	}
	if x.cause != nil {
		attrs = append(attrs, slog.String("error", x.cause.Error()))
	}
	rt.log.LogAttrs(x, level, msg, attrs...)
}
