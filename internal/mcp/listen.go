package mcp

import (
	"context"
	"net/http"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-dev/parley/internal/event"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/identity"
)

// Since revision 2026-07-28 a client subscribes with subscriptions/listen: a request whose response
// is a stream of notifications. It needs no session, so it works here. The requests
// resources/subscribe of older revisions need one, and are refused.
const (
	listenMethod = "subscriptions/listen"
	ackMethod    = "notifications/subscriptions/acknowledged"
)

// listens reports whether the request opens a stream of notifications. The SDK compares the header
// with the body.
func listens(r *http.Request) bool {
	return r.Header.Get("MCP-Protocol-Version") >= stepUp && r.Header.Get("Mcp-Method") == listenMethod
}

// keepAlive is how often a silent stream sends a comment.
const keepAlive = 15 * time.Second

// serveListen serves a stream of notifications until the client or the server ends it, or the
// caller may no longer read events. It has its own SDK server, because that of the tools would
// notify the callers of all orgs.
func (s *server) serveListen(w http.ResponseWriter, r *http.Request) {
	a, err := authorize(httpx.CallerOf(r.Context()), identity.ReadEvents)
	if err == nil {
		err = s.router.Park(r.Context(), httpx.Stream)
	}
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	allowed, stop := s.router.WhileAllowed(r.Context(), r, func(_ context.Context, c *identity.Caller) error {
		now, err := authorize(c, identity.ReadEvents)
		if err == nil && a.Has(identity.Admin) && !now.Has(identity.Admin) {
			return identity.MissingScope("read administrative events", identity.Admin)
		}
		return err
	})
	defer stop()
	ctx, end := context.WithCancel(allowed)
	l := &listener{s: s, access: a, ctx: ctx, end: end, w: &streamWriter{ResponseWriter: w}}
	w.Header().Set("X-Accel-Buffering", "no") // or nginx would buffer notifications
	s.handler(l.server()).ServeHTTP(l.w, r.WithContext(ctx))
	end()
	l.work.Wait()
}

// listener is one stream of notifications.
type listener struct {
	s      *server
	access identity.Access
	ctx    context.Context // of the request
	end    context.CancelFunc
	w      *streamWriter
	after  int64 // the last event before the subscription
	work   sync.WaitGroup
}

// server makes the SDK's server for this stream.
func (l *listener) server() *sdk.Server {
	o := l.s.serverOptions(true)
	o.SubscribeHandler, o.UnsubscribeHandler = l.subscribe, unsubscribe
	m := sdk.NewServer(l.s.implementation(), o)
	m.AddResource(eventsResource, l.s.readEvents) // for the capabilities; this stream reads nothing
	m.AddSendingMiddleware(onAck(func() { l.work.Go(func() { l.notify(m) }) }))
	return m
}

// subscribe notes where the log ends, so that the client is notified of everything that it cannot
// have read yet.
func (l *listener) subscribe(ctx context.Context, req *sdk.SubscribeRequest) error {
	if req.Params.URI != eventsURI {
		return sdk.ResourceNotFoundError(req.Params.URI)
	}
	head, err := l.s.Events.Head(ctx, l.access)
	if err != nil {
		return protocolError(ctx, err)
	}
	l.after = head
	return nil
}

func unsubscribe(context.Context, *sdk.UnsubscribeRequest) error { return nil }

// notify sends one notification for all events that are there at a time, and ends the stream.
func (l *listener) notify(m *sdk.Server) {
	defer l.end()
	l.s.router.Yield(l.ctx)
	news := false
	for item, err := range l.s.Events.Follow(l.ctx, l.access, event.Request{After: l.after}, keepAlive/3) {
		switch {
		case err != nil:
			return
		case item.Event != nil || item.Reset:
			news = true
			continue
		case news:
			news, err = false, m.ResourceUpdated(l.ctx, &sdk.ResourceUpdatedNotificationParams{URI: eventsURI})
		case l.w.silent(): // else a comment would show when events happen that the caller does not see
			err = l.w.comment()
		}
		if err != nil {
			return
		}
	}
}

// onAck calls a function when a subscription was acknowledged, which must be the first message of
// a stream.
func onAck(do func()) sdk.Middleware {
	return func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
			res, err := next(ctx, method, req)
			if err == nil && method == ackMethod {
				do()
			}
			return res, err
		}
	}
}

// streamWriter lets a stream send comments between the messages of the SDK, and gives every write
// its own deadline.
type streamWriter struct {
	http.ResponseWriter
	mu    sync.Mutex
	wrote time.Time
}

// Write is called by the SDK with whole messages.
func (w *streamWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wrote = time.Now()
	httpx.AllowWait(w.ResponseWriter, 2*keepAlive)
	return w.ResponseWriter.Write(p)
}

// silent reports whether nothing was written for so long that proxies may close the stream.
func (w *streamWriter) silent() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Since(w.wrote) >= keepAlive
}

// FlushError sends what was written.
func (w *streamWriter) FlushError() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// comment keeps proxies from closing a silent stream.
func (w *streamWriter) comment() error {
	if _, err := w.Write([]byte(":\n\n")); err != nil {
		return err
	}
	return w.FlushError()
}
