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

	"github.com/parley-dev/parley/internal/budget"
)

// Bounds of what is read from a remote, in bytes.
const (
	// maxBody is what a task may hold, and room for what the remote's JSON has beside it.
	maxBody = 24 << 20
	// maxFault is how much is read of a response that is an error.
	maxFault = 64 << 10
	// unreserved is how much is read without a share of the memory for requests.
	unreserved = 64 << 10
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

func (c *transport) reservation(ctx context.Context) reservation {
	return reservation{pool: c.memory, owner: c.owner, ctx: ctx}
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
		resp.Body = &events{in: bufio.NewReader(resp.Body), body: resp.Body, rpc: c.rpc, memory: c.reservation(r.Context())}
	case strings.Contains(r.Header.Get("Accept"), "text/event-stream"):
		// An error before the first event, or the only one.
		return c.asEvent(r.Context(), resp)
	default:
		resp.Body = &bounded{in: resp.Body, left: maxBody, memory: c.reservation(r.Context())}
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
	in := &bounded{in: resp.Body, left: maxBody, memory: c.reservation(ctx)}
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
}

// hold takes memory for n bytes in all.
func (r *reservation) hold(n int64) error {
	if n <= unreserved || n <= r.held {
		return nil
	}
	if r.account == nil {
		r.account = &budget.Account{Pool: r.pool, Owner: r.owner}
	}
	more := max(n, 2*r.held, 4*unreserved) - r.held
	if err := r.account.Hold(r.ctx, more); err != nil {
		return err
	}
	r.held += more
	return nil
}

// pass passes n bytes that were read on, with their memory.
func (r *reservation) pass(n int64) {
	addIntake(r.ctx, n, r.account)
	r.account, r.held = nil, 0
}

// drop releases the memory of what is not used.
func (r *reservation) drop() {
	r.account.Close()
	r.account, r.held = nil, 0
}

// bounded is the body of a response that is not a stream.
type bounded struct {
	in     io.ReadCloser
	left   int64
	read   int64
	memory reservation
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLarge
	}
	n, err := b.in.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	b.read += int64(n)
	if herr := b.memory.hold(b.read); herr != nil {
		return n, herr
	}
	return n, err
}

func (b *bounded) Close() error {
	b.memory.pass(b.read)
	b.read = 0
	return b.in.Close()
}

// events is the body of a stream. Each event is bounded; comments between events are not passed on.
type events struct {
	in     *bufio.Reader
	body   io.Closer
	rpc    bool
	memory reservation

	line  []byte // that is left to be read
	keep  []byte // the buffer of line
	event int64  // bytes of the event so far
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
		e.keep = append(e.keep, part...)
		e.event += int64(len(part))
		if e.event > maxBody {
			return errTooLarge
		}
		if herr := e.memory.hold(e.event); herr != nil {
			return herr
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil && len(e.keep) == 0 {
			return err
		}
		break
	}
	line := bytes.TrimRight(e.keep, "\r\n")
	switch {
	case len(line) == 0: // the end of an event
		e.memory.pass(e.event)
		e.event = 0
		if cap(e.keep) > unreserved {
			e.keep = nil
		}
		e.line = []byte("\n")
		return nil
	case line[0] == ':':
		e.event -= int64(len(e.keep))
		e.line = nil
		return nil
	}
	if rest, ok := bytes.CutPrefix(line, []byte("data:")); ok && e.rpc {
		if fixed := repair(rest); !bytes.Equal(fixed, rest) {
			e.line = append(append([]byte("data:"), fixed...), '\n')
			return nil
		}
	}
	e.line = e.keep
	return nil
}

func (e *events) Close() error {
	e.memory.drop()
	return e.body.Close()
}
