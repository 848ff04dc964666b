package pgtest

import (
	"context"
	"net"
	"net/url"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
)

// Proxy is a TCP port that forwards to a server, and can fail like a network.
type Proxy struct {
	target string // the server's socket
	l      net.Listener

	mu    sync.Mutex
	conns map[net.Conn]struct{}
	// passes is closed while bytes pass.
	passes chan struct{}

	received atomic.Int64
}

// NewProxy starts a proxy for the database at rawURL, which URL returned.
func NewProxy(t testing.TB, rawURL string) *Proxy {
	t.Helper()
	u, err := url.Parse(rawURL)
	if err != nil {
		t.Fatal(err)
	}
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{
		target: filepath.Join(u.Query().Get("host"), ".s.PGSQL.5432"), l: l,
		conns: map[net.Conn]struct{}{}, passes: make(chan struct{}),
	}
	close(p.passes)
	go p.accept()
	t.Cleanup(func() {
		_ = l.Close()
		p.Resume()
		p.Cut()
	})
	return p
}

// Address returns host:port of the proxy.
func (p *Proxy) Address() string { return p.l.Addr().String() }

// URL returns rawURL through the proxy.
func (p *Proxy) URL(t testing.TB, rawURL string) string {
	t.Helper()
	u, err := url.Parse(rawURL)
	if err != nil {
		t.Fatal(err)
	}
	u.Host = p.Address()
	q := u.Query()
	q.Del("host")
	u.RawQuery = q.Encode()
	return u.String()
}

// Received returns how many bytes the server has sent.
func (p *Proxy) Received() int64 { return p.received.Load() }

// Silence holds back all bytes from now on, in both directions. Connections stay open, and new
// ones are accepted.
func (p *Proxy) Silence() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.passes = make(chan struct{})
}

// Resume lets bytes pass again.
func (p *Proxy) Resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.passes:
	default:
		close(p.passes)
	}
}

// Cut closes all connections.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
}

func (p *Proxy) gate() chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.passes
}

func (p *Proxy) accept() {
	for {
		in, err := p.l.Accept()
		if err != nil {
			return
		}
		go p.serve(in)
	}
}

func (p *Proxy) serve(in net.Conn) {
	out, err := net.Dial("unix", p.target)
	if err != nil {
		_ = in.Close()
		return
	}
	p.mu.Lock()
	p.conns[in], p.conns[out] = struct{}{}, struct{}{}
	p.mu.Unlock()
	var wg sync.WaitGroup
	wg.Go(func() { p.copy(in, out) })
	wg.Go(func() { p.copy(out, in) })
	wg.Wait()
	p.mu.Lock()
	delete(p.conns, in)
	delete(p.conns, out)
	p.mu.Unlock()
}

func (p *Proxy) copy(to, from net.Conn) {
	defer func() { _, _ = to.Close(), from.Close() }()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if from.RemoteAddr().Network() == "unix" {
			p.received.Add(int64(n))
		}
		<-p.gate()
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
