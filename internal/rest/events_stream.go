package rest

import (
	"context"
	"errors"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/event"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/identity"
)

// wantsStream reports whether a client prefers an event stream to JSON. A stream does not end, so it
// must be named, and JSON wins if both are named with the same weight.
func wantsStream(accept []string) bool {
	weights := map[string]float64{}
	for _, line := range accept {
		for part := range strings.SplitSeq(line, ",") {
			media, params, err := mime.ParseMediaType(part)
			if err != nil {
				continue
			}
			q := 1.0
			if v, ok := params["q"]; ok {
				if q, err = strconv.ParseFloat(v, 64); err != nil || !(q >= 0 && q <= 1) { // also NaN
					q = 0
				}
			}
			weights[media] = max(weights[media], q)
		}
	}
	stream := weights["text/event-stream"]
	if page, named := weights["application/json"]; named {
		return stream > page
	}
	page, matches := weights["application/*"]
	if !matches {
		page = weights["*/*"]
	}
	return stream > 0 && stream >= page
}

// comeAgain is how long a client should wait before it continues a stream that ended early.
const comeAgain = time.Second

// eventStream is the response with a stream of events. It needs one
// goroutine.
type eventStream struct {
	*api
	*call
	ctx     context.Context
	sse     *httpx.SSE // nil: not begun
	last    int64      // position of the client
	known   bool       // last is known: the client sent it, or the log has begun
	tell    bool       // a client that connected again now would miss events: it needs its position
	wrote   time.Time
	checked time.Time
}

// streamEvents writes events until the client leaves, loses the right to read them, or the server
// stops. It takes a pointer to keep its stack frame small; see the follower of package event.
func (a *api) streamEvents(ctx context.Context, c *call, r *event.Request) {
	now := time.Now()
	s := &eventStream{api: a, call: c, ctx: ctx, last: r.After, wrote: now, checked: now}
	s.known = r.Start == event.AfterNumber
	s.tell = r.Start == event.FromNow || r.Start == event.FromTime
	for item, err := range a.events.Follow(ctx, c.Access, *r, min(a.recheck, a.keepAlive)) {
		if !s.take(&item, err) {
			return
		}
	}
	if ctx.Err() == nil {
		s.end()
	}
}

// take writes an item. It returns false if the stream is over.
func (s *eventStream) take(item *event.Item, err error) bool {
	if err != nil {
		s.fail(err)
		return false
	}
	if s.sse == nil {
		s.begin()
	}
	s.last, s.known = item.Last, true
	switch {
	case item.Event != nil:
		return s.event(item.Event) == nil
	case item.Reset:
		return s.reset() == nil
	}
	return s.pause() == nil
}

// begin starts the response. From now on the request only waits, most of the time.
func (s *eventStream) begin() {
	s.response.Header().Add("Vary", "Accept")
	s.sse = httpx.NewSSE(s.response)
	s.router.Yield(s.ctx)
}

// event writes an event. Its buffer is released at once: an idle stream holds none.
func (s *eventStream) event(e *event.Event) error {
	buf := eventBuffers.Get().(*[]byte)
	*buf = appendEvent((*buf)[:0], e)
	err := s.sse.Named(e.Seq, string(e.Type), *buf)
	if cap(*buf) <= 16<<10 {
		eventBuffers.Put(buf)
	}
	s.wrote = time.Time{} // the next pause knows the time
	return err
}

var eventBuffers = sync.Pool{New: func() any { b := make([]byte, 0, 2048); return &b }}

// reset tells the client that its number is not in the log.
func (s *eventStream) reset() error {
	data := strconv.AppendInt([]byte(`{"last_seq":`), s.last, 10)
	return s.sse.Named(s.last, "reset", append(data, '}'))
}

// pause sends what was written and keeps an idle stream open. The position lets a client whose
// filter selects little continue there.
func (s *eventStream) pause() error {
	now := time.Now()
	if due(s.checked, now, s.recheck) {
		s.checked = now
		allowed := false
		httpx.Aside(func() { allowed = s.stillAllowed() })
		if !allowed {
			return errStreamOver
		}
	}
	switch {
	case s.wrote.IsZero():
		s.wrote, s.tell = now, false
	case s.tell || due(s.wrote, now, s.keepAlive):
		s.wrote, s.tell = now, false
		if err := s.sse.Position(s.last); err != nil {
			return err
		}
	}
	return s.sse.Flush()
}

// due reports whether so much time has passed. Ticks may come a moment early.
func due(since, now time.Time, every time.Duration) bool { return now.Sub(since) >= every-every/10 }

var errStreamOver = errors.New("the stream has ended")

// stillAllowed reports whether the caller may read what this stream sends. If not, it ends the
// stream. A store that is unavailable for a moment refuses nothing.
func (s *eventStream) stillAllowed() bool {
	access, err := s.readsEvents(s.ctx, s.call)
	if err == nil {
		if access.Has(identity.Admin) == s.Has(identity.Admin) {
			return true
		}
		s.end() // the client connects again and gets what it may see now
		return false
	}
	if refuses(err) {
		s.fail(err)
		return false
	}
	return s.ctx.Err() == nil
}

// refuses reports whether another connection would get the same error.
func refuses(err error) bool {
	switch errs.KindOf(err) {
	case errs.Unauthenticated, errs.Forbidden, errs.NotFound:
		return true
	}
	return false
}

// fail reports an error: as the response, or as the last event of a stream that has begun. After an
// error that may pass, the client continues with another connection.
func (s *eventStream) fail(err error) {
	err = worded(http.MethodGet, err)
	if s.sse == nil {
		httpx.WriteError(s.response, s.request, err)
		return
	}
	problem := httpx.NewProblem(s.ctx, err) // also records server errors for the log
	if !refuses(err) {
		s.end()
		return
	}
	data, encodeErr := json.Marshal(problem)
	if encodeErr == nil {
		_ = s.sse.Named(s.last, "error", data)
		_ = s.sse.Flush()
	}
}

// end asks the client to continue with another connection.
func (s *eventStream) end() {
	if s.sse == nil {
		s.begin()
	}
	if s.known {
		_ = s.sse.Position(s.last)
	}
	_ = s.sse.Retry(comeAgain)
	_ = s.sse.Flush()
}
