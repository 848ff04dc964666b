package a2a

import (
	"iter"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/stream"
	"github.com/parley-dev/parley/internal/task"
)

// sseStream is a response in events.
type sseStream struct {
	// first, if set, is sent before all events: the task after an event. Events up to known are not
	// sent.
	first     *stream.Encoding
	firstDone func() // nil: nothing to release
	known     int64
	// follows is set if the client follows a task that exists, maybe for hours. The stream of a message
	// is short most of the time, and leaves its connection to the next request.
	follows bool

	task   *task.Task // the task of the events, without its content
	events eventSeq
	form   string // identifies the encoding in caches
	// encode appends the event in the dialect's form. show is false for an event that is not sent;
	// last reports that nothing follows.
	encode func(out []byte, e *task.Event) (_ []byte, show, last bool)
}

type eventSeq = iter.Seq2[task.Event, error]

// drop releases an iterator that will not be read: it would hold its task forever.
func drop(events eventSeq) {
	for range events {
		return
	}
}

// comeAgain is how long a client should wait before it continues a stream that ended early.
const comeAgain = time.Second

// stream writes events until the last one. It needs one goroutine: while the task has no events, the
// iterator yields zero events.
func (s *server) stream(c *call) {
	if c.stream.follows {
		s.router.Stream(c.r, func() { s.write(c) })
	} else {
		s.write(c)
	}
}

func (s *server) write(c *call) {
	sse := httpx.NewSSE(c.w)
	now := time.Now()
	wrote, checked := now, now
	if over, err := writeFirst(sse, c); over || err != nil {
		_ = sse.Flush()
		drop(c.stream.events)
		return
	}
	for e, err := range c.stream.events {
		if err != nil {
			_ = httpx.NewProblem(c, err) // records a server error for the log
			break
		}
		if e.Seq == 0 {
			now = time.Now()
			if s.recheckDue(checked, now) {
				checked = now
				if !c.allowedAside() {
					break
				}
			}
			if now.Sub(wrote) >= s.KeepAlive {
				wrote = now
				if sse.Comment() != nil {
					return
				}
			}
			if sse.Flush() != nil {
				return
			}
			continue
		}
		shown, last, err := writeEvent(sse, c, &e)
		if err != nil {
			return
		}
		if last {
			_ = sse.Flush()
			return
		}
		if shown {
			wrote = now
		}
	}
	if c.Err() == nil {
		_ = sse.Retry(comeAgain)
		_ = sse.Flush()
	}
}

// writeEvent writes one event. Its buffer is released at once: an idle stream holds none.
func writeEvent(sse *httpx.SSE, c *call, e *task.Event) (shown, last bool, err error) {
	if e.Kind == task.TurnEvent || e.Seq <= c.stream.known {
		return false, false, nil // the sender's own turn, or already sent
	}
	if stream.Large(e) {
		return writeLarge(sse, c, e)
	}
	buf := buffers.Get().(*buffer)
	defer buf.free()
	b := c.openEnvelope(buf.b)
	if b, shown, last = c.stream.encode(b, e); shown {
		b = c.closeEnvelope(b)
		err = sse.Event(e.Seq, b)
	}
	buf.b = b
	return shown, last, err
}

// writeLarge writes an event whose encoding is shared by all its readers.
func writeLarge(sse *httpx.SSE, c *call, e *task.Event) (shown, last bool, err error) {
	st := c.stream
	_, shown, last = st.encode(nil, &task.Event{
		Seq: e.Seq, At: e.At, Kind: e.Kind, State: e.State, Artifact: &task.Artifact{},
	})
	if !shown {
		return false, last, nil
	}
	form := st.form
	if last {
		form += " last"
	}
	text, done, err := c.s.Tasks.EncodeEvent(c, st.task, e, form, func() []byte {
		b, _, _ := st.encode(nil, e)
		return b
	})
	if err != nil {
		return false, false, err
	}
	defer done()
	return true, last, c.writeShared(sse, e.Seq, text)
}

// writeFirst writes what precedes all events. over reports that nothing follows.
func writeFirst(sse *httpx.SSE, c *call) (over bool, err error) {
	st := c.stream
	if st.first == nil {
		return false, nil
	}
	err = c.writeShared(sse, st.first.Seq, st.first.Text)
	over = st.first.Over
	if st.firstDone != nil {
		st.firstDone()
	}
	st.first, st.firstDone = nil, nil
	return over, err
}

// writeShared writes a shared text in this stream's envelope.
func (c *call) writeShared(sse *httpx.SSE, id int64, text []byte) error {
	head := c.openEnvelope(nil)
	return sse.Event(id, head, text, c.closeEnvelope(nil))
}

// openEnvelope and closeEnvelope wrap a result in JSON-RPC. Other bindings have no id and no
// envelope.
func (c *call) openEnvelope(b []byte) []byte {
	if c.id == nil {
		return b
	}
	return append(appendHead(b, c.id), `,"result":`...)
}

func (c *call) closeEnvelope(b []byte) []byte {
	if c.id == nil {
		return b
	}
	return append(b, '}')
}

func (c *call) allowedAside() (allowed bool) {
	httpx.Aside(func() { allowed = c.stillAllowed(c.stream.task) })
	return allowed
}

// stillAllowed reports whether the caller may still read the task's events. Only a refusal ends a
// stream: a store that is unavailable for a moment does not.
func (c *call) stillAllowed(t *task.Task) bool {
	caller, err := c.s.router.Recheck(c, c.r)
	if err == nil {
		err = c.s.Tasks.Still(c, caller, task.AgentKey{Org: t.Org, ID: t.Agent})
	}
	switch {
	case err == nil:
		return true
	case c.Err() != nil:
		return false
	}
	kind := errs.KindOf(err)
	return kind != errs.Unauthenticated && kind != errs.Forbidden && kind != errs.NotFound
}
