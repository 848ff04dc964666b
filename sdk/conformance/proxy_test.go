package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// operation is what a request of a worker does. A request may do several things at once.
type operation uint8

const (
	claims   operation = 1 << iota // asks for tasks
	results                        // reports the end of a lease: completed, failed, asked …
	progress                       // reports content before the end
	beats                          // keeps a lease alive
	returns                        // hands a task back
	other                          // everything else, such as friction
	anything operation = 1<<8 - 1
)

// transfer is one request on its way through the proxy.
type transfer struct {
	does   operation
	leases []string // those that it names
	at     time.Time
	fault  string // the injected one; "" if none

	proxy *proxy
	w     http.ResponseWriter
	r     *http.Request
	body  []byte
}

// fault carries out a transfer in a faulty way.
type fault struct {
	name string
	do   func(x *transfer)
}

// rule chooses the fault of a transfer; nil: none.
type rule func(x *transfer) *fault

// proxy forwards requests to a server that may restart, and injects faults.
type proxy struct {
	URL    string
	target func() string // URL of the server
	out    *http.Transport

	mu     sync.Mutex
	rule   rule
	log    []*transfer
	server *http.Server
}

func newProxy(t *testing.T, target func() string) *proxy {
	t.Helper()
	p := &proxy{target: target, out: &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.URL = "http://" + l.Addr().String()
	p.serve(l)
	t.Cleanup(func() {
		p.down()
		p.out.CloseIdleConnections()
	})
	return p
}

func (p *proxy) serve(l net.Listener) {
	s := &http.Server{Handler: p}
	p.mu.Lock()
	p.server = s
	p.mu.Unlock()
	go func() { _ = s.Serve(l) }()
}

// down closes all connections and refuses new ones.
func (p *proxy) down() {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.server.Close()
}

// up accepts connections again.
func (p *proxy) up(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp", strings.TrimPrefix(p.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	p.serve(l)
}

// inject sets the rule for later requests.
func (p *proxy) inject(r rule) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rule = r
}

// seen returns the transfers so far that do at least one of these operations, in order of arrival.
func (p *proxy) seen(what operation) (out []*transfer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, x := range p.log {
		if x.does&what != 0 {
			out = append(out, x)
		}
	}
	return out
}

// faults counts the transfers with a fault that do at least one of these operations.
func (p *proxy) faults(what operation) (n int) {
	for _, x := range p.seen(what) {
		if x.fault != "" {
			n++
		}
	}
	return n
}

// ServeHTTP implements http.Handler.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	x := &transfer{at: time.Now(), proxy: p, w: w, r: r, body: body}
	x.classify()
	p.mu.Lock()
	var f *fault
	if p.rule != nil {
		f = p.rule(x)
	}
	if f != nil {
		x.fault = f.name
	}
	p.log = append(p.log, x)
	p.mu.Unlock()
	if f == nil {
		x.answer(x.forward())
		return
	}
	f.do(x)
}

// workerBody has the members of all requests of workers that matter here.
type workerBody struct {
	report
	Claim   *json.RawMessage
	Reports []struct {
		Lease  string
		Report report
	}
}

type report struct {
	Status    string
	Artifacts json.RawMessage
}

func (r *report) does() operation {
	switch {
	case r.Status != "" && r.Status != "working":
		return results
	case r.Status != "" || r.Artifacts != nil:
		return progress
	}
	return beats
}

// classify finds out what the request does.
func (x *transfer) classify() {
	path := strings.Split(strings.TrimPrefix(x.r.URL.Path, "/api/v1/agents/"), "/") // agent, operation …
	var b workerBody
	if len(path) < 2 || len(x.body) > 0 && json.Unmarshal(x.body, &b) != nil {
		x.does = other
		return
	}
	switch {
	case path[1] == "claim":
		x.does = claims
	case path[1] == "leases" && x.r.Method == http.MethodDelete:
		x.does, x.leases = returns, path[2:]
	case path[1] == "leases":
		x.does, x.leases = b.does(), path[2:]
	case path[1] == "work":
		if b.Claim != nil {
			x.does |= claims
		}
		for _, r := range b.Reports {
			x.does |= r.Report.does()
			x.leases = append(x.leases, r.Lease)
		}
	default:
		x.does = other
	}
}

// response is a whole response of the server.
type response struct {
	status int
	header http.Header
	body   []byte
}

// forward sends the request to the server and reads the response. It returns nil if none arrived.
func (x *transfer) forward() *response {
	ctx, cancel := context.WithCancel(x.r.Context()) // ends when the worker closes the connection
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, x.r.Method, x.proxy.target()+x.r.URL.RequestURI(), bytes.NewReader(x.body))
	if err != nil {
		return nil
	}
	req.Header = x.r.Header.Clone()
	req.Header.Del("Connection")
	res, err := x.proxy.out.RoundTrip(req)
	if err != nil {
		return nil
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return nil
	}
	return &response{res.StatusCode, res.Header, body}
}

// answer passes the response on to the worker.
func (x *transfer) answer(res *response) {
	x.head(res)
	_, _ = x.w.Write(res.body)
}

func (x *transfer) head(res *response) {
	if res == nil {
		panic(http.ErrAbortHandler)
	}
	for name, values := range res.header {
		if name != "Connection" && name != "Transfer-Encoding" {
			x.w.Header()[name] = values
		}
	}
	if res.status != http.StatusNoContent {
		x.w.Header().Set("Content-Length", strconv.Itoa(len(res.body)))
	}
	x.w.WriteHeader(res.status)
}

var (
	// lose carries the request out, and closes the connection without a response.
	lose = &fault{"lose", func(x *transfer) {
		x.forward()
		panic(http.ErrAbortHandler)
	}}
	// sever closes the connection before the server gets the request.
	sever = &fault{"sever", func(*transfer) { panic(http.ErrAbortHandler) }}
	// snap closes the connection after the response, without announcing it.
	snap = &fault{"snap", func(x *transfer) {
		x.answer(x.forward())
		_ = http.NewResponseController(x.w).Flush()
		panic(http.ErrAbortHandler)
	}}
	// trickle sends the response in small pieces.
	trickle = &fault{"trickle", func(x *transfer) {
		const pieces, pause = 20, 10 * time.Millisecond
		res := x.forward()
		x.head(res)
		for rest := res.body; len(rest) > 0; {
			n := min(len(rest), len(res.body)/pieces+1)
			_, err := x.w.Write(rest[:n])
			if err = errors.Join(err, http.NewResponseController(x.w).Flush()); err != nil {
				panic(http.ErrAbortHandler)
			}
			rest = rest[n:]
			time.Sleep(pause)
		}
	}}
)

// hang keeps the worker waiting until the channel is closed, and then closes the connection. The
// server never gets the request.
func hang(until <-chan struct{}) *fault {
	return &fault{"hang", func(x *transfer) {
		select {
		case <-until:
		case <-x.r.Context().Done():
		}
		panic(http.ErrAbortHandler)
	}}
}

// refuse responds in place of the server.
func refuse(status int, code string, after time.Duration) *fault {
	return &fault{code, func(x *transfer) {
		x.w.Header().Set("Content-Type", "application/problem+json")
		x.w.Header().Set("Retry-After", strconv.Itoa(int(after/time.Second)))
		x.w.WriteHeader(status)
		_ = json.NewEncoder(x.w).Encode(map[string]any{"status": status, "code": code, "title": code, "detail": code})
	}}
}

// always applies the fault to every transfer that does one of these operations.
func always(what operation, f *fault) rule { return every(1, what, f) }

// every applies the fault to every n-th transfer that does one of these operations, from the first
// one on.
func every(n int, what operation, f *fault) rule {
	count := 0
	return func(x *transfer) *fault {
		if x.does&what == 0 {
			return nil
		}
		count++
		if (count-1)%n == 0 {
			return f
		}
		return nil
	}
}

// first applies the faults, one after another, to the first transfers that do one of these
// operations.
func first(what operation, faults ...*fault) rule {
	return func(x *transfer) *fault {
		if x.does&what == 0 || len(faults) == 0 {
			return nil
		}
		f := faults[0]
		faults = faults[1:]
		return f
	}
}

// either applies the first rule that chooses a fault.
func either(rules ...rule) rule {
	return func(x *transfer) *fault {
		for _, r := range rules {
			if f := r(x); f != nil {
				return f
			}
		}
		return nil
	}
}
