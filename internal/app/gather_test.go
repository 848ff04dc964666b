package app

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/httpx"
)

// gathered is what a connection knows of a response when its handler has written it.
type gathered struct {
	held      bool // the first part waits for the second
	announced bool // no part was written
}

// gatheringServer serves bodies of ?size= bytes with a status. The last byte is missing if the query
// has "short"; it can also have "flush" and "panic", for what the handler does then.
func gatheringServer(t *testing.T) (srv *httptest.Server, states <-chan gathered) {
	t.Helper()
	all := make(chan gathered, 1)
	router := httpx.NewRouter(httpx.Options{Logger: slog.New(slog.DiscardHandler)})
	router.HandlePublic("GET /", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		size, err := strconv.Atoi(q.Get("size"))
		if err != nil {
			t.Error(err)
		}
		w.Header()["Content-Length"] = []string{strconv.Itoa(size)}
		if status, err := strconv.Atoi(q.Get("status")); err == nil {
			w.WriteHeader(status)
		}
		body := bytes.Repeat([]byte("x"), size)
		if q.Has("short") {
			body = body[:size-1]
		}
		_, _ = w.Write(body)
		if q.Has("flush") {
			_ = http.NewResponseController(w).Flush()
		}
		c, ok := r.Context().Value(connKey{}).(*guarded)
		if !ok {
			t.Error("no connection")
			return
		}
		if r.ProtoMajor > 1 {
			all <- gathered{announced: c.gathering.body > 0} // the rest may be written meanwhile
		} else {
			all <- gathered{c.gathering.held != nil, c.gathering.body > 0}
		}
		if q.Has("panic") {
			panic(http.ErrAbortHandler)
		}
	}))
	l, err := listen(t.Context(), "127.0.0.1:0", "--listen")
	if err != nil {
		t.Fatal(err)
	}
	g := newGuard(l, 0, slog.New(slog.DiscardHandler))
	return &httptest.Server{
		Listener: g, EnableHTTP2: true,
		Config: &http.Server{
			Handler: g.watch(router), ConnContext: withConn, Protocols: protocols(), MaxHeaderBytes: maxHeaderBytes,
			ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo), ReadHeaderTimeout: time.Minute,
		},
	}, all
}

// A response that is larger than the buffer of net/http is sent in one write. All on one
// connection, so that what one response leaves behind would show in the next.
func TestGather(t *testing.T) {
	srv, states := gatheringServer(t)
	srv.Start()
	defer srv.Close()
	client := srv.Client()
	client.Timeout = time.Minute
	get := func(method, query string) (int, bool) {
		t.Helper()
		n, err := getBody(t, client, method, srv.URL+query)
		if err != nil {
			t.Fatal(err)
		}
		return n, (<-states).held
	}
	for _, size := range []int{1, 2047, 2048, 3500, 4000, 4095, 4096, 4097, 5000, 7000} {
		for range 2 {
			query := fmt.Sprintf("/?size=%d", size)
			n, waits := get(http.MethodGet, query)
			if n != size || waits != (size >= 4000) {
				t.Errorf("body of %d bytes: got %d, first part held: %t", size, n, waits)
			}
			if n, waits := get(http.MethodHead, query); n != 0 || waits {
				t.Errorf("HEAD of %d bytes: got %d, held: %t", size, n, waits)
			}
			if n, waits := get(http.MethodGet, query+"&flush"); n != size || waits {
				t.Errorf("body of %d bytes and a flush: got %d, held: %t", size, n, waits)
			}
		}
	}
	// Every size near the end of the buffer, where it depends on the header's size whether there is
	// a second part.
	for size := 3400; size < 4100; size++ {
		if n, _ := get(http.MethodGet, fmt.Sprintf("/?size=%d", size)); n != size {
			t.Errorf("body of %d bytes: got %d", size, n)
		}
	}
	for _, size := range []int{9000, 1 << 20} { // net/http sends the second part at once
		if n, waits := get(http.MethodGet, fmt.Sprintf("/?size=%d", size)); n != size || waits {
			t.Errorf("body of %d bytes: got %d, held: %t", size, n, waits)
		}
	}
	for _, status := range []int{http.StatusNoContent, http.StatusNotModified} {
		if n, waits := get(http.MethodGet, fmt.Sprintf("/?size=5000&status=%d", status)); n != 0 || waits {
			t.Errorf("%d: got %d bytes, held: %t", status, n, waits)
		}
		if n, waits := get(http.MethodGet, "/?size=5000"); n != 5000 || !waits {
			t.Errorf("after status %d: got %d bytes, held: %t", status, n, waits)
		}
	}
}

// getBody returns the size of the response's body, whatever its status.
func getBody(t *testing.T, client *http.Client, method, url string) (int, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	res, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return len(body), err
}

// A response that breaks off ends its connection, and never lacks its end silently. What the handler
// had written arrives.
func TestGatherBrokenOff(t *testing.T) {
	srv, states := gatheringServer(t)
	srv.Start()
	defer srv.Close()
	client := srv.Client()
	client.Timeout = time.Minute
	for _, size := range []int{2048, 2500, 5000, 500_000} {
		n, err := getBody(t, client, http.MethodGet, fmt.Sprintf("%s/?size=%d&short", srv.URL, size))
		if n != size-1 || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%d bytes without the last: got %d, %v", size, n, err)
		}
		if got := <-states; got.announced || got.held {
			t.Errorf("%d bytes without the last: %+v", size, got)
		}
		// The handler panics when it has written all, so net/http sends what it has and ends the
		// connection. The client may have the response as a whole.
		n, err = getBody(t, client, http.MethodGet, fmt.Sprintf("%s/?size=%d&panic", srv.URL, size))
		if n != size && err == nil {
			t.Errorf("%d bytes and a panic: got %d without an error", size, n)
		}
		<-states
		if n, err = getBody(t, client, http.MethodGet, fmt.Sprintf("%s/?size=%d", srv.URL, size)); n != size || err != nil {
			t.Errorf("%d bytes on the next connection: got %d, %v", size, n, err)
		}
		<-states
	}
}

// Nothing is announced to connections that see other bytes: those with TLS or HTTP/2.
func TestGatherOnlyHTTP1(t *testing.T) {
	for _, secure := range []bool{false, true} {
		for _, version := range []int{1, 2} {
			t.Run(fmt.Sprintf("HTTP/%d, TLS: %t", version, secure), func(t *testing.T) {
				srv, states := gatheringServer(t)
				transport := &http.Transport{Protocols: new(http.Protocols)}
				if secure {
					srv.StartTLS()
					pool := x509.NewCertPool()
					pool.AddCert(srv.Certificate())
					transport.TLSClientConfig = &tls.Config{RootCAs: pool}
				} else {
					srv.Start()
				}
				defer srv.Close()
				defer transport.CloseIdleConnections()
				transport.Protocols.SetHTTP1(version == 1)
				transport.Protocols.SetHTTP2(version == 2)
				transport.Protocols.SetUnencryptedHTTP2(version == 2)
				client := &http.Client{Transport: transport, Timeout: time.Minute}
				for _, size := range []int{2048, 5000, 50_000} {
					n, err := getBody(t, client, http.MethodGet, fmt.Sprintf("%s/?size=%d", srv.URL, size))
					if n != size || err != nil {
						t.Errorf("%d bytes: got %d, %v", size, n, err)
					}
					plain := version == 1 && !secure
					want := gathered{held: plain && size == 5000, announced: plain && size == 2048}
					if got := <-states; got != want {
						t.Errorf("%d bytes: got %+v, want %+v", size, got, want)
					}
				}
			})
		}
	}
}

// Responses to requests that arrived together come in order, also to a client of HTTP/1.0.
func TestGatherPipelined(t *testing.T) {
	srv, states := gatheringServer(t)
	srv.Start()
	defer srv.Close()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	sizes := []int{5000, 2048, 4096, 7000, 100}
	var requests strings.Builder
	for _, size := range sizes[:4] {
		fmt.Fprintf(&requests, "GET /?size=%d HTTP/1.1\r\nHost: parley\r\n\r\n", size)
	}
	fmt.Fprintf(&requests, "GET /?size=%d HTTP/1.0\r\n\r\n", sizes[4])
	if _, err := io.WriteString(conn, requests.String()); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(conn)
	for _, size := range sizes {
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		if len(body) != size || err != nil {
			t.Errorf("got %d bytes, %v; want %d", len(body), err, size)
		}
		<-states
	}
	if n, err := io.Copy(io.Discard, in); n > 0 || err != nil {
		t.Errorf("after the response of HTTP/1.0: %d bytes, %v", n, err)
	}
}

// What is sent is what was written, in order, with the counts that net/http expects.
func TestGatherWrites(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := new(net.Dialer).DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	server, _ := accepted.(*net.TCPConn)
	c := &guarded{TCPConn: server}
	header := "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n"
	for _, parts := range [][]string{
		{header + "abcdef"},     // complete
		{header + "abc", "def"}, // held
		{header, "abcdef"},      // held
		{"HTTP/1.1 200 OK\r\nCon", "tent-Length: 6\r\n\r\nabcdef"}, // no end of the header: not held
	} {
		c.Gather(6)
		var want string
		for i, p := range parts {
			if n, err := c.Write([]byte(p)); n != len(p) || err != nil {
				t.Fatal(n, err)
			}
			want += p
			waits := c.gathering.held != nil
			if should := i == 0 && len(parts) == 2 && bytes.Contains([]byte(p), endOfHeader); waits != should {
				t.Errorf("%q, part %d: held: %t, want %t", parts, i, waits, should)
			}
		}
		got := make([]byte, len(want))
		if _, err := io.ReadFull(client, got); err != nil || string(got) != want {
			t.Fatalf("got %q, %v; want %q", got, err, want)
		}
	}

	// A client that does not read: the second part breaks off.
	const size = 64 << 20
	c.Gather(size)
	if _, err := c.Write([]byte(header)); err != nil {
		t.Fatal(err)
	}
	body, got := make([]byte, size), make([]byte, 1)
	begun := make(chan error, 1)
	go func() {
		_, err := io.ReadFull(client, got)
		begun <- errors.Join(err, server.SetWriteDeadline(time.Unix(1, 0)))
	}()
	written, err := c.Write(body)
	if err := <-begun; err != nil {
		t.Fatal(err)
	}
	if written <= 0 || written >= size || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("second part to a client that does not read: %d, %v", written, err)
	}
	if err := server.SetWriteDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	got = append(got, make([]byte, len(header)+written-1)...)
	if _, err := io.ReadFull(client, got[1:]); err != nil || string(got[:len(header)]) != header {
		t.Fatal(err)
	}

	c.Gather(6)
	if _, err := c.Write([]byte(header)); err != nil {
		t.Fatal(err)
	}
	server.Close()
	if n, err := c.Write([]byte("abcdef")); n != 0 || err == nil {
		t.Errorf("second part to a closed connection: %d, %v", n, err)
	}
}
