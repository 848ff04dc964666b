package cli

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/login"
)

// serverFlags say which server to speak to, and as whom.
type serverFlags struct {
	jsonFlag `embed:""`
	Server   string `help:"Address of the server; ${default} if not given." default:"http://127.0.0.1:8080" env:"PARLEY_SERVER" placeholder:"URL" group:"server"`
	Key      string `help:"API key; better given as PARLEY_KEY, because other users of the machine can see flags. Your login at the server if not given (parley login)." env:"PARLEY_KEY" placeholder:"KEY" group:"server"`
	Org      string `help:"Org to work in; that of your login, or else main, if not given." env:"PARLEY_ORG" placeholder:"ORG" group:"server"`
}

// client is a small HTTP client with bounded patience.
type client struct {
	base   string // address of the server, without a trailing slash
	org    string // address of the org, likewise
	key    string // empty: the login's token, if there is one, or the request goes out without
	login  *login.Source
	http   *http.Client
	notice func(string)
	sleep  func(context.Context, time.Duration) error
}

const (
	requestTimeout = 30 * time.Second
	maxAnswer      = 32 << 20
)

func (f *serverFlags) client(e *env) (*client, error) {
	c, err := f.anyClient(e)
	if err == nil && c.key == "" && c.login == nil {
		return nil, errNoCredential(f.Server)
	}
	return c, err
}

func errNoCredential(server string) error {
	return usage("an API key or a login is needed: run parley login --server %s, or set PARLEY_KEY, or pass --key (parley key create makes one)", server)
}

// base is the address of the server, without a trailing slash.
func (f *serverFlags) base() string { return strings.TrimRight(f.Server, "/") }

// anyClient is for what can be asked without a key, too.
func (f *serverFlags) anyClient(e *env) (*client, error) {
	if err := checkServer(f.Server); err != nil {
		return nil, err
	}
	c := &client{
		base:   f.base(),
		key:    f.Key,
		http:   newHTTPClient(),
		notice: func(s string) { fmt.Fprintln(e.stderr, "parley: "+clean(s)) },
		sleep:  sleep,
	}
	if c.key == "" {
		var err error
		if c.login, err = storedLogin(f.Server, c.http); err != nil {
			return nil, err
		}
	}
	if f.Org == "" {
		if f.Org = "main"; c.login != nil {
			f.Org = c.login.Login().Org
		}
	}
	c.org = c.base + "/api/v1/orgs/" + url.PathEscape(f.Org)
	return c, nil
}

func newHTTPClient() *http.Client {
	return &http.Client{
		Timeout: requestTimeout,
		Transport: &http.Transport{
			Proxy:                 http.ProxyFromEnvironment,
			DialContext:           (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
			TLSHandshakeTimeout:   10 * time.Second,
			ResponseHeaderTimeout: requestTimeout,
			ForceAttemptHTTP2:     true,
		},
		// The key must not follow a redirect to wherever it leads.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// call is one request to the server.
type call struct {
	method string
	path   string // below the org, escaped
	global bool   // path is below the server, not below the org
	query  url.Values
	body   []byte
	send   any // becomes the body
	header map[string]string
	once   string // Idempotency-Key; with one, a repeat is safe
	safe   bool   // a repeat is safe without one
}

// repeatable reports whether the call may reach the server twice.
func (r *call) repeatable() bool { return r.method == http.MethodGet || r.once != "" || r.safe }

// newOnce makes a key under which a command can be repeated safely.
func newOnce() string { return "cli-" + rand.Text() }

// do sends the call, again if that is safe and may help, and returns the answer's body.
func (c *client) do(ctx context.Context, r call) ([]byte, error) {
	if r.send != nil {
		var err error
		if r.body, err = json.Marshal(r.send); err != nil {
			return nil, err
		}
	}
	for attempt := 1; ; attempt++ {
		body, err := c.send(ctx, r)
		if err == nil || ctx.Err() != nil {
			return body, err
		}
		wait, again := patience(r, err, attempt)
		if !again {
			return nil, err
		}
		c.notice(fmt.Sprintf("%s; trying again in %s", reason(err), wait.Round(100*time.Millisecond)))
		if err := c.sleep(ctx, wait); err != nil {
			return nil, err
		}
	}
}

// exchange sends the call once: or twice, with a login that the server refuses, since
// what is refused was not carried out and another process may have renewed the login.
func (c *client) exchange(ctx context.Context, h *http.Client, r call) (*http.Response, error) {
	key := c.key
	var err error
	if c.login != nil {
		if key, err = c.login.Token(ctx); err != nil {
			if u := (&unreachable{server: c.base, cause: err}); u.dialing() {
				return nil, u // nothing was sent, the refresh token neither: it may be tried again
			}
			return nil, err
		}
	}
	for renewed := c.login == nil; ; renewed = true {
		req, err := c.request(ctx, r, key)
		if err != nil {
			return nil, err
		}
		res, err := h.Do(req)
		if err != nil {
			return nil, &unreachable{server: req.URL.Scheme + "://" + req.URL.Host, cause: err}
		}
		if res.StatusCode != http.StatusUnauthorized || renewed {
			return res, nil
		}
		_ = res.Body.Close()
		if key, err = c.login.Renew(ctx, key); err != nil {
			return nil, err
		}
	}
}

func (c *client) request(ctx context.Context, r call, key string) (*http.Request, error) {
	target := c.org + r.path
	if r.global {
		target = c.base + r.path
	}
	if len(r.query) > 0 {
		target += "?" + r.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.method, target, bytes.NewReader(r.body))
	if err != nil {
		return nil, err
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	req.Header.Set("Accept", "application/json, application/problem+json")
	if r.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if r.once != "" {
		req.Header.Set("Idempotency-Key", r.once)
	}
	for name, value := range r.header {
		req.Header.Set(name, value)
	}
	return req, nil
}

func (c *client) send(ctx context.Context, r call) ([]byte, error) {
	res, err := c.exchange(ctx, c.http, r)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	server := res.Request.URL
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return nil, &unreachable{server: server.Scheme + "://" + server.Host, cause: err, sent: true}
	}
	if res.StatusCode/100 != 2 {
		return nil, newProblem(res, body)
	}
	if !json.Valid(body) {
		return nil, fmt.Errorf("%s did not answer with JSON; is it a Parley server?", server.Host)
	}
	return body, nil
}

// into sends the call and decodes the answer, which is returned as it came, too.
func (c *client) into(ctx context.Context, r call, v any) ([]byte, error) {
	body, err := c.do(ctx, r)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(body, v); err != nil {
		return nil, badForm(err)
	}
	return body, nil
}

func badForm(err error) error {
	return fmt.Errorf("the server's answer has not the expected form: %w", err)
}

// ask sends the call and decodes the answer into v, for the caller to print. It is
// done if that failed, or if --json asks for the answer as it came.
func (f *serverFlags) ask(e *env, r call, v any) (done bool, _ error) {
	cl, err := f.client(e)
	if err != nil {
		return true, err
	}
	raw, err := cl.into(e.ctx, r, v)
	if err != nil || f.JSON {
		return true, e.rawOr(raw, err)
	}
	return false, nil
}

// unreachable is a request that got no answer.
type unreachable struct {
	server string
	cause  error
	sent   bool // an answer had begun, so the server has carried the request out
}

func (u *unreachable) Error() string {
	cause := u.cause
	var ue *url.Error
	if errors.As(cause, &ue) {
		cause = ue.Err // without the method and the address, which are said already
	}
	if u.dialing() {
		return fmt.Sprintf("cannot reach %s: %v; is the server running, and is --server right?", u.server, cause)
	}
	return fmt.Sprintf("no answer from %s: %v", u.server, cause)
}

func (u *unreachable) Unwrap() error { return u.cause }

// dialing reports that the request cannot have reached the server.
func (u *unreachable) dialing() bool {
	var op *net.OpError
	return errors.As(u.cause, &op) && op.Op == "dial"
}
