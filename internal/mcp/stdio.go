package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-dev/parley/sdk/client"
)

// Remote is the server whose tools and resources are forwarded.
type Remote struct {
	Client  *client.Client
	Version string // of this build
}

// Forward serves the tools and resources of a remote server on two streams until in or ctx ends. It
// gets their lists from the server, and returns an error if it cannot reach it.
func Forward(ctx context.Context, r Remote, in io.Reader, out io.Writer) error {
	f := &forwarder{remote: r, http: &http.Client{
		Transport: r.Client.Transport(),
		Timeout:   maxWait + 30*time.Second,
		// Do not send the key to the target of a redirect.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	defer f.drop(nil)
	session, err := f.connect(ctx)
	if err != nil {
		return err
	}
	hello := session.InitializeResult()
	w := &watcher{forwarder: f, ctx: ctx}
	local := w.server(hello)
	defer w.stop()
	for t, err := range session.Tools(ctx, nil) {
		if err != nil {
			return fmt.Errorf("list the tools of %s: %w", r.Client.URL(), err)
		}
		local.AddTool(t, f.call)
	}
	if err := f.addResources(ctx, local, session); err != nil {
		return fmt.Errorf("list the resources of %s: %w", r.Client.URL(), err)
	}
	l := newLedger(ctx, in, out)
	err = local.Run(ctx, &sdk.IOTransport{Reader: l, Writer: l})
	switch {
	case errors.Is(err, io.EOF), ctx.Err() != nil:
		return nil
	case errors.Is(err, io.ErrClosedPipe), errors.Is(err, syscall.EPIPE):
		return nil // the client has gone without the end of its stream of notifications
	}
	return err
}

// forwarder holds the connection to the server, and reconnects when it broke.
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
	far := sdk.NewClient(&sdk.Implementation{Name: "parley-stdio", Version: f.remote.Version}, nil)
	session, err := far.Connect(context.WithoutCancel(ctx), &sdk.StreamableClientTransport{
		Endpoint: f.remote.Client.URL() + Path, HTTPClient: f.http, DisableStandaloneSSE: true, MaxRetries: -1,
	}, nil)
	if err != nil {
		return nil, fmt.Errorf("cannot use the tools of %s: %w", f.remote.Client.URL(), err)
	}
	f.session = session
	return session, nil
}

// drop closes a session, or any session if s is nil.
func (f *forwarder) drop(s *sdk.ClientSession) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.session != nil && (s == nil || f.session == s) {
		_ = f.session.Close()
		f.session = nil
	}
}

// call forwards one call. A refusal of the server is passed on; a connection failure is a tool
// error, and the next call reconnects.
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
