package e2e

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	legacy "github.com/a2aproject/a2a-go/a2a"
	legacysrv "github.com/a2aproject/a2a-go/a2asrv"
	"github.com/a2aproject/a2a-go/a2asrv/eventqueue"
	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2acompat/a2av0"
	grpcv1 "github.com/a2aproject/a2a-go/v2/a2agrpc/v1"
	"github.com/a2aproject/a2a-go/v2/a2asrv"
	"google.golang.org/grpc"
)

// actor is a remote agent. Its messages are its script:
//
//	say X    an artifact with X in two chunks, and done
//	reply X  a message instead of a task
//	ask X    asks X, and says the response
//	wait X   works until released, then says X
//	refuse X rejects the task with X
//	pour X   an artifact in as many chunks of 200 KiB as X has letters, and one of 300 KiB
type actor struct {
	mu       sync.Mutex
	ids      []string          // of the messages that arrived
	tasks    map[string]string // the first message of each task
	canceled []string          // tasks
	started  chan string
	release  chan struct{}
	headers  http.Header // of the last request
}

func newActor() *actor {
	return &actor{started: make(chan string, 1000), release: make(chan struct{}), tasks: map[string]string{}}
}

func (a *actor) got() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]string(nil), a.ids...)
}

// messageOf returns the id of the message that made a task.
func (a *actor) messageOf(id string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.tasks[id]
}

func (a *actor) cancels() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.canceled)
}

// Execute implements a2asrv.AgentExecutor.
func (a *actor) Execute(ctx context.Context, e *a2asrv.ExecutorContext) iter.Seq2[a2a.Event, error] {
	return func(yield func(a2a.Event, error) bool) {
		a.mu.Lock()
		a.ids = append(a.ids, e.Message.ID)
		if e.StoredTask == nil {
			a.tasks[string(e.TaskID)] = e.Message.ID
		}
		a.mu.Unlock()
		verb, what, _ := strings.Cut(e.Message.Parts[0].Text(), " ")
		if e.StoredTask != nil {
			verb, what = "say", e.Message.Parts[0].Text()
		}
		if verb == "reply" {
			yield(a2a.NewMessage(a2a.MessageRoleAgent, a2a.NewTextPart(what)), nil)
			return
		}
		if e.StoredTask == nil && !yield(a2a.NewSubmittedTask(e, e.Message), nil) {
			return
		}
		if !yield(a2a.NewStatusUpdateEvent(e, a2a.TaskStateWorking, agentSays(e, "working on "+what)), nil) {
			return
		}
		a.started <- string(e.TaskID)
		switch verb {
		case "ask":
			yield(a2a.NewStatusUpdateEvent(e, a2a.TaskStateInputRequired, agentSays(e, what)), nil)
			return
		case "refuse":
			yield(a2a.NewStatusUpdateEvent(e, a2a.TaskStateRejected, agentSays(e, what)), nil)
			return
		case "wait":
			select {
			case <-a.release:
			case <-ctx.Done():
				return
			}
		}
		if verb == "pour" {
			a.pour(e, what, yield)
			return
		}
		first := a2a.NewArtifactEvent(e, a2a.NewTextPart(what))
		first.Artifact.Name = "result"
		last := a2a.NewArtifactUpdateEvent(e, first.Artifact.ID, a2a.NewTextPart("!"))
		last.LastChunk = true
		_ = yield(first, nil) && yield(last, nil) && yield(a2a.NewStatusUpdateEvent(e, a2a.TaskStateCompleted, nil), nil)
	}
}

// pour sends an artifact that is too large for streams over gRPC.
func (a *actor) pour(e *a2asrv.ExecutorContext, letters string, yield func(a2a.Event, error) bool) {
	first := a2a.NewArtifactEvent(e, a2a.NewTextPart("poured: "))
	first.Artifact.Name = "result"
	next := yield(first, nil)
	for i := range letters {
		next = next && yield(a2a.NewArtifactUpdateEvent(e, first.Artifact.ID,
			a2a.NewTextPart(strings.Repeat(letters[i:i+1], 200<<10))), nil)
	}
	last := a2a.NewArtifactUpdateEvent(e, first.Artifact.ID, a2a.NewTextPart(strings.Repeat("!", 300<<10)))
	last.LastChunk = true
	_ = next && yield(last, nil) && yield(a2a.NewStatusUpdateEvent(e, a2a.TaskStateCompleted, nil), nil)
}

func agentSays(e *a2asrv.ExecutorContext, s string) *a2a.Message {
	return a2a.NewMessageForTask(a2a.MessageRoleAgent, e, a2a.NewTextPart(s))
}

// Cancel implements a2asrv.AgentExecutor.
func (a *actor) Cancel(_ context.Context, e *a2asrv.ExecutorContext) iter.Seq2[a2a.Event, error] {
	return func(yield func(a2a.Event, error) bool) {
		a.mu.Lock()
		a.canceled = append(a.canceled, string(e.TaskID))
		a.mu.Unlock()
		yield(a2a.NewStatusUpdateEvent(e, a2a.TaskStateCanceled, nil), nil)
	}
}

// old is an actor behind the official server of version 0.3.
type old struct{ a *actor }

// Execute implements legacysrv.AgentExecutor.
func (o old) Execute(ctx context.Context, r *legacysrv.RequestContext, q eventqueue.Queue) error {
	text := ""
	if p, ok := r.Message.Parts[0].(legacy.TextPart); ok {
		text = p.Text
	}
	o.a.mu.Lock()
	o.a.ids = append(o.a.ids, r.Message.ID)
	o.a.mu.Unlock()
	verb, what, _ := strings.Cut(text, " ")
	if r.StoredTask != nil {
		verb, what = "say", text
	}
	says := func(s string) *legacy.Message {
		return legacy.NewMessageForTask(legacy.MessageRoleAgent, r, legacy.TextPart{Text: s})
	}
	status := func(s legacy.TaskState, m *legacy.Message) error {
		e := legacy.NewStatusUpdateEvent(r, s, m)
		e.Final = s.Terminal() || s == legacy.TaskStateInputRequired
		return q.Write(ctx, e)
	}
	if verb == "reply" {
		return q.Write(ctx, legacy.NewMessage(legacy.MessageRoleAgent, legacy.TextPart{Text: what}))
	}
	if r.StoredTask == nil {
		if err := q.Write(ctx, legacy.NewSubmittedTask(r, r.Message)); err != nil {
			return err
		}
	}
	if err := status(legacy.TaskStateWorking, says("working on "+what)); err != nil {
		return err
	}
	o.a.started <- string(r.TaskID)
	switch verb {
	case "ask":
		return status(legacy.TaskStateInputRequired, says(what))
	case "refuse":
		return status(legacy.TaskStateRejected, says(what))
	case "wait":
		select {
		case <-o.a.release:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	first := legacy.NewArtifactEvent(r, legacy.TextPart{Text: what})
	first.Artifact.Name = "result"
	last := legacy.NewArtifactUpdateEvent(r, first.Artifact.ID, legacy.TextPart{Text: "!"})
	last.LastChunk = true
	for _, e := range []legacy.Event{first, last} {
		if err := q.Write(ctx, e); err != nil {
			return err
		}
	}
	return status(legacy.TaskStateCompleted, nil)
}

// Cancel implements legacysrv.AgentExecutor.
func (o old) Cancel(ctx context.Context, r *legacysrv.RequestContext, q eventqueue.Queue) error {
	o.a.mu.Lock()
	o.a.canceled = append(o.a.canceled, string(r.TaskID))
	o.a.mu.Unlock()
	e := legacy.NewStatusUpdateEvent(r, legacy.TaskStateCanceled, nil)
	e.Final = true
	return q.Write(ctx, e)
}

// remote is a server of a remote agent at a fixed address, which can be stopped and started again.
type remote struct {
	*actor
	t       *testing.T
	addr    string
	handler http.Handler
	grpc    bool
	stop    func()
}

func (r *remote) url() string { return "http://" + r.addr }

// newRemote starts a remote whose card offers one interface: a binding of a version.
func newRemote(t *testing.T, binding, version string, streaming bool) *remote {
	t.Helper()
	r := &remote{actor: newActor(), t: t, grpc: binding == "GRPC"}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.addr = l.Addr().String()
	r.handler = r.serverOf(binding, version, streaming)
	r.listen(l)
	t.Cleanup(func() { r.stop() })
	return r
}

// forget replaces the server by one that knows no task.
func (r *remote) forget(binding, version string, streaming bool) {
	h := r.serverOf(binding, version, streaming)
	r.wrap(func(http.Handler) http.Handler { return h })
}

func (r *remote) serverOf(binding, version string, streaming bool) http.Handler {
	quiet := a2asrv.WithLogger(slog.New(slog.DiscardHandler))
	handler := a2asrv.NewHandler(r.actor, quiet)
	mux := http.NewServeMux()
	url := r.url()
	switch binding + " " + version {
	case "JSONRPC 1.0":
		mux.Handle("POST /{$}", a2asrv.NewJSONRPCHandler(handler))
	case "HTTP+JSON 1.0":
		mux.Handle("/", a2asrv.NewRESTHandler(handler))
	case "JSONRPC 0.3":
		mux.Handle("POST /{$}", legacysrv.NewJSONRPCHandler(legacysrv.NewHandler(old{r.actor})))
	case "HTTP+JSON 0.3":
		mux.Handle("/", a2av0.NewRESTHandler(handler))
	case "GRPC 1.0":
		s := grpc.NewServer()
		grpcv1.NewHandler(handler).RegisterWith(s)
		mux.Handle("/", s)
		url = r.addr
	default:
		r.t.Fatalf("unknown interface %s %s", binding, version)
	}
	card := fmt.Sprintf(`{"name": "Remote", "description": "Plays a remote agent.", "version": "3.2.1",
		"capabilities": {"streaming": %t}, "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
		"skills": [{"id": "play", "name": "Play", "description": "Plays.", "tags": ["theatre", "bad\u0007tag"]}],
		"securityRequirements": [{"schemes": {"x": {"list": []}}}], `, streaming)
	if version == "1.0" {
		card += fmt.Sprintf(`"supportedInterfaces": [{"url": %q, "protocolBinding": %q, "protocolVersion": "1.0"}]}`, url, binding)
	} else {
		card += fmt.Sprintf(`"protocolVersion": "0.3.0", "url": %q, "preferredTransport": %q}`, url, binding)
	}
	mux.HandleFunc("GET /.well-known/agent-card.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(card))
	})
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.mu.Lock()
		r.headers = q.Header.Clone()
		r.mu.Unlock()
		mux.ServeHTTP(w, q)
	})
}

func (r *remote) handle(w http.ResponseWriter, q *http.Request) {
	r.mu.Lock()
	h := r.handler
	r.mu.Unlock()
	h.ServeHTTP(w, q)
}

// wrap puts a handler in front of the server.
func (r *remote) wrap(front func(next http.Handler) http.Handler) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.handler = front(r.handler)
}

func (r *remote) listen(l net.Listener) {
	s := &http.Server{Handler: http.HandlerFunc(r.handle), Protocols: new(http.Protocols)}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	go func() { _ = s.Serve(l) }()
	r.stop = func() { _ = s.Close() }
}

// start starts the server again at its address.
func (r *remote) start() {
	r.t.Helper()
	l, err := net.Listen("tcp", r.addr)
	if err != nil {
		r.t.Fatal(err)
	}
	r.listen(l)
}
