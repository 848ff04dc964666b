package relay

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-dev/parley/internal/budget"
)

// Bounds of what is read from a remote, in bytes.
const (
	// maxBody is what a task may hold, and room for what the remote's JSON has beside it.
	maxBody = 24 << 20
	// maxHeld is the memory that one response or event may take: its text, and its values decoded.
	maxHeld = 31 << 20
	// maxFault is how much is read of a response that is an error.
	maxFault = 64 << 10
	// unreserved is how much is read without a share of the memory for requests.
	unreserved = 64 << 10
	// holdMost is how long a response or event may hold memory before it is complete. Every slowRate
	// bytes that are read add a second, so that one that comes slowly but steadily is not cut.
	holdMost = time.Minute
	slowRate = 64 << 10
)

// transport sends the requests of an A2A client over guarded connections. It bounds responses, and
// repairs those that the client cannot read.
type transport struct {
	base    http.RoundTripper
	version string // of Parley
	rpc     bool   // the binding is JSON-RPC
	memory  *budget.Pool
	owner   budget.Owner
}

func (c *transport) reservation(ctx context.Context) *reservation {
	return &reservation{pool: c.memory, owner: c.owner, ctx: ctx, most: holdMost}
}

// RoundTrip implements http.RoundTripper.
func (c *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("User-Agent", "Parley/"+c.version+" (relay)")
	resp, err := c.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case resp.StatusCode/100 != 2:
		return c.fault(resp, kind)
	case kind == "text/event-stream":
		resp.Body = newEvents(resp.Body, c.rpc, c.reservation(r.Context()))
	case strings.Contains(r.Header.Get("Accept"), "text/event-stream"):
		// An error before the first event, or the only one.
		return c.asEvent(r.Context(), resp)
	default:
		b := newBounded(resp.Body, c.reservation(r.Context()))
		b.memory.expected = min(resp.ContentLength, maxBody)
		resp.Body = b
		if c.rpc && resp.ContentLength >= 0 && resp.ContentLength <= maxFault {
			return repaired(resp)
		}
	}
	return resp, nil
}

// fault returns a response with the status of an error. The client can read errors of the protocol;
// anything else becomes a statusError.
func (c *transport) fault(resp *http.Response, kind string) (*http.Response, error) {
	defer func() { _ = resp.Body.Close() }()
	status := &statusError{code: resp.StatusCode, target: resp.Header.Get("Location")}
	if kind != "application/json" && kind != "application/a2a+json" && kind != "application/problem+json" {
		return nil, status
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxFault))
	if err != nil {
		return nil, err
	}
	var said struct {
		Version string `json:"jsonrpc"`
		Error   *struct {
			Code    json.RawMessage `json:"code"`
			Details json.RawMessage `json:"details"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &said) != nil || said.Error == nil || c.rpc != (said.Version != "") {
		return nil, status
	}
	if !c.rpc && len(said.Error.Details) == 0 {
		return nil, status // without details the client sees no more than the status says
	}
	if c.rpc {
		resp.StatusCode, body = http.StatusOK, repair(body)
	}
	resp.Header.Set("Content-Type", "application/json")
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// asEvent turns a response of one JSON value into a stream with one event.
func (c *transport) asEvent(ctx context.Context, resp *http.Response) (*http.Response, error) {
	in := newBounded(resp.Body, c.reservation(ctx))
	defer func() { _ = in.Close() }()
	body, err := io.ReadAll(in)
	if err != nil {
		return nil, err
	}
	if c.rpc {
		body = repair(body)
	}
	var line bytes.Buffer
	line.WriteString("data: ")
	if json.Compact(&line, body) != nil {
		return nil, errGarbled
	}
	line.WriteString("\n\n")
	resp.Header.Set("Content-Type", "text/event-stream")
	resp.Body = io.NopCloser(&line)
	return resp, nil
}

// repaired repairs a small response.
func repaired(resp *http.Response) (*http.Response, error) {
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(repair(body)))
	return resp, nil
}

// repair removes data from a JSON-RPC error unless it is a list of objects: the client would not
// understand the error otherwise.
func repair(body []byte) []byte {
	if len(body) > maxFault || !bytes.Contains(body, []byte(`"error"`)) {
		return body
	}
	var response struct {
		JSONRPC string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   *struct {
			Code    int64           `json:"code"`
			Message string          `json:"message"`
			Data    json.RawMessage `json:"data,omitempty"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &response) != nil || response.Error == nil {
		return body
	}
	var list []map[string]any
	if len(response.Error.Data) == 0 || json.Unmarshal(response.Error.Data, &list) == nil {
		return body
	}
	response.Error.Data = nil
	fixed, err := json.Marshal(response)
	if err != nil {
		return body
	}
	return fixed
}

// reservation is the memory of a response, or of one event of a stream.
type reservation struct {
	pool    *budget.Pool
	owner   budget.Owner
	ctx     context.Context // of the request, as long as its body is read
	account *budget.Account // nil: nothing is held
	held    int64

	// expected is the size of the whole that the remote has announced, or less than 1. With it, a response
	// takes its memory in few steps: two that take it step by step could wait for each other.
	expected int64

	most  time.Duration // how long memory is held while more is read
	end   func()        // ends the reading after that time; nil: it has no end
	until time.Time     // when it ends, without the time in which it waited for memory
	read  atomic.Int64  // bytes, which put off the end
	timer *ending       // nil: nothing is held
	late  atomic.Bool   // the time is over
}

// holdRead takes memory for n bytes that were read, and for what they take decoded.
func (r *reservation) holdRead(n, decoded int64) error {
	r.read.Store(n)
	return r.hold(n + decoded)
}

// hold takes memory for n bytes in all.
func (r *reservation) hold(n int64) error {
	if n <= unreserved || n <= r.held {
		return nil
	}
	if n > maxHeld {
		return errTooMany // the text alone may have maxBody bytes
	}
	if r.account == nil {
		r.account = &budget.Account{Pool: r.pool, Owner: r.owner}
		r.until = time.Now().Add(r.most)
	}
	r.stopTimer() // the remote does not pay for the wait
	if in, ok := r.ctx.Value(intakeKey{}).(*intake); !ok || !in.repeatable {
		r.account.Insist() // the remote has done its work already
	}
	start := time.Now()
	more := min(max(n, 4*unreserved, r.ahead(n)), maxHeld) - r.held
	if err := r.account.Hold(r.ctx, more); err != nil {
		return err
	}
	r.held += more
	r.until = r.until.Add(time.Since(start))
	if r.end != nil {
		r.startTimer(r.until)
	}
	return nil
}

// startTimer ends the reading at the given time, or later if bytes are read until then; see slowRate.
func (r *reservation) startTimer(until time.Time) {
	left := func() time.Duration {
		return time.Until(until) + time.Duration(r.read.Load())*time.Second/slowRate
	}
	t := &ending{}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.timer = time.AfterFunc(left(), func() {
		if t.over(left) {
			r.late.Store(true)
			r.end()
		}
	})
	r.timer = t
}

// ahead returns how much memory to take when n bytes are needed. An announced size counts in
// proportion to what has come: a lie must not hold memory.
func (r *reservation) ahead(n int64) int64 {
	if r.expected > 0 {
		return max(n+min(n/8, 1<<20), min(r.expected, 8*n))
	}
	return 2 * r.held
}

// shrink gives back what is held beyond n bytes.
func (r *reservation) shrink(n int64) {
	if r.account != nil && r.held > n {
		r.account.Drop(r.held - n)
		r.held = n
	}
}

// fault returns the error of a reading. That of one which has taken too long says so.
func (r *reservation) fault(err error) error {
	if err != nil && r.late.Load() {
		return errSilent
	}
	return err
}

func (r *reservation) stopTimer() {
	if r.timer != nil {
		r.timer.stop()
		r.timer = nil
	}
}

// ending is a timer that decides when it fires whether it has to run longer. It can be stopped while it
// decides.
type ending struct {
	mu    sync.Mutex
	timer *time.Timer // nil: stopped
}

// over reports whether the time is over. Otherwise the timer fires again after what is left.
func (t *ending) over(left func() time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer == nil {
		return false
	}
	more := left()
	if more > 0 {
		t.timer.Reset(more)
	}
	return more <= 0
}

func (t *ending) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.timer.Stop()
	t.timer = nil
}

// pass passes n bytes that were read on, with their memory.
func (r *reservation) pass(n int64) {
	r.stopTimer()
	addIntake(r.ctx, n, r.account)
	r.account, r.held = nil, 0
}

// drop releases the memory of what is not used.
func (r *reservation) drop() {
	r.stopTimer()
	r.account.Close()
	r.account, r.held = nil, 0
}

// bounded is the body of a response that is not a stream.
type bounded struct {
	in     io.ReadCloser
	left   int64
	read   int64
	scale  scale
	memory *reservation
	failed error
}

func newBounded(in io.ReadCloser, memory *reservation) *bounded {
	b := &bounded{in: in, left: maxBody, memory: memory}
	b.memory.end = func() { _ = in.Close() }
	return b
}

// Read implements io.Reader. It returns no bytes together with an error of its own, and repeats that
// error: a decoder ignores an error after a complete value.
func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		b.failed = errTooLarge
	}
	if b.failed != nil {
		return 0, b.failed
	}
	n, err := b.in.Read(p[:min(int64(len(p)), b.left)])
	err = b.memory.fault(err)
	b.left -= int64(n)
	b.read += int64(n)
	b.scale.add(p[:n])
	if b.failed = b.memory.holdRead(b.read, b.scale.weight()); b.failed != nil {
		return 0, b.failed
	}
	return n, err
}

func (b *bounded) Close() error {
	b.memory.pass(b.read)
	b.read = 0
	return b.in.Close()
}

// events is the body of a stream. Each event is bounded. Only the data of events is passed on: the
// client would skip the rest, and never take its memory.
type events struct {
	in     *bufio.Reader
	body   io.Closer
	rpc    bool
	memory *reservation

	line  []byte // that is left to be read
	keep  []byte // the buffer of line
	event int64  // bytes of the data of the event so far
	scale scale  // of the event
}

func newEvents(body io.ReadCloser, rpc bool, memory *reservation) *events {
	e := &events{in: bufio.NewReader(body), body: body, rpc: rpc, memory: memory}
	e.memory.end = func() { _ = body.Close() }
	return e
}

func (e *events) Read(p []byte) (int, error) {
	for len(e.line) == 0 {
		if err := e.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, e.line)
	e.line = e.line[n:]
	return n, nil
}

// next reads a line.
func (e *events) next() error {
	e.keep = e.keep[:0]
	for {
		part, err := e.in.ReadSlice('\n')
		err = e.memory.fault(err)
		e.keep = append(e.keep, part...)
		read := e.event + int64(len(e.keep))
		if read > maxBody {
			return errTooLarge
		}
		if herr := e.memory.holdRead(read, e.scale.weight()); herr != nil {
			return herr
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil && len(e.keep) == 0 {
			if errors.Is(err, io.EOF) && e.event > 0 { // without an empty line at its end, which the client does not need
				e.memory.pass(e.event)
				e.event = 0
			}
			return err
		}
		break
	}
	line := bytes.TrimRight(e.keep, "\r\n")
	if len(line) == 0 {
		e.end()
		return nil
	}
	data, ok := bytes.CutPrefix(line, []byte("data:"))
	if !ok || len(bytes.TrimSpace(data)) == 0 {
		return nil
	}
	e.event += int64(len(e.keep))
	e.scale.add(data)
	if err := e.memory.holdRead(e.event, e.scale.weight()); err != nil {
		return err
	}
	if e.rpc {
		if fixed := repair(data); !bytes.Equal(fixed, data) {
			e.line = append(append([]byte("data:"), fixed...), '\n')
			return nil
		}
	}
	e.line = e.keep
	return nil
}

// end ends an event, and passes it on unless it is empty.
func (e *events) end() {
	if e.event == 0 {
		e.memory.drop()
	} else {
		e.memory.pass(e.event)
		e.line = []byte("\n")
	}
	e.event, e.scale = 0, scale{}
	if cap(e.keep) > unreserved {
		e.keep = nil
	}
}

func (e *events) Close() error {
	e.memory.drop()
	return e.body.Close()
}
