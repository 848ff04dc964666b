package a2a

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/task"
)

// maxBody is the size of the largest body.
const maxBody = 4 << 20

// call is what a method knows of the request it answers.
type call struct {
	context.Context
	s     *server
	to    task.Call // proof that the caller may call the agent
	agent string
	w     http.ResponseWriter
	r     *http.Request

	until  time.Time // until when the caller wants to wait; zero: not at all
	waited bool
}

// serve answers POST /a2a/{agent}. Who asks, and whether they may, is settled
// before the body is read.
func (s *server) serve(w http.ResponseWriter, r *http.Request) {
	agent := r.PathValue("agent")
	if !plain(r.URL, agent) {
		refuse(w, r, errs.ErrNotFound)
		return
	}
	c := &call{Context: r.Context(), s: s, agent: agent, w: w, r: r}
	var err error
	if c.to, err = s.Tasks.Reach(c, httpx.CallerOf(c), agent); err != nil {
		refuse(w, r, err)
		return
	}
	body := buffers.Get().(*buffer)
	defer func() { body.free() }()
	if body.b, err = readBody(w, r, body.b); err != nil {
		refuse(w, r, err)
		return
	}
	var space [1]request
	reqs, batch, bad := parse(body.b, space[:0])
	if bad != nil {
		writeJSON(w, http.StatusOK, appendError(nil, nullID, bad))
		return
	}
	wait := preferredWait(r.Header["Prefer"])
	if wait > 0 {
		c.until = time.Now().Add(wait)
	}
	if !batch {
		if st, id, ok := c.start(&reqs[0]); ok {
			if st != nil {
				body = body.free() // a stream lives long; what it was asked with need not
				s.stream(c, id, st)
			}
			return
		}
	}
	c.answer(reqs, batch, wait)
}

// plain reports whether the path names the agent and nothing but it. An id that
// was escaped on the way is not looked up under the name it decodes to.
func plain(u *url.URL, agent string) bool {
	rest, ok := strings.CutPrefix(u.EscapedPath(), "/a2a/")
	return ok && (rest == agent || strings.TrimSuffix(rest, "/") == agent)
}

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
			return b, nil
		case errors.As(err, &tooLarge):
			return b, errTooLarge
		case err != nil:
			return b, errs.Wrap(err, errs.Malformed, "request.malformed", "the body could not be read to its end")
		}
	}
}

// answer runs the requests, one after the other, and writes their answers.
func (c *call) answer(reqs []request, batch bool, wait time.Duration) {
	out := buffers.Get().(*buffer)
	defer func() { out.free() }()
	status := http.StatusOK
	if batch {
		out.b = append(out.b, '[')
	}
	empty := len(out.b)
	for i := range reqs {
		before := len(out.b)
		if before > empty {
			out.b = append(out.b, ',')
		}
		b, err := c.run(&reqs[i], out.b)
		switch {
		case reqs[i].id == nil:
			out.b = out.b[:before] // nobody asked
		case err != nil:
			out.b = appendError(out.b, reqs[i].id, err)
			if !batch && err.problem != nil && err.problem.Status == http.StatusTooManyRequests {
				status = err.problem.Status
				for name, v := range err.problem.GetHeaders() {
					c.w.Header()[name] = v
				}
			}
		default:
			out.b = b
		}
	}
	if c.waited {
		c.w.Header()["Preference-Applied"] = []string{"wait=" + strconv.Itoa(int(wait/time.Second))}
	}
	if len(out.b) == empty {
		c.w.WriteHeader(http.StatusNoContent)
		return
	}
	if batch {
		out.b = append(out.b, ']')
	}
	writeJSON(c.w, status, out.b)
}

// run appends the whole answer to one request, but not that to a failed one.
func (c *call) run(req *request, out []byte) ([]byte, *rpcError) {
	if req.err != nil {
		return out, req.err
	}
	m, ok := c.s.table[req.method]
	switch {
	case !ok:
		return out, newError(codeNoMethod, "there is no method "+strconv.Quote(clip(req.method)))
	case m.call == nil:
		return out, newError(codeUnsupported, "a stream cannot be part of a batch, nor a notification; send the request alone, with an id")
	}
	out = appendHead(out, req.id)
	out = append(out, `,"result":`...)
	out, err := m.call(c, req.params, out)
	if err != nil {
		return out, errorOf(c, err)
	}
	return append(out, '}'), nil
}

// start begins a stream, if that is what the request asks for. ok says that the
// request was dealt with; the stream is nil if it was refused.
func (c *call) start(req *request) (st *stream, id []byte, ok bool) {
	m := c.s.table[req.method]
	if req.err != nil || req.id == nil || m.stream == nil {
		return nil, nil, false
	}
	st, err := m.stream(c, req.params)
	if err != nil {
		writeJSON(c.w, http.StatusOK, appendError(nil, req.id, errorOf(c, err)))
		return nil, nil, true
	}
	return st, append([]byte(nil), req.id...), true
}

// wait is how long the caller still wants to wait.
func (c *call) wait() time.Duration {
	if c.until.IsZero() {
		return 0
	}
	c.waited = true
	d := max(0, time.Until(c.until))
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
	h := w.Header()
	h["Content-Type"] = jsonType
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client may be gone; there is nobody to tell
}

// buffer is scratch space for bodies and answers.
type buffer struct{ b []byte }

var buffers = sync.Pool{New: func() any { return &buffer{b: make([]byte, 0, 2048)} }}

// free gives the buffer back, unless it grew so large that it is better
// forgotten. It returns nil, on which free does nothing.
func (b *buffer) free() *buffer {
	if b != nil && cap(b.b) <= 64<<10 {
		b.b = b.b[:0]
		buffers.Put(b)
	}
	return nil
}
