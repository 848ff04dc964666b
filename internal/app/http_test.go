package app

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// What declares a body that is too large is refused on every interface before it sends it,
// and a compressed body is refused.
func TestBodiesThatAreNotTaken(t *testing.T) {
	t.Parallel()
	s := startServer(t, testConfig(t))
	defer func() { _ = s.Shutdown() }()
	key := s.first.Secret
	for _, path := range []string{
		"/api/v1/orgs/main/proposals", "/api/v1/orgs/main/members", "/a2a/echo", "/a2a/echo/message:send", "/mcp",
		"/oauth/token", "/oauth/introspect", "/oauth/revoke", "/oauth/register", "/login",
	} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL(), "http://"))
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
		fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"+
			"Expect: 100-continue\r\nContent-Length: 99999999\r\n\r\n", path, key)
		if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.HasPrefix(line, "HTTP/1.1 413 ") {
			t.Errorf("%s: %q %v", path, line, err)
		}
		_ = conn.Close()
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+path, strings.NewReader("x"))
		req.Header.Set("Authorization", "Bearer "+key)
		req.Header.Set("Content-Encoding", "gzip")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != http.StatusUnsupportedMediaType {
			t.Errorf("%s, compressed: %d", path, res.StatusCode)
		}
	}
	for path, media := range map[string]string{
		"/oauth/token":    "application/x-www-form-urlencoded",
		"/oauth/register": "application/json",
	} {
		body := io.MultiReader(strings.NewReader(`{"client_name":"`),
			strings.NewReader(strings.Repeat("x", 4<<20))) // of unknown length
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+path, body)
		req.Header.Set("Content-Type", media)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("%s, in chunks: %d", path, res.StatusCode)
		}
	}
}

// A page of a configured origin calls every interface of programs with a key.
func TestPagesOfOtherOrigins(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t)
	cfg.CORSOrigins = []string{"https://app.example"}
	s := startServer(t, cfg)
	defer func() { _ = s.Shutdown() }()
	send := func(method, path, origin, body string, headers ...string) *http.Response {
		req, _ := http.NewRequestWithContext(t.Context(), method, s.URL()+path, strings.NewReader(body))
		req.Header.Set("Origin", origin)
		for i := 0; i+1 < len(headers); i += 2 {
			req.Header.Set(headers[i], headers[i+1])
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		if res.Header.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%s allows cookies", path)
		}
		return res
	}
	bearer := "Bearer " + s.first.Secret
	ping := `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	for _, c := range []struct{ method, path, body string }{
		{"GET", "/api/v1/me", ""},
		{"POST", "/a2a/echo", `{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"id":"x"}}`},
		{"GET", "/a2a/echo/.well-known/agent-card.json", ""},
		{"POST", "/mcp", ping},
		{"POST", "/oauth/token", ""},
		{"POST", "/oauth/register", "{}"},
		{"GET", "/.well-known/jwks.json", ""},
	} {
		pre := send("OPTIONS", c.path, "https://app.example", "", "Access-Control-Request-Method", c.method,
			"Access-Control-Request-Headers", "authorization")
		if pre.StatusCode != 204 || pre.Header.Get("Access-Control-Allow-Origin") != "https://app.example" ||
			!strings.Contains(pre.Header.Get("Access-Control-Allow-Methods"), c.method) {
			t.Errorf("preflight of %s: %d %v", c.path, pre.StatusCode, pre.Header)
		}
		headers := []string{
			"Content-Type", "application/json", "Accept", "application/json, text/event-stream",
			"Sec-Fetch-Site", "cross-site",
		}
		if !strings.HasPrefix(c.path, "/oauth/") {
			headers = append(headers, "Authorization", bearer)
		}
		res := send(c.method, c.path, "https://app.example", c.body, headers...)
		if res.Header.Get("Access-Control-Allow-Origin") != "https://app.example" || res.StatusCode == 403 ||
			res.StatusCode >= 500 ||
			!strings.Contains(res.Header.Get("Vary"), "Origin") {
			t.Errorf("%s: %d %v", c.path, res.StatusCode, res.Header)
		}
		if evil := send(c.method, c.path, "https://evil.example", c.body,
			headers...); evil.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s may be read by any origin", c.path)
		}
	}
	// The documents that programs find their way in with are for any page.
	for _, path := range []string{"/.well-known/oauth-authorization-server", "/.well-known/oauth-protected-resource/mcp"} {
		for _, origin := range []string{"https://app.example", "https://evil.example"} {
			if res := send("GET", path, origin, ""); res.Header.Get("Access-Control-Allow-Origin") != "*" {
				t.Errorf("%s: %v", path, res.Header)
			}
		}
	}
	if res := send("POST", "/mcp", "https://evil.example", ping, "Authorization", bearer, "Sec-Fetch-Site",
		"cross-site"); res.StatusCode != 403 {
		t.Errorf("/mcp: %d", res.StatusCode)
	}
}
