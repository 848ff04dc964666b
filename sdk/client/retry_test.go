package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// answer is one scripted response of a server.
type answer struct {
	status int
	header map[string]string
	body   string
	hangUp bool
}

// fake is a server with scripted responses that records its requests.
type fake struct {
	answers []answer

	mu       sync.Mutex
	requests []*http.Request
	bodies   []string
	waits    []time.Duration // the client's pauses
	url      string
}

func (f *fake) asked() []*http.Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.requests)
}

func (f *fake) sent() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.bodies)
}

func (f *fake) client(t *testing.T, change ...func(*Config)) *Client {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		f.mu.Lock()
		defer f.mu.Unlock()
		f.requests, f.bodies = append(f.requests, r), append(f.bodies, string(body))
		a := f.answers[min(len(f.requests), len(f.answers))-1]
		if a.hangUp {
			conn, _, _ := w.(http.Hijacker).Hijack()
			_ = conn.(*net.TCPConn).SetLinger(0)
			_ = conn.Close()
			return
		}
		for k, v := range a.header {
			w.Header().Set(k, v)
		}
		w.WriteHeader(a.status)
		_, _ = io.WriteString(w, a.body)
	}))
	t.Cleanup(srv.Close)
	f.url = srv.URL
	cfg := Config{URL: srv.URL + "/", Key: "k", Org: "main"}
	for _, change := range change {
		change(&cfg)
	}
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	c.sleep = func(_ context.Context, d time.Duration) error {
		f.waits = append(f.waits, d)
		return nil
	}
	return c
}

func TestRetriesAreSafeAndBounded(t *testing.T) {
	t.Parallel()
	ok := answer{status: 200, body: `{"id":"x","result":{"id":"x"}}`}
	status := func(n int, code string) answer {
		return answer{status: n, body: `{"detail":"busy","code":"` + code + `"}`}
	}
	submit := func(c *Client) error {
		_, err := c.Proposals.Submit(context.Background(), ProposalSubmission{Title: "T"})
		return err
	}
	get := func(c *Client) error {
		_, err := c.Proposals.Get(context.Background(), "x")
		return err
	}
	withdraw := func(c *Client) error {
		_, err := c.Proposals.WithdrawVote(context.Background(), "x")
		return err
	}
	send := func(c *Client) error {
		_, err := c.Agent("a").Send(context.Background(), SendParams{Message: NewMessage(Text("hi"))})
		return err
	}
	sendMessage := func(c *Client) error {
		_, err := c.Agent("a").SendMessage(context.Background(), MessageParams{Message: NewMessage(Text("hi"))})
		return err
	}
	claim := func(c *Client) error {
		_, err := c.Worker("a").Claim(context.Background(), ClaimRequest{Max: 1})
		return err
	}
	report := func(c *Client) error {
		_, err := c.Worker("a").Report(context.Background(), "l", WorkReport{})
		return err
	}
	single := func(c *Client) error {
		_, err := c.Worker("a").Report(context.Background(), "l", WorkReport{}, WithoutRetry())
		return err
	}
	lost := answer{hangUp: true}
	for _, tt := range []struct {
		name     string
		call     func(*Client) error
		answers  []answer
		requests int
		keyed    bool
		fails    bool
	}{
		{"a response is final", submit, []answer{ok}, 1, true, false},
		{"503 is repeated", submit, []answer{status(503, "server.busy"), status(503, ""), ok}, 3, true, false},
		{"429 is repeated", submit, []answer{status(429, "request.rate_limited"), ok}, 2, true, false},
		{"502 is repeated", submit, []answer{status(502, ""), ok}, 2, true, false},
		{"504 is repeated", get, []answer{status(504, ""), ok}, 2, false, false},
		{"a lost response is repeated", submit, []answer{lost, ok}, 2, true, false},
		{"a lost response of a read is repeated", get, []answer{lost, ok}, 2, false, false},
		{"a send with its own id is repeated", send, []answer{lost, status(502, ""), ok}, 3, false, false},
		{"a send without one is not", sendMessage, []answer{lost, ok}, 1, false, true},
		{"nor after a proxy's 503", sendMessage, []answer{status(503, ""), ok}, 1, false, true},
		{"but after one of Parley", sendMessage, []answer{status(503, "server.busy"), ok}, 2, false, false},
		{"a deletion that counts is not repeated", withdraw, []answer{lost, ok}, 1, false, true},
		{"nor after 502", withdraw, []answer{status(502, ""), ok}, 1, false, true},
		{"a claim is not repeated", claim, []answer{lost, ok}, 1, false, true},
		{"a report is, with a key", report, []answer{lost, ok}, 2, true, false},
		{"unless told otherwise", single, []answer{lost, ok}, 1, false, true},
		{"a refusal is not repeated", submit, []answer{status(422, "request.invalid"), ok}, 1, true, true},
		{"a fault is not repeated", submit, []answer{status(500, ""), ok}, 1, true, true},
		{"it gives up", submit, []answer{status(503, "server.busy")}, 5, true, true},
		{"it does not wait for hours", submit, []answer{{
			status: 503, header: map[string]string{"Retry-After": "3600"},
			body: `{"detail":"later"}`,
		}}, 1, true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := &fake{answers: tt.answers}
			if err := tt.call(f.client(t)); (err != nil) != tt.fails {
				t.Errorf("error = %v; want one: %t", err, tt.fails)
			}
			if len(f.asked()) != tt.requests || len(f.waits) != tt.requests-1 {
				t.Errorf("%d requests and %d pauses; want %d requests", len(f.asked()), len(f.waits), tt.requests)
			}
			for i, r := range f.asked() {
				key := r.Header.Get("Idempotency-Key")
				if (key != "") != tt.keyed || key != f.asked()[0].Header.Get("Idempotency-Key") || f.sent()[i] != f.sent()[0] {
					t.Errorf("request %d: key %q, body %q; want those of the first, keyed: %t", i+1, key, f.sent()[i], tt.keyed)
				}
			}
		})
	}
}

func TestPausesGrowAndHonourRetryAfter(t *testing.T) {
	t.Parallel()
	busy := answer{status: 503, body: `{"detail":"busy","code":"server.busy"}`}
	after := answer{status: 429, header: map[string]string{"Retry-After": "7"}, body: `{"detail":"slow down"}`}
	f := &fake{answers: []answer{busy, busy, after, {status: 200, body: `{}`}}}
	var told []Retrying
	c := f.client(t, func(c *Config) { c.Retry.OnRetry = func(r Retrying) { told = append(told, r) } })
	if _, err := c.Proposals.Get(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	if len(f.waits) != 3 || len(told) != 3 {
		t.Fatalf("waited %v and told %v; want 3 each", f.waits, told)
	}
	if w := f.waits; w[0] < 100*time.Millisecond || w[0] > 300*time.Millisecond || w[1] < 200*time.Millisecond ||
		w[1] > 600*time.Millisecond || w[2] < 7*time.Second {
		t.Errorf("waited %v; want 100-300 ms, 200-600 ms and 7 s or more", w)
	}
	for i, r := range told {
		// Pauses of at most 300, 600, 1200 and 2400 ms, or of the Retry-After.
		least := []time.Duration{4300 * time.Millisecond, 3800 * time.Millisecond, 14 * time.Second}[i]
		if r.Attempt != i+1 || r.Wait != f.waits[i] || r.Left < least || r.Left > least+time.Second {
			t.Errorf("told %+v; want attempt %d, and %s or a little more left", r, i+1, least)
		}
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for header, want := range map[string]time.Duration{
		"": 0, "x": 0, "-1": 0, "12": 12 * time.Second,
		"Fri, 02 Jan 2026 03:04:35 GMT": 30 * time.Second, "Thu, 01 Jan 2026 00:00:00 GMT": 0,
	} {
		if got := parseRetryAfter(header, now); got != want {
			t.Errorf("Retry-After %q is %s; want %s", header, got, want)
		}
	}
}

func TestTheKeyDoesNotFollowARedirect(t *testing.T) {
	t.Parallel()
	f := &fake{answers: []answer{{status: 307, header: map[string]string{"Location": "http://elsewhere.example/"}}}}
	_, err := f.client(t).Me(t.Context())
	var refused *Error
	if !errors.As(err, &refused) || refused.Status != 307 || refused.Location != "http://elsewhere.example/" {
		t.Errorf("error = %v; want a 307 that names the place", err)
	}
}

func TestResponsesAreBounded(t *testing.T) {
	t.Parallel()
	f := &fake{answers: []answer{{status: 200, body: `{"org":"` + strings.Repeat("x", 1000) + `"}`}}}
	if _, err := f.client(t, func(c *Config) { c.MaxResponse = 500 }).Me(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "larger than 500 bytes") {
		t.Errorf("error = %v; want one that names the bound", err)
	}
	if _, err := f.client(t, func(c *Config) { c.MaxResponse = 2000 }).Me(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAnEmptyIDIsNoRequest(t *testing.T) {
	t.Parallel()
	f := &fake{answers: []answer{{status: 200, body: `{}`}}}
	c := f.client(t)
	if _, err := c.Keys.Revoke(t.Context(), ""); err == nil || len(f.asked()) != 0 {
		t.Errorf("error = %v after %d requests; want one after none", err, len(f.asked()))
	}
	if _, err := c.Proposals.Vote(t.Context(), "", Ballot{}); err == nil || len(f.asked()) != 0 {
		t.Errorf("error = %v after %d requests; want one after none", err, len(f.asked()))
	}
}

func TestTheOrgIsAskedForOnce(t *testing.T) {
	t.Parallel()
	f := &fake{answers: []answer{{status: 500, body: `{}`}, {status: 200, body: `{"org":"acme","id":"x"}`}}}
	c := f.client(t, func(c *Config) { c.Org = "" })
	if _, err := c.Proposals.Get(t.Context(), "p"); err == nil {
		t.Error("got no error when the org cannot be found, want one")
	}
	for range 3 {
		if _, err := c.Proposals.Get(t.Context(), "p"); err != nil {
			t.Fatal(err)
		}
	}
	var paths []string
	for _, r := range f.asked() {
		paths = append(paths, r.URL.Path)
	}
	want := "/api/v1/me /api/v1/me /api/v1/orgs/acme/proposals/p /api/v1/orgs/acme/proposals/p /api/v1/orgs/acme/proposals/p"
	if got := strings.Join(paths, " "); got != want {
		t.Errorf("requests %s; want %s", got, want)
	}
}

// tokens is a TokenSource.
type tokens struct {
	token, renewed string
	err            error
	asked          int
}

func (s *tokens) Token(context.Context) (string, error) {
	s.asked++
	return s.token, s.err
}

func (s *tokens) Renew(_ context.Context, refused string) (string, error) {
	if refused == s.token {
		s.token = s.renewed
	}
	return s.token, nil
}

func TestARefusedTokenIsRenewedOnce(t *testing.T) {
	t.Parallel()
	refused := answer{status: 401, body: `{"detail":"no","code":"auth.invalid"}`}
	for _, tt := range []struct {
		answers  []answer
		requests int
		fails    bool
	}{
		{[]answer{refused, {status: 200, body: `{"id":"x"}`}}, 2, false},
		{[]answer{refused}, 2, true},
	} {
		f := &fake{answers: tt.answers}
		source := &tokens{token: "old", renewed: "new"}
		c := f.client(t, func(c *Config) { c.Key, c.Tokens = "", source })
		_, err := c.Proposals.Submit(t.Context(), ProposalSubmission{Title: "T"})
		if (err != nil) != tt.fails || len(f.asked()) != tt.requests {
			t.Errorf("error = %v after %d requests; want %d", err, len(f.asked()), tt.requests)
		}
		for i, want := range []string{"Bearer old", "Bearer new"} {
			if got := f.asked()[i].Header.Get("Authorization"); got != want {
				t.Errorf("request %d had %q; want %q", i+1, got, want)
			}
		}
		if f.sent()[0] != f.sent()[1] {
			t.Errorf("bodies = %q, want the same twice", f.sent())
		}
	}
}

// A token server that restarts is waited for; any other failure is final.
func TestTokensThatCannotBeHad(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err   error
		asked int
	}{
		{&net.OpError{Op: "dial", Err: errors.New("refused")}, 5},
		{errors.New("signed out"), 1},
	} {
		f := &fake{answers: []answer{{status: 200, body: `{}`}}}
		source := &tokens{err: tt.err}
		c := f.client(t, func(c *Config) { c.Key, c.Tokens = "", source })
		if _, err := c.Me(t.Context()); !errors.Is(err, tt.err) || source.asked != tt.asked || len(f.asked()) != 0 {
			t.Errorf("error = %v, asked %d times for a token; want %d", err, source.asked, tt.asked)
		}
	}
}

func TestTransportKeepsTheKeyAtTheServer(t *testing.T) {
	t.Parallel()
	f := &fake{answers: []answer{
		{status: 401, body: `{}`},
		{status: 200, body: `fine`},
		{
			status: 403, header: map[string]string{"Content-Type": "application/problem+json"},
			body: `{"detail":"no","code":"auth.scope_missing"}`,
		},
	}}
	h := &http.Client{Transport: f.client(t,
		func(c *Config) { c.Key, c.Tokens = "", &tokens{token: "old", renewed: "new"} }).Transport()}
	res, err := h.Post(f.url+"/mcp", "text/plain", bytes.NewReader([]byte("hello")))
	if err != nil || res.StatusCode != 200 || f.sent()[1] != "hello" ||
		f.asked()[1].Header.Get("Authorization") != "Bearer new" {
		t.Errorf("got %v, %v, %q; want 200 and hello again with the new token", res, err, f.sent())
	}
	_ = res.Body.Close()
	var refused *Error
	if _, err := h.Get(f.url + "/mcp"); !errors.As(err, &refused) || refused.Code != "auth.scope_missing" {
		t.Errorf("error = %v; want the refusal", err)
	}
	other := &fake{answers: []answer{{status: 200, body: `{}`}}}
	other.client(t)
	if _, err := h.Get(other.url + "/mcp"); err == nil || len(other.asked()) != 0 {
		t.Errorf("error = %v after %d requests to another server; want one after none", err, len(other.asked()))
	}
}

// A server that replays more than requested does not deliver an event twice.
func TestReplayedEventsAreDropped(t *testing.T) {
	t.Parallel()
	stream := func(events ...string) answer {
		return answer{
			status: 200, header: map[string]string{"Content-Type": "text/event-stream"},
			body: strings.Join(events, ""),
		}
	}
	event := func(id, state string, final bool) string {
		return fmt.Sprintf("id: %s\ndata: {\"result\":{\"id\":\"t\",\"status\":{\"state\":%q},\"final\":%t}}\n\n", id, state,
			final)
	}
	one, two, three := event("1", "submitted", false), event("2", "working", false), event("3", "completed", true)
	f := &fake{answers: []answer{stream(one, two), stream(one, two, three)}}
	var got []string
	for e, err := range f.client(t).Agent("scout").Subscribe(t.Context(), "t", SubscribeParams{}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e.ID)
	}
	if strings.Join(got, " ") != "1 2 3" || f.asked()[1].Header.Get("Last-Event-ID") != "2" {
		t.Errorf("events %v; want 1 2 3", got)
	}
}

func TestStreamGivesUp(t *testing.T) {
	t.Parallel()
	f := &fake{answers: []answer{{
		status: 200, header: map[string]string{"Content-Type": "text/event-stream"},
		body: "retry: 5000\n\n",
	}}}
	c := f.client(t)
	var last error
	for _, err := range c.Agent("scout").Subscribe(t.Context(), "t", SubscribeParams{}) {
		last = err
	}
	var lost *ConnectionError
	if !errors.As(last, &lost) || len(f.asked()) != maxBroken {
		t.Errorf("error after %d connections = %v, want a lost stream after %d", len(f.asked()), last, maxBroken)
	}
	for _, w := range f.waits {
		if w < 5*time.Second {
			t.Errorf("waited %s, want 5s as the server asked", w)
		}
	}
}

func TestErrorsOfAgentsAreRead(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		status int
		data   string
		want   Error
	}{
		"fields": {
			200, `[{"pointer":"/id","detail":"is too long"}]`,
			Error{Status: 200, Fields: []FieldError{{Pointer: "/id", Detail: "is too long"}}},
		},
		"code": {
			403, `{"code":"auth.scope_missing","scope":"svc:a2a:write","request_id":"r"}`,
			Error{Status: 403, Code: "auth.scope_missing", Scope: "svc:a2a:write", RequestID: "r"},
		},
		"version 1.0": {
			200, `[{"@type":"x/google.rpc.ErrorInfo","metadata":{"code":"quota.live_tasks"}},
				{"@type":"x/google.rpc.BadRequest","fieldViolations":[{"field":"message.parts","description":"is empty"}]},
				{"@type":"x/google.rpc.RequestInfo","requestId":"r"}]`, Error{
				Status: 200, Code: "quota.live_tasks", RequestID: "r",
				Fields: []FieldError{{In: "body", Pointer: "/message/parts", Detail: "is empty"}},
			},
		},
		"nothing": {200, `null`, Error{Status: 200}},
	} {
		f := &fake{answers: []answer{{
			status: tt.status,
			body:   `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"bad","data":` + tt.data + `}}`,
		}}}
		_, err := f.client(t).Agent("a").Get(t.Context(), "t", GetParams{})
		tt.want.RPCCode, tt.want.Detail = -32602, "bad"
		var got *Error
		if !errors.As(err, &got) {
			t.Errorf("%s: error = %v, want *Error", name, err)
			continue
		}
		if g, w := *got, tt.want; g.Error() != w.Error() || g.Code != w.Code || g.Scope != w.Scope ||
			g.RequestID != w.RequestID ||
			len(g.Fields) != len(w.Fields) || len(w.Fields) > 0 && g.Fields[0] != w.Fields[0] {
			t.Errorf("%s: %+v; want %+v", name, g, w)
		}
	}
}

// A certificate that is not trusted and a scheme that does not match stay as they are.
func TestPermanentErrorsAreNotRepeated(t *testing.T) {
	t.Parallel()
	secure := httptest.NewTLSServer(nil)
	defer secure.Close()
	plain := httptest.NewServer(nil)
	defer plain.Close()
	for _, url := range []string{secure.URL, strings.Replace(plain.URL, "http://", "https://", 1)} {
		c, err := New(Config{URL: url, Key: "k", Retry: Retry{OnRetry: func(r Retrying) { t.Errorf("%s: repeated after %v", url, r.Err) }}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Me(t.Context())
		var lost *ConnectionError
		if !errors.As(err, &lost) || !lost.Permanent() {
			t.Errorf("%s: %v", url, err)
		}
	}
}
