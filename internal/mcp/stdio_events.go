package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-dev/parley/sdk/client"
)

// addResources offers the resources of the server, if it has any.
func (f *forwarder) addResources(ctx context.Context, local *sdk.Server, session *sdk.ClientSession) error {
	if c := session.InitializeResult().Capabilities; c == nil || c.Resources == nil {
		return nil
	}
	for r, err := range session.Resources(ctx, nil) {
		if err != nil {
			return err
		}
		local.AddResource(r, f.read)
	}
	return nil
}

// read forwards the reading of a resource.
func (f *forwarder) read(ctx context.Context, req *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
	session, err := f.connect(ctx)
	if err != nil {
		return nil, err
	}
	res, err := session.ReadResource(ctx, &sdk.ReadResourceParams{URI: req.Params.URI})
	var refused *jsonrpc.Error
	if err != nil && !errors.As(err, &refused) {
		f.drop(session)
	}
	return res, err
}

// watcher notifies the local client of new events while it is subscribed. On stdio there is one
// client and one resource to subscribe to.
type watcher struct {
	*forwarder
	local *sdk.Server
	ctx   context.Context // of the whole connection

	mu    sync.Mutex
	after int64 // the last event before the subscription
	end   context.CancelFunc
	work  sync.WaitGroup
}

// server makes the local server. Like the remote one it may not have resources.
func (w *watcher) server(hello *sdk.InitializeResult) *sdk.Server {
	o := &sdk.ServerOptions{
		Instructions: hello.Instructions,
		Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}},
	}
	if c := hello.Capabilities; c != nil && c.Resources != nil {
		o.Capabilities.Resources = &sdk.ResourceCapabilities{Subscribe: true}
		o.SubscribeHandler, o.UnsubscribeHandler = w.subscribe, w.unsubscribe
	}
	w.local = sdk.NewServer(&sdk.Implementation{
		Name: hello.ServerInfo.Name, Title: hello.ServerInfo.Title, Version: hello.ServerInfo.Version,
	}, o)
	// Notifications must not overtake the response to the subscription.
	w.local.AddSendingMiddleware(onAck(w.start))
	w.local.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
			res, err := next(ctx, method, req)
			if err == nil && method == "resources/subscribe" {
				w.start()
			}
			return res, err
		}
	})
	return w.local
}

// subscribe notes where the log ends. It fails if the caller may not read events.
func (w *watcher) subscribe(ctx context.Context, req *sdk.SubscribeRequest) error {
	if req.Params.URI != eventsURI {
		return sdk.ResourceNotFoundError(req.Params.URI)
	}
	res, err := w.read(ctx, &sdk.ReadResourceRequest{Params: &sdk.ReadResourceParams{URI: eventsURI}})
	if err != nil {
		return err
	}
	var log eventsOut
	if len(res.Contents) != 1 {
		return fmt.Errorf("unexpected content of %s", eventsURI)
	}
	if err := json.Unmarshal([]byte(res.Contents[0].Text), &log); err != nil {
		return fmt.Errorf("unexpected content of %s: %w", eventsURI, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.after = log.LastSeq
	return nil
}

func (w *watcher) unsubscribe(context.Context, *sdk.UnsubscribeRequest) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.end != nil {
		w.end()
		w.end = nil
	}
	return nil
}

// start begins to follow the events of the org.
func (w *watcher) start() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.end != nil {
		return
	}
	ctx, cancel := context.WithCancel(w.ctx)
	w.end = cancel
	after := w.after
	w.work.Go(func() { w.follow(ctx, after) })
}

// stop ends everything, after the client has gone.
func (w *watcher) stop() {
	_ = w.unsubscribe(w.ctx, nil)
	w.work.Wait()
}

// Pauses of a watcher between an error of the stream and the next attempt. The client of the API
// has its own for broken connections.
const (
	firstPause   = time.Second
	longestPause = time.Minute
)

// follow notifies the client of events, and of the first error in a row, upon which the client reads
// the resource and learns the reason. Those that come while a notification is being written share
// the next one.
func (w *watcher) follow(ctx context.Context, after int64) {
	news := make(chan struct{}, 1)
	w.work.Go(func() {
		for range news {
			_ = w.local.ResourceUpdated(ctx, &sdk.ResourceUpdatedNotificationParams{URI: eventsURI})
		}
	})
	defer close(news)
	for pause, failed := firstPause, false; ; pause = min(2*pause, longestPause) {
		for e, err := range w.remote.Client.FollowEvents(ctx, client.EventsOptions{After: &after}) {
			known := failed
			switch {
			case err == nil:
				after, pause, failed, known = e.Seq, firstPause, false, false
			case errors.Is(err, client.ErrEventsReset):
				after, known = 0, false
			default:
				failed = true
			}
			if known {
				continue
			}
			select {
			case news <- struct{}{}:
			default:
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}
