package rest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Tests on a real connection: bodies that end early, and canceled requests.
func TestABrokenBodyIsTheClientsFault(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.admin("acme", "user:ada")
	srv := httptest.NewServer(w.handler)
	t.Cleanup(srv.Close)
	for _, c := range []struct {
		rule, framing, body string
		status              int
	}{
		{"shorter than announced", "Content-Length: 500", `{"title":"a"`, 400},
		{"a chunk that is none", "Transfer-Encoding: chunked", "zz\r\n{}\r\n", 400},
		{
			"chunks over the limit", "Transfer-Encoding: chunked",
			fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", 300<<10, strings.Repeat(" ", 300<<10)), 413,
		},
		{
			"chunks that are fine", "Transfer-Encoding: chunked",
			fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(submission), submission), 201,
		},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			conn, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", srv.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			go func() { // the server may respond before it has read everything
				_, _ = fmt.Fprintf(conn,
					"POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n%s\r\n\r\n%s",
					proposals, ada, c.framing, c.body)
				if c.status == http.StatusBadRequest { // a complete request would look canceled
					_ = conn.(*net.TCPConn).CloseWrite()
				}
			}()
			res, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(res.Body)
			if res.StatusCode != c.status {
				t.Errorf("got %d, want %d: %s", res.StatusCode, c.status, body)
			}
		})
	}
}

func TestACachedAndAFreshPageReadTheSameOverTheWire(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.admin("acme", "user:ada")
	for range 25 {
		w.submit(ada, "acme")
	}
	srv := httptest.NewServer(w.handler)
	t.Cleanup(srv.Close)
	get := func(method string) (string, http.Header) {
		r, err := http.NewRequestWithContext(context.Background(), method, srv.URL+proposals, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+ada)
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		body, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != 200 {
			t.Fatalf("got %v %v, want no error, StatusCode 200", res.StatusCode, err)
		}
		return string(body), res.Header
	}
	first, firstHeader := get("GET")
	second, secondHeader := get("GET")
	if first != second || !strings.Contains(first, `"total":25`) {
		t.Errorf("got %s\n%s, want first %v, containing \"total\":25", first, second, second)
	}
	for _, h := range []string{
		"Content-Type", "Link", "Cache-Control", "Vary", "X-Content-Type-Options",
		"Content-Security-Policy",
	} {
		if a, b := fmt.Sprint(firstHeader.Values(h)), fmt.Sprint(secondHeader.Values(h)); a != b {
			t.Errorf("%s: got %s, want %s as the first time", h, b, a)
		}
	}
	if body, _ := get("HEAD"); body != "" {
		t.Errorf("HEAD has a body: got %q, want empty", body)
	}
}
