package app

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"testing"

	"github.com/parley-dev/parley/internal/httpx"
)

// gatheringServer serves bodies of ?size= bytes. held tells of each whether its first part waits
// for the second when the handler has written it.
func gatheringServer(t *testing.T) (url string, held <-chan bool) {
	t.Helper()
	holds := make(chan bool, 1)
	router := httpx.NewRouter(httpx.Options{Logger: slog.New(slog.DiscardHandler)})
	router.HandlePublic("GET /", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		size, err := strconv.Atoi(r.URL.Query().Get("size"))
		if err != nil {
			t.Error(err)
		}
		if r.URL.Query().Has("status") {
			w.WriteHeader(http.StatusNotModified)
		} else {
			w.Header()["Content-Length"] = []string{strconv.Itoa(size)}
		}
		body := bytes.Repeat([]byte("x"), size)
		if r.URL.Query().Has("short") {
			body = body[:size-1]
		}
		_, _ = w.Write(body)
		c, _ := r.Context().Value(connKey{}).(*guarded)
		holds <- c != nil && c.response.held != nil
	}))
	l, err := listen(t.Context(), "127.0.0.1:0", "--listen")
	if err != nil {
		t.Fatal(err)
	}
	g := newGuard(l, 0, slog.New(slog.DiscardHandler))
	srv := &http.Server{
		Handler: g.watch(router), ConnContext: withConn, Protocols: protocols(), MaxHeaderBytes: maxHeaderBytes,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo),
	} // a test
	go srv.Serve(g)
	t.Cleanup(func() { srv.Close() })
	return "http://" + l.Addr().String(), holds
}

// A response that is larger than the buffer of net/http is sent in one write. All on one
// connection, so that what one response leaves behind would show in the next.
func TestGather(t *testing.T) {
	url, held := gatheringServer(t)
	get := func(method, query string) (int, bool) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, url+query, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return len(body), <-held
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
	if n, waits := get(http.MethodGet, "/?size=5000&status"); n != 0 || waits {
		t.Errorf("304: got %d bytes, held: %t", n, waits)
	}
	if n, waits := get(http.MethodGet, "/?size=5000"); n != 5000 || !waits {
		t.Errorf("after the 304: got %d bytes, held: %t", n, waits)
	}
}

// A response that breaks off ends its connection, and never lacks its end silently.
func TestGatherBrokenOff(t *testing.T) {
	url, held := gatheringServer(t)
	for _, query := range []string{"/?size=5000&short", "/?size=500000&short"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+query, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultClient.Do(req)
		if err == nil {
			_, err = io.ReadAll(res.Body)
			res.Body.Close()
		}
		if err == nil {
			t.Errorf("%s: no error", query)
		}
		<-held
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
			waits := c.response.held != nil
			if should := i == 0 && len(parts) == 2 && bytes.Contains([]byte(p), endOfHeader); waits != should {
				t.Errorf("%q, part %d: held: %t, want %t", parts, i, waits, should)
			}
		}
		got := make([]byte, len(want))
		if _, err := io.ReadFull(client, got); err != nil || string(got) != want {
			t.Fatalf("got %q, %v; want %q", got, err, want)
		}
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
