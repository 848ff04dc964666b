package main

import (
	"context"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2asrv"
)

// serveSDK is the peer for tasks: the official Go SDK as in its examples, with its default handler
// and its in-memory store. It checks no key and stores nothing.
func serveSDK(out io.Writer) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ready", func(http.ResponseWriter, *http.Request) {})
	hang := &hangs{}
	mux.HandleFunc("GET /hanging", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, hang.tasks.Load()) })
	mux.HandleFunc("GET /{agent}/.well-known/agent-card.json", serveCard)
	for path, executor := range map[string]a2asrv.AgentExecutor{
		"POST /once": atOnce{}, "POST /steps": inSteps{}, "POST /hang": hang,
	} {
		handler := a2asrv.NewHandler(executor, a2asrv.WithLogger(slog.New(slog.DiscardHandler)))
		mux.Handle(path, a2asrv.NewJSONRPCHandler(handler))
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(out, "http://%s\n", l.Addr()); err != nil {
		return err
	}
	return http.Serve(l, mux)
}

// atOnce is an agent that returns what it was sent, like the built-in echo. It is the cheapest
// agent that the SDK allows: one event, a task that is already completed, where the echo's task has
// four events.
type atOnce struct{}

// Execute implements a2asrv.AgentExecutor.
func (atOnce) Execute(_ context.Context, e *a2asrv.ExecutorContext) iter.Seq2[a2a.Event, error] {
	return func(yield func(a2a.Event, error) bool) {
		t := a2a.NewSubmittedTask(e, e.Message)
		t.Status.State = a2a.TaskStateCompleted
		t.Artifacts = []*a2a.Artifact{{ID: a2a.NewArtifactID(), Name: "echo", Parts: e.Message.Parts}}
		yield(t, nil)
	}
}

// Cancel implements a2asrv.AgentExecutor. No task lives long enough to be canceled.
func (atOnce) Cancel(context.Context, *a2asrv.ExecutorContext) iter.Seq2[a2a.Event, error] {
	return func(func(a2a.Event, error) bool) {}
}

// inSteps sends the same events as the built-in echo.
type inSteps struct{ atOnce }

// Execute implements a2asrv.AgentExecutor.
func (inSteps) Execute(_ context.Context, e *a2asrv.ExecutorContext) iter.Seq2[a2a.Event, error] {
	return func(yield func(a2a.Event, error) bool) {
		_ = yield(a2a.NewSubmittedTask(e, e.Message), nil) &&
			yield(a2a.NewStatusUpdateEvent(e, a2a.TaskStateWorking, nil), nil) &&
			yield(a2a.NewArtifactEvent(e, e.Message.Parts...), nil) &&
			yield(a2a.NewStatusUpdateEvent(e, a2a.TaskStateCompleted, nil), nil)
	}
}

// hangs accepts tasks and never ends them.
type hangs struct {
	atOnce
	tasks atomic.Int64
}

// Execute implements a2asrv.AgentExecutor.
func (h *hangs) Execute(ctx context.Context, e *a2asrv.ExecutorContext) iter.Seq2[a2a.Event, error] {
	return func(yield func(a2a.Event, error) bool) {
		if yield(a2a.NewSubmittedTask(e, e.Message), nil) {
			h.tasks.Add(1)
			<-ctx.Done()
		}
	}
}

// serveCard responds with the card of an agent, for relays.
func serveCard(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"name":"Remote","description":"Remote agent.","version":"1","capabilities":{"streaming":true},
		"defaultInputModes":["text/plain"],"defaultOutputModes":["text/plain"],"skills":[],
		"supportedInterfaces":[{"url":%q,"protocolBinding":"JSONRPC","protocolVersion":"1.0"}]}`,
		"http://"+r.Host+"/"+r.PathValue("agent"))
}
