package a2a

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/parley-dev/parley/internal/budget"
	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/httpx"
)

// maxBody is the maximum size of a body, in bytes.
const maxBody = 4 << 20

// parentHeader names the task that the caller works on, for clients that cannot set the metadata of
// a request: see chain.ParentKey.
const parentHeader = "Parley-Parent-Task"

// call is the state of one request.
type call struct {
	context.Context
	s     *server
	to    dispatch.Call // proof that the caller may call the agent
	agent string
	w     http.ResponseWriter
	r     *http.Request

	version   *rpcError     // set: the caller's version is not supported
	official  bool          // the caller named a version, so it reads errors in the form of 1.0
	preferred time.Duration // how long the caller wants to wait
	until     time.Time     // zero: not at all
	waited    bool

	blockUntil time.Time // until when calls of the official protocol wait; zero: none did
	body       *buffer   // of the request
	batch      bool

	id     []byte // of the request that the stream belongs to
	stream *sseStream
}

// serve serves POST /a2a/{agent}. A stream stays in this frame for as long as it lives, so the
// frame is kept small: a stream costs mostly its stack.
func (s *server) serve(w http.ResponseWriter, r *http.Request) {
	if c := s.answer(w, r); c != nil {
		httpx.ReleaseMemory(c)
		s.stream(c)
	}
}

// answer handles everything but a stream: if a stream is to be sent, it returns its call. The
// caller is authorized before the body is read.
func (s *server) answer(w http.ResponseWriter, r *http.Request) *call {
	agent := r.PathValue("agent")
	if !plain(r.URL, agent) {
		refuse(w, r, errs.ErrNotFound)
		return nil
	}
	c := &call{Context: r.Context(), s: s, agent: agent, w: w, r: r}
	var err error
	if c.to, err = s.Tasks.Reach(c, httpx.CallerOf(c), agent); err != nil {
		refuseRequest(w, r, idOfRefused(w, r), err)
		return nil
	}
	c.to = c.to.During(r.Header.Get(parentHeader))
	body := buffers.Get().(*buffer)
	defer body.free()
	c.body = body
	if body.b, err = readBody(w, r, body.b); err != nil {
		refuse(w, r, err)
		return nil
	}
	if bad := checkContentType(r, rpcMedia); bad != nil {
		writeJSON(w, http.StatusOK, appendError(nil, idOf(body.b), bad))
		return nil
	}
	var space [1]request
	reqs, batch, bad := parse(body.b, space[:0])
	asked := askedVersion(r)
	c.official = asked != ""
	if bad != nil {
		bad.official = c.official
		writeJSON(w, http.StatusOK, appendError(nil, nullID, bad))
		return nil
	}
	c.version = checkVersion(asked)
	if wait := httpx.PreferredWait(r.Header["Prefer"]); wait > 0 {
		c.preferred, c.until = wait, time.Now().Add(wait)
	}
	if cap(body.b) > pooled {
		for i := range reqs {
			reqs[i].id = bytes.Clone(reqs[i].id)
		}
	}
	if !batch && c.streams(&reqs[0]) {
		return c.start(&reqs[0])
	}
	if err := s.router.Charge(c, len(reqs)-1); err != nil {
		refuse(w, r, err)
		return nil
	}
	c.batch = batch
	c.run(reqs, batch)
	return nil
}

// plain reports whether the path is exactly that of the agent. An id that is escaped in the URL is
// not looked up under its decoded name.
func plain(u *url.URL, agent string) bool {
	rest, ok := strings.CutPrefix(u.EscapedPath(), "/a2a/")
	return ok && (rest == agent || strings.TrimSuffix(rest, "/") == agent)
}

// rpcMedia are the accepted media types of a JSON-RPC body; the last one is curl's default.
var rpcMedia = append(slices.Clone(jsonMedia), "application/x-www-form-urlencoded")

var errTooLarge = errs.New(errs.TooLarge, "request.too_large", "the body is larger than %d bytes", maxBody)

// readBody reads to the end, so that the server notices when the client goes away.
func readBody(w http.ResponseWriter, r *http.Request, b []byte) ([]byte, error) {
	if r.ContentLength > maxBody {
		return b, errTooLarge
	}
	in := http.MaxBytesReader(w, r.Body, maxBody)
	for {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		n, err := in.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		var tooLarge *http.MaxBytesError
		switch {
		case err == io.EOF:
			return b, budget.From(r.Context()).Work(r.Context())
		case errors.As(err, &tooLarge):
			return b, errTooLarge
		case budget.IsBusy(err):
			return b, err // no memory for the body
		case err != nil:
			return b, errs.Wrap(err, errs.Malformed, "request.malformed", "the body could not be read to its end")
		}
	}
}

// run runs the requests one after the other and writes their responses.
func (c *call) run(reqs []request, batch bool) {
	out := buffers.Get().(*buffer)
	defer out.free()
	status := http.StatusOK
	var shed *rpcError // the last one that was refused only for now
	served := 0
	if batch {
		out.b = append(out.b, '[')
	}
	empty := len(out.b)
	for i := range reqs {
		before := len(out.b)
		if before > empty {
			out.b = append(out.b, ',')
		}
		b, err := c.oneTraced(&reqs[i], out.b)
		if err != nil {
			err.official = err.official || c.official
		}
		if err != nil && !batch && reqs[i].id == nil && reqs[i].lacksID(err) {
			reqs[i].id = nullID
		}
		if err != nil && err.sheds() {
			if shed = err; reqs[i].id == nil && !batch {
				reqs[i].id = nullID // the client must see that the notification was refused
			}
		} else if err == nil || reqs[i].id != nil {
			served++
		}
		switch {
		case reqs[i].id == nil:
			out.b = out.b[:before] // no response to a notification
		case err != nil:
			out.b = appendError(out.b, reqs[i].id, err)
		default:
			out.b = b
		}
	}
	c.nameQuota()
	if shed != nil && served == 0 { // of a batch, some may have been carried out
		status = shed.problem.Status
		for name, v := range shed.problem.GetHeaders() {
			c.w.Header()[name] = v
		}
	}
	if c.waited {
		c.w.Header()["Preference-Applied"] = []string{httpx.WaitApplied(c.preferred)}
	}
	switch {
	case len(out.b) > empty:
	case status != http.StatusOK:
		writeJSON(c.w, status, appendError(nil, nullID, shed))
		return
	default:
		c.w.WriteHeader(http.StatusNoContent)
		return
	}
	if batch {
		out.b = append(out.b, ']')
	}
	writeJSON(c.w, status, out.b)
}

// lacksID reports whether a notification is a request that lacks its id: a message that could never
// have been sent. Version 0.3 has no notifications, and its clients expect a response.
func (req *request) lacksID(err *rpcError) bool {
	return strings.HasPrefix(req.method, "message/") && (err.code == codeNoMethod || err.code == codeInvalidParams)
}

// one appends the whole response to one request, but not that to a failed one.
func (c *call) one(req *request, out []byte) ([]byte, *rpcError) {
	if req.err != nil {
		return out, req.err
	}
	if err := c.s.router.Resume(c); err != nil { // the previous item may have waited
		return out, errorOf(c, err)
	}
	if c.version != nil {
		return out, c.version
	}
	m, ok := c.s.table[req.method]
	switch {
	case !ok:
		return out, newError(codeNoMethod, "unknown method "+strconv.Quote(clip(req.method)))
	case m.call == nil:
		e := newError(codeUnsupported,
			"a stream cannot be part of a batch or a notification; send the request alone, with an id")
		e.official = m.official
		return out, e
	}
	out = appendHead(out, req.id)
	out = append(out, `,"result":`...)
	params := req.params
	req.params = nil // so that dropBody can release it
	out, err := m.call(c, params, out)
	if err != nil {
		return out, c.failed(&m, err)
	}
	return append(out, '}'), nil
}

// failed returns the error of a request whose method failed. Clients of 1.0 send their version even
// when they speak 0.3, and read errors only in the form of 1.0.
func (c *call) failed(m *method, err error) *rpcError {
	e := errorOf(c, err)
	e.official = m.official || c.official
	return e
}

// streams reports whether the response to the request is a stream.
func (c *call) streams(req *request) bool {
	return req.err == nil && req.id != nil && c.version == nil && c.s.table[req.method].stream != nil
}

// start begins a stream and returns the call with it, or nil if it was refused.
func (c *call) start(req *request) *call {
	m := c.s.table[req.method]
	st, err := c.openTraced(rpcJSON, req.method, &m, req.params)
	c.nameQuota()
	if err != nil {
		failed := c.failed(&m, err)
		body := appendError(nil, req.id, failed)
		if failed.sheds() {
			for name, v := range failed.problem.GetHeaders() {
				c.w.Header()[name] = v
			}
			writeJSON(c.w, failed.problem.Status, body)
			return nil
		}
		if onlyEvents(c.r) && (m.eventErrors || m.official && isGoClient(c.r)) {
			sse := httpx.NewSSE(c.w)
			_ = sse.Data(body)
			_ = sse.Flush()
			return nil
		}
		writeJSON(c.w, http.StatusOK, body)
		return nil
	}
	// The body is returned to the pool: copy what the stream needs.
	c.stream, c.id = st, bytes.Clone(req.id)
	return c
}

// open makes the stream. It is counted before anything is done for it.
func (c *call) open(m *method, params []byte) (*sseStream, error) {
	if err := c.s.router.Park(c, httpx.Stream); err != nil {
		return nil, err
	}
	st, err := m.stream(c, params)
	if err == nil {
		c.s.router.Yield(c)
	}
	return st, err
}

// onlyEvents reports whether the client accepts event streams and names nothing else. The Python
// SDK 0.3 sends */*, the default of its HTTP library, in addition.
func onlyEvents(r *http.Request) bool {
	events := false
	for _, line := range r.Header["Accept"] {
		for media := range strings.SplitSeq(line, ",") {
			switch strings.TrimSpace(media) {
			case "text/event-stream":
				events = true
			case "*/*", "":
			default:
				return false
			}
		}
	}
	return events
}

// wait returns how long the caller still wants to wait.
func (c *call) wait() time.Duration {
	if c.until.IsZero() {
		return 0
	}
	c.waited = true
	return c.allowWait(max(0, time.Until(c.until)))
}

// allowWait extends the write deadline of the response.
func (c *call) allowWait(d time.Duration) time.Duration {
	httpx.AllowWait(c.w, d)
	return d
}

func clip(s string) string {
	if len(s) > 64 {
		return strings.ToValidUTF8(s[:64], "") + "…"
	}
	return s
}

var jsonType = []string{"application/json"}

func writeJSON(w http.ResponseWriter, status int, body []byte) {
	writeBody(w, status, jsonType, body)
}

func writeBody(w http.ResponseWriter, status int, media []string, body []byte) {
	h := w.Header()
	h["Content-Type"] = media
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client may be gone
}

// dropBody releases a large body, for a request that waits.
func (c *call) dropBody() {
	if c.body != nil && cap(c.body.b) > pooled {
		c.body.b = nil
	}
}

// pooled is the size up to which buffers are reused.
const pooled = 64 << 10

// buffer is scratch space for bodies and responses.
type buffer struct{ b []byte }

var buffers = sync.Pool{New: func() any { return &buffer{b: make([]byte, 0, 2048)} }}

// free returns the buffer to the pool unless it grew too large.
func (b *buffer) free() {
	if cap(b.b) <= pooled {
		b.b = b.b[:0]
		buffers.Put(b)
	}
}
