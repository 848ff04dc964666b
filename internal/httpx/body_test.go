package httpx

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestCompressedBodiesAreRefused(t *testing.T) {
	t.Parallel()
	rt := NewRouter(Options{Authenticator: known{}, Logger: quiet()})
	rt.HandleFunc("POST /x", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	for encoding, want := range map[string]int{
		"gzip": 415, "deflate": 415, "br": 415, "zstd, identity": 415, "identity": 204, "Identity": 204,
	} {
		res := send(rt, http.MethodPost, "/x", "Content-Encoding", encoding)
		if res.Code != want || want == 415 &&
			(problemOf(t, res).Code != "request.encoded" || res.Header().Get("Accept-Encoding") != "identity") {
			t.Errorf("%s: status = %d, want %d: %s", encoding, res.Code, want, res.Body)
		}
	}
}

// A body with a declared length over the limit is refused before the client sends it.
func TestALargeBodyIsRefusedBeforeItIsSent(t *testing.T) {
	t.Parallel()
	rt := NewRouter(Options{Authenticator: known{}, Logger: quiet()})
	rt.HandleFunc("POST /x", func(w http.ResponseWriter, r *http.Request) {
		if err := CheckLength(r, 1000); err != nil {
			WriteError(w, r, err)
			return
		}
		_, _ = bufio.NewReader(r.Body).ReadByte()
		w.WriteHeader(http.StatusNoContent)
	})
	ts := httptest.NewServer(rt)
	defer ts.Close()
	for length, want := range map[int]string{1000: "100 ", 1001: "413 "} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(ts.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
		fmt.Fprintf(conn, "POST /x HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", length)
		line, err := bufio.NewReader(conn).ReadString('\n')
		if err != nil || !strings.HasPrefix(line, "HTTP/1.1 "+want) {
			t.Errorf("%d bytes: got %q, %v, want %s", length, line, err, want)
		}
		_ = conn.Close()
	}
}
