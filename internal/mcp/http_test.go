package mcp

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/parley-dev/parley/internal/budget"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/identity"
)

const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`

// post sends a request as an MCP client does; headers are name, value pairs, and may contain Host.
func (w *world) post(key, body string, headers ...string) (*http.Response, string) {
	w.Helper()
	return w.send(http.MethodPost, key, body, headers...)
}

func (w *world) send(method, key, body string, headers ...string) (*http.Response, string) {
	w.Helper()
	req, err := http.NewRequestWithContext(w.Context(), method, w.url+Path, strings.NewReader(body))
	if err != nil {
		w.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i] == "Host" {
			req.Host = headers[i+1]
			continue
		}
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		w.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		w.Fatal(err)
	}
	return res, string(text)
}

func TestChallenges(t *testing.T) {
	t.Parallel()
	const metadata = "https://parley.example/.well-known/oauth-protected-resource/mcp"
	for name, o := range map[string]string{"plain": "", "with metadata": metadata} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(_ *httpx.Options, m *Options) { m.ResourceMetadata = o })
			none := w.key("acme", "user:ada", identity.A2AServe)
			for _, c := range []struct {
				name, key string
				status    int
				says      []string
			}{
				{"no key", "", 401, []string{"Bearer "}},
				{"a bad key", "parley_bad", 401, []string{"Bearer ", `error="invalid_token"`}},
				{"no useful scope", none, 403, []string{
					"Bearer ", `error="insufficient_scope"`, `scope="svc:tasks:read svc:tasks:write svc:a2a:write"`,
				}},
			} {
				res, body := w.post(c.key, ping)
				header := res.Header.Get("WWW-Authenticate")
				if res.StatusCode != c.status || res.Header.Get("Content-Type") != httpx.ProblemType ||
					res.Header.Get("X-Request-Id") == "" {
					t.Errorf("%s: status = %d, want %d: %s", c.name, res.StatusCode, c.status, body)
				}
				for _, s := range c.says {
					if !strings.Contains(header, s) {
						t.Errorf("%s: challenge = %s, want %s in it", c.name, header, s)
					}
				}
				if has := strings.Contains(header, `resource_metadata="`+metadata+`"`); has != (o != "") {
					t.Errorf("%s: challenge = %s, want metadata: %v", c.name, header, o != "")
				}
				if o != "" && strings.Count(header, `scope="svc:tasks:read svc:tasks:write svc:a2a:write"`) != 1 {
					t.Errorf("%s: challenge = %s, want the scopes once", c.name, header)
				}
			}
		})
	}
}

func TestRequestsAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := call[agentsOut](w, w.session(w.key("acme", "user:root", identity.Admin)), "list_agents", nil)
	if a.Total != 1 || a.Agents[0].Reachable {
		t.Errorf("agents of an admin = %+v, want one that is not reachable", a)
	}
	ada := w.member("acme", "user:ada")
	res, body := w.post(ada, ping)
	if res.StatusCode != 200 || !strings.Contains(body, `"result"`) || res.Header.Get("Mcp-Session-Id") != "" {
		t.Errorf("ping: got %d %s, want 200 without a session", res.StatusCode, body)
	}
	for _, c := range []struct {
		name, body string
		status     int
		headers    []string
	}{
		{
			"too large",
			`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"` + strings.Repeat("x", MaxBody) + `"}}`, 413, nil,
		},
		{"a batch", " [" + ping + "," + ping + "]", 400, nil},
		{"no JSON", `{"jsonrpc":`, 400, nil},
		{"nothing", "", 400, nil},
		{"another type", ping, 415, []string{"Content-Type", "text/plain"}},
		{"an unknown revision", ping, 400, []string{"MCP-Protocol-Version", "1999-01-01"}},
	} {
		if res, body := w.post(ada, c.body, c.headers...); res.StatusCode != c.status {
			t.Errorf("%s: status = %d, want %d: %s", c.name, res.StatusCode, c.status, body)
		}
	}
	for _, method := range []string{http.MethodGet, http.MethodDelete, http.MethodPut} {
		if res, _ := w.send(method, ada, ""); res.StatusCode != 405 || res.Header.Get("Allow") != "POST" {
			t.Errorf("%s: got %d, Allow %q, want 405 and POST", method, res.StatusCode, res.Header.Get("Allow"))
		}
	}
}

func TestPagesOfOtherHostsAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(h *httpx.Options, o *Options) {
		h.Origins = []string{"https://app.example"}
		o.PublicURL = &url.URL{Scheme: "https", Host: "parley.example"}
	})
	ada := w.member("acme", "user:ada")
	host := strings.TrimPrefix(w.url, "http://")
	for _, c := range []struct {
		name    string
		status  int
		headers []string
	}{
		{"no browser", 200, nil},
		{"no browser, behind a proxy", 200, []string{"Host", "parley.internal"}},
		{"the same host", 200, []string{"Origin", w.url}},
		{"the public URL, behind a proxy", 200, []string{"Host", "parley.example", "Origin", "https://parley.example"}},
		{"an allowed origin", 200, []string{"Origin", "https://app.example"}},
		{"an allowed origin, behind a proxy", 200, []string{"Host", "parley.example", "Origin", "https://app.example"}},
		{"an allowed origin, with the name of another", 403, []string{"Host", "evil.example", "Origin", "https://app.example"}},
		{"another host", 403, []string{"Origin", "https://evil.example"}},
		{"another port", 403, []string{"Origin", "http://127.0.0.1:1"}},
		{"a sandboxed page", 403, []string{"Origin", "null"}},
		{"a name that was made to lead here", 403, []string{"Origin", "http://evil.example", "Host", "evil.example"}},
		{"what a browser says of itself", 403, []string{"Origin", "http://" + host, "Sec-Fetch-Site", "cross-site"}},
	} {
		if res, body := w.post(ada, ping, c.headers...); res.StatusCode != c.status {
			t.Errorf("%s: status = %d, want %d: %s", c.name, res.StatusCode, c.status, body)
		}
	}
}

func TestRateLimitIsTheRouters(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(h *httpx.Options, _ *Options) { h.RateLimit = 1 })
	ada := w.member("acme", "user:ada")
	for range 5 {
		w.post(ada, ping)
	}
	if res, body := w.post(ada, ping); res.StatusCode != 429 || res.Header.Get("Retry-After") == "" {
		t.Errorf("status = %d, want 429 with Retry-After: %s", res.StatusCode, body)
	}
}

// A body of unknown length is counted while it is read.
func TestABodyThatThereIsNoMemoryForIsNotTooLarge(t *testing.T) {
	t.Parallel()
	pool := budget.NewPool(budget.Limits{Memory: 1 << 20})
	eve := budget.Account{Pool: pool, Owner: budget.Owner{Org: "other", Principal: "user:eve"}}
	if err := eve.Hold(t.Context(), 1<<20); err != nil {
		t.Fatal(err)
	}
	defer eve.Close()
	w := newWorld(t, func(o *httpx.Options, _ *Options) { o.Memory = pool })
	body := struct{ io.Reader }{strings.NewReader(strings.Repeat(" ", 500<<10) + ping)}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+Path, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Authorization", "Bearer "+w.key("acme", "user:ada", identity.TasksRead))
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, _ := io.ReadAll(res.Body)
	if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" ||
		!strings.Contains(string(text), "server.busy") {
		t.Errorf("got %s %v %s, want 503 server.busy with Retry-After", res.Status, res.Header, text)
	}
}
