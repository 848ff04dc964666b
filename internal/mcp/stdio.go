package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Remote is a server whose tools are forwarded.
type Remote struct {
	Server  string // its address, such as http://127.0.0.1:8080
	Key     string
	Login   Login  // instead of a key; nil: there is a key
	Version string // of this build
}

// Login hands out tokens that end and are renewed.
type Login interface {
	Token(ctx context.Context) (string, error)
	// Renew returns another token than the one that the server refused.
	Renew(ctx context.Context, refused string) (string, error)
}

// Forward serves the tools of a remote server on two streams, until in ends or ctx
// does. It knows the tools only by what the server says of them, and does not start
// without having reached it.
func Forward(ctx context.Context, r Remote, in io.Reader, out io.Writer) error {
	f := &forwarder{remote: r, http: &http.Client{
		Transport: &bearer{key: r.Key, login: r.Login, base: http.DefaultTransport.(*http.Transport).Clone()},
		Timeout:   maxWait + 30*time.Second,
		// The key must not follow a redirect to wherever it leads.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	defer f.drop(nil)
	session, err := f.connect(ctx)
	if err != nil {
		return err
	}
	hello := session.InitializeResult()
	local := sdk.NewServer(&sdk.Implementation{Name: hello.ServerInfo.Name, Title: hello.ServerInfo.Title, Version: hello.ServerInfo.Version},
		&sdk.ServerOptions{Instructions: hello.Instructions, Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}}})
	for t, err := range session.Tools(ctx, nil) {
		if err != nil {
			return fmt.Errorf("read the tools of %s: %w", r.Server, err)
		}
		local.AddTool(t, f.call)
	}
	l := newLedger(ctx, in, out)
	err = local.Run(ctx, &sdk.IOTransport{Reader: l, Writer: l})
	if errors.Is(err, io.EOF) || ctx.Err() != nil {
		return nil
	}
	return err
}

// forwarder holds the connection to the server, and makes a new one when it broke.
type forwarder struct {
	remote Remote
	http   *http.Client

	mu      sync.Mutex
	session *sdk.ClientSession
}

func (f *forwarder) connect(ctx context.Context) (*sdk.ClientSession, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.session != nil {
		return f.session, nil
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "parley-stdio", Version: f.remote.Version}, nil)
	session, err := client.Connect(context.WithoutCancel(ctx), &sdk.StreamableClientTransport{
		Endpoint: strings.TrimRight(f.remote.Server, "/") + Path, HTTPClient: f.http, DisableStandaloneSSE: true, MaxRetries: -1,
	}, nil)
	if err != nil {
		return nil, fmt.Errorf("cannot use the tools of %s: %w", f.remote.Server, err)
	}
	f.session = session
	return session, nil
}

// drop forgets a session, or any if it is nil.
func (f *forwarder) drop(s *sdk.ClientSession) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.session != nil && (s == nil || f.session == s) {
		_ = f.session.Close()
		f.session = nil
	}
}

// call forwards one call. What the server refuses is its answer; that it cannot be
// reached is a tool error, and the next call tries anew.
func (f *forwarder) call(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	session, err := f.connect(ctx)
	if err == nil {
		var res *sdk.CallToolResult
		args := req.Params.Arguments
		if len(args) == 0 {
			args = json.RawMessage("{}")
		}
		if res, err = session.CallTool(ctx, &sdk.CallToolParams{Name: req.Params.Name, Arguments: args}); err == nil {
			return res, nil
		}
		var wire *jsonrpc.Error
		if errors.As(err, &wire) {
			return nil, wire
		}
		f.drop(session)
	}
	return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: err.Error()}}}, nil
}

// bearer adds the key, and makes a refusal an error that says what the server said.
type bearer struct {
	key   string
	login Login
	base  http.RoundTripper
}

// send adds the key or the login's token. A token that is refused is renewed once: it
// may have been revoked, and what is refused was not carried out.
func (b *bearer) send(r *http.Request) (*http.Response, error) {
	key := b.key
	var err error
	if b.login != nil {
		if key, err = b.login.Token(r.Context()); err != nil {
			return nil, err
		}
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+key)
	res, err := b.base.RoundTrip(r)
	if err != nil || b.login == nil || res.StatusCode != http.StatusUnauthorized || r.Body != nil && r.GetBody == nil {
		return res, err
	}
	_ = res.Body.Close()
	if key, err = b.login.Renew(r.Context(), key); err != nil {
		return nil, err
	}
	again := r.Clone(r.Context())
	if r.GetBody != nil {
		if again.Body, err = r.GetBody(); err != nil {
			return nil, err
		}
	}
	again.Header.Set("Authorization", "Bearer "+key)
	return b.base.RoundTrip(again)
}

// RoundTrip implements http.RoundTripper.
func (b *bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := b.send(r)
	if err != nil || !strings.HasPrefix(res.Header.Get("Content-Type"), "application/problem+json") {
		return res, err
	}
	defer res.Body.Close()
	var p struct {
		Detail string `json:"detail"`
		Code   string `json:"code"`
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, 64<<10)).Decode(&p); err != nil {
		return nil, fmt.Errorf("the server answered %s", res.Status)
	}
	return nil, fmt.Errorf("the server answered %d: %s (%s)", res.StatusCode, p.Detail, p.Code)
}
