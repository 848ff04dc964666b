package client

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const requestIDHeader = "X-Request-Id"

// call is one request to the server.
type call struct {
	method string
	path   string // escaped; below the org if inOrg
	inOrg  bool
	query  url.Values
	in     any    // the body
	rpc    string // method of JSON-RPC, with in as its params
	header http.Header

	keyed  bool          // takes an Idempotency-Key
	repeat bool          // a second time does the same as the first
	once   string        // Idempotency-Key
	single bool          // sent once
	waits  time.Duration // how long the request asks the server to wait

	response *Response
}

func (r *call) set(name, value string) {
	if r.header == nil {
		r.header = http.Header{}
	}
	r.header.Set(name, value)
}

// repeatable reports whether the request may reach the server twice.
func (r *call) repeatable() bool {
	return r.method == http.MethodGet || r.repeat || r.keyed && r.once != ""
}

// escape joins segments of a path.
func escape(segments ...string) string {
	var b strings.Builder
	for _, s := range segments {
		b.WriteByte('/')
		b.WriteString(url.PathEscape(s))
	}
	return b.String()
}

// The usual calls, below the org.
func read(segments ...string) call {
	return call{method: http.MethodGet, path: escape(segments...), inOrg: true}
}

func post(in any, segments ...string) call {
	return call{method: http.MethodPost, path: escape(segments...), inOrg: true, in: in, keyed: true}
}

func patch(in any, segments ...string) call {
	return call{method: http.MethodPatch, path: escape(segments...), inOrg: true, in: in, keyed: true}
}

// remove returns a DELETE. repeat means that a second time has the same outcome as the first.
func remove(repeat bool, segments ...string) call {
	return call{method: http.MethodDelete, path: escape(segments...), inOrg: true, repeat: repeat}
}

// fetch sends a call and decodes the response.
func fetch[T any](ctx context.Context, c *Client, r call, opts []Option) (*T, error) {
	out := new(T)
	if err := c.do(ctx, r, out, opts); err != nil {
		return nil, err
	}
	return out, nil
}

// prepare applies the options and completes the path. It returns the body.
func (c *Client) prepare(ctx context.Context, r *call, opts []Option) ([]byte, error) {
	for _, o := range opts {
		o(r)
	}
	if strings.Contains(r.path, "//") || strings.HasSuffix(r.path, "/") {
		return nil, fmt.Errorf("client: an id in the path %s is empty", r.path)
	}
	if r.inOrg {
		org, err := c.Org(ctx)
		if err != nil {
			return nil, err
		}
		r.path, r.inOrg = "/api/v1/orgs/"+url.PathEscape(org)+r.path, false
	}
	if r.keyed && r.once == "" && !r.single && c.retry.Attempts > 1 {
		r.once = "go-" + rand.Text()
	}
	in := r.in
	switch {
	case r.rpc != "":
		in = rpcRequest{Version: "2.0", ID: 1, Method: r.rpc, Params: r.in}
	case in == nil:
		return nil, nil
	}
	body, err := json.Marshal(in)
	if err != nil {
		return nil, fmt.Errorf("encode the request: %w", err)
	}
	return body, nil
}

// do sends a call, repeats it if that is safe and may help, and decodes the response into out,
// which may be nil.
func (c *Client) do(ctx context.Context, r call, out any, opts []Option) error {
	body, err := c.prepare(ctx, &r, opts)
	if err != nil {
		return err
	}
	raw, err := c.repeat(ctx, &r, func() ([]byte, error) { return c.exchange(ctx, &r, body) })
	if err != nil || out == nil {
		return err
	}
	return c.decode(raw, out)
}

func (c *Client) decode(raw []byte, out any) error {
	err := json.Unmarshal(raw, out)
	switch {
	case err == nil:
		return nil
	case !json.Valid(raw):
		return fmt.Errorf("the response of %s is not JSON; is it a Parley server?", c.base)
	}
	var mismatch *json.UnmarshalTypeError
	if errors.As(err, &mismatch) {
		return fmt.Errorf("unexpected response of the server: %s in the field %q", mismatch.Value, mismatch.Field)
	}
	return fmt.Errorf("unexpected response of the server: %w", err)
}

// exchange sends a call once and returns the body of the response.
func (c *Client) exchange(ctx context.Context, r *call, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout+r.waits)
	defer cancel()
	res, err := c.send(ctx, c.http, r, body)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	data, err := c.readAll(res)
	if err != nil {
		return nil, err
	}
	if r.response != nil {
		*r.response = Response{Status: res.StatusCode, Header: res.Header, Body: data}
	}
	switch {
	case res.StatusCode/100 != 2:
		return nil, newError(res, data)
	case r.rpc != "":
		if data, err = c.rpcResult(res, data); err == nil && r.response != nil {
			r.response.Body = data
		}
	}
	return data, err
}

func (c *Client) readAll(res *http.Response) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(res.Body, c.maxResponse+1))
	switch {
	case err != nil:
		return nil, &ConnectionError{Server: c.base, Err: err}
	case int64(len(data)) > c.maxResponse:
		return nil, fmt.Errorf("client: the response is larger than %d bytes; see Config.MaxResponse", c.maxResponse)
	}
	return data, nil
}

// send sends the request with credentials. The caller closes the response.
func (c *Client) send(ctx context.Context, h *http.Client, r *call, body []byte) (*http.Response, error) {
	return c.authorized(ctx, func(key string) (*http.Response, error) {
		req, err := c.request(ctx, r, body, key)
		if err != nil {
			return nil, err
		}
		res, err := h.Do(req)
		if err != nil {
			return nil, &ConnectionError{Server: c.base, Err: err}
		}
		return res, nil
	})
}

// authorized calls send with the key, or with a token. A refused token is renewed once: the refused
// request was not carried out, and another process may have renewed the token.
func (c *Client) authorized(
	ctx context.Context, send func(key string) (*http.Response, error),
) (*http.Response, error) {
	if c.tokens == nil {
		return send(c.key)
	}
	token, err := c.tokens.Token(ctx)
	if err != nil {
		if lost := (&ConnectionError{Server: c.base, Err: err}); lost.NotSent() {
			return nil, lost // the token's server cannot be reached; that may pass
		}
		return nil, err
	}
	res, err := send(token)
	if err != nil || res.StatusCode != http.StatusUnauthorized {
		return res, err
	}
	_ = res.Body.Close()
	if token, err = c.tokens.Renew(ctx, token); err != nil {
		return nil, err
	}
	return send(token)
}

func (c *Client) request(ctx context.Context, r *call, body []byte, key string) (*http.Request, error) {
	target := c.base + r.path
	if len(r.query) > 0 {
		target += "?" + r.query.Encode()
	}
	var content io.Reader
	if body != nil {
		content = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, r.method, target, content)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json, application/problem+json")
	req.Header.Set("User-Agent", c.userAgent)
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if r.once != "" {
		req.Header.Set("Idempotency-Key", r.once)
	}
	if t := TraceOf(ctx); t.Parent != "" {
		req.Header.Set("traceparent", t.Parent)
		if t.State != "" {
			req.Header.Set("tracestate", t.State)
		}
	}
	for name, values := range r.header {
		req.Header[name] = values
	}
	return req, nil
}

// Transport returns a RoundTripper that sends requests to the client's server with its credentials,
// for programs that use another protocol of the server. A refusal in the form of a problem document
// is returned as an [*Error].
func (c *Client) Transport() http.RoundTripper { return roundTripper{c} }

type roundTripper struct{ c *Client }

// RoundTrip implements http.RoundTripper.
func (t roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	if !strings.HasPrefix(req.URL.String()+"/", t.c.base+"/") {
		return nil, errors.New("client: the request is for another server")
	}
	base := t.c.http.Transport
	if base == nil {
		base = http.DefaultTransport
	}
	first := true
	res, err := t.c.authorized(req.Context(), func(key string) (*http.Response, error) {
		r := req.Clone(req.Context())
		if key != "" {
			r.Header.Set("Authorization", "Bearer "+key)
		}
		if !first && req.Body != nil && req.Body != http.NoBody {
			if req.GetBody == nil {
				return nil, errors.New("client: the token was refused, and the request cannot be repeated")
			}
			var err error
			if r.Body, err = req.GetBody(); err != nil {
				return nil, err
			}
		}
		first = false
		return base.RoundTrip(r)
	})
	if err != nil || !strings.HasPrefix(res.Header.Get("Content-Type"), "application/problem+json") {
		return res, err
	}
	defer res.Body.Close()
	data, err := t.c.readAll(res)
	if err != nil {
		return nil, err
	}
	return nil, newError(res, data)
}
