package a2a

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/task"
)

// openGRPC starts a stream on a task without a worker, and reads its first message.
func openGRPC(
	t *testing.T, ctx context.Context, c a2apb.A2AServiceClient,
) grpc.ServerStreamingClient[a2apb.StreamResponse] {
	t.Helper()
	st, err := c.SendStreamingMessage(ctx, protoSend("bot", "hello"))
	if err != nil {
		t.Fatal(err)
	}
	if first, err := st.Recv(); err != nil || first.GetTask().GetId() == "" {
		t.Fatalf("first message = %v, %v, want a task", first, err)
	}
	return st
}

func TestAGRPCStreamEndsWithItsKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fast)
	c := a2apb.NewA2AServiceClient(dial(t, w.h2c()))
	secret, key := w.orgs.Key("acme", "user:ada", "svc:a2a:write")
	st := openGRPC(t, as(t.Context(), secret), c)
	if err := w.operator.RevokeKey(t.Context(), "acme", key); err != nil {
		t.Fatal(err)
	}
	if err := w.auth.Refresh(t.Context()); err != nil { // as the server does every second
		t.Fatal(err)
	}
	if e, err := st.Recv(); status.Code(err) != codes.Unauthenticated {
		t.Errorf("got %v, %v, want Unauthenticated", e, err)
	}
}

func TestGRPCStreamsAndWaitsEndWhenTheServerStops(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := a2apb.NewA2AServiceClient(dial(t, w.h2c()))
	ctx := as(t.Context(), w.caller("user:ada"))
	st := openGRPC(t, ctx, c)
	p := w.post("bot")
	w.claim(p)
	waiting := make(chan error, 1)
	go func() {
		// A worker was connected a moment ago, so the call waits.
		res, err := c.SendMessage(ctx, protoSend("bot", "wait"))
		if err == nil && res.GetTask().GetStatus().GetState() != a2apb.TaskState_TASK_STATE_SUBMITTED {
			err = fmt.Errorf("response = %v, want TASK_STATE_SUBMITTED", res)
		}
		waiting <- err
	}()
	select {
	case err := <-waiting:
		t.Fatalf("the call returned %v, want it to wait", err)
	case <-time.After(100 * time.Millisecond):
	}
	w.tasks.Stop()
	for {
		_, err := st.Recv()
		if err == nil {
			continue // the claim
		}
		if status.Code(err) != codes.Unavailable {
			t.Error(err)
		}
		break
	}
	if err := <-waiting; err != nil {
		t.Error(err)
	}
}

// The server's timeouts are not for streams and waits.
func TestAGRPCStreamOutlivesTheTimeouts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fast)
	const timeout = time.Second // far more than a stream takes to begin
	addr := w.h2c(func(s *http.Server) { s.WriteTimeout, s.ReadTimeout = timeout, timeout })
	c := a2apb.NewA2AServiceClient(dial(t, addr))
	ctx := as(t.Context(), w.caller("user:ada"))
	st := openGRPC(t, ctx, c)
	p := w.post("bot")
	lease := w.claim(p)
	time.Sleep(timeout + timeout/2)
	w.report(p, lease, task.Report{State: task.Working, Message: says("still here")})
	time.Sleep(timeout + timeout/2)
	w.report(p, lease, task.Report{State: task.Completed})
	var last a2apb.TaskState
	for {
		e, err := st.Recv()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		last = e.GetStatusUpdate().GetStatus().GetState()
	}
	if last != a2apb.TaskState_TASK_STATE_COMPLETED {
		t.Errorf("last state = %v, want TASK_STATE_COMPLETED", last)
	}
	// The agent was connected a moment ago, so a call waits for it.
	answered := make(chan error, 1)
	go func() {
		res, err := c.SendMessage(ctx, protoSend("bot", "again"))
		if err == nil && res.GetTask().GetStatus().GetState() != a2apb.TaskState_TASK_STATE_COMPLETED {
			err = fmt.Errorf("response = %v, want TASK_STATE_COMPLETED", res)
		}
		answered <- err
	}()
	time.Sleep(timeout + timeout/2)
	w.report(p, w.claim(p), task.Report{State: task.Completed})
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

// Some readers receive nothing; the others, and the agent, must not be affected.
func TestAStalledGRPCReaderDelaysNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	addr := w.h2c()
	ctx := as(t.Context(), w.caller("user:ada"))
	p := w.post("bot")
	st := openGRPC(t, ctx, a2apb.NewA2AServiceClient(dial(t, addr)))
	lease := w.claim(p)
	list, err := a2apb.NewA2AServiceClient(dial(t, addr)).ListTasks(ctx, &a2apb.ListTasksRequest{Tenant: "bot"})
	if err != nil {
		t.Fatal(err)
	}
	stalled := a2apb.NewA2AServiceClient(dial(t, addr))
	for range 3 {
		request := &a2apb.SubscribeToTaskRequest{Tenant: "bot", Id: list.GetTasks()[0].GetId()}
		sub, err := stalled.SubscribeToTask(ctx, request)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := sub.Header(); err != nil {
			t.Fatal(err)
		}
	}
	const pieces, size = 14, 1 << 20 // more than flow control and the sockets hold
	go func() {
		for i := range pieces {
			chunk := artifact(fmt.Sprint(i), strings.Repeat("x", size))
			w.report(p, lease, task.Report{Artifacts: []task.ArtifactUpdate{chunk}})
		}
		w.report(p, lease, task.Report{State: task.Completed})
	}()
	got := 0
	for {
		e, err := st.Recv()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e.GetArtifactUpdate() != nil {
			got++
		}
	}
	if got != pieces {
		t.Errorf("artifacts = %d, want %d", got, pieces)
	}
}

// A panic ends only its call, and is logged; a client that goes away ends its request.
func TestGRPCSurvives(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fast, func(_ *httpx.Options, o *Options) { o.Directory = nil }) // reading a card panics
	c := a2apb.NewA2AServiceClient(dial(t, w.h2c()))
	ctx := as(t.Context(), w.caller("user:ada"))
	_, err := c.GetExtendedAgentCard(ctx, &a2apb.GetExtendedAgentCardRequest{Tenant: "bot"})
	failsGRPC(t, err, codes.Internal, "INTERNAL_ERROR")
	if strings.Contains(status.Convert(err).Message(), "nil pointer") {
		t.Error(err)
	}
	waitFor(t, func() bool { return strings.Contains(w.logs.String(), "nil pointer") })

	gone, cancel := context.WithCancel(ctx)
	openGRPC(t, gone, c)
	cancel()
	if _, err := c.GetTask(ctx, &a2apb.GetTaskRequest{Tenant: "bot", Id: "t"}); status.Code(err) != codes.NotFound {
		t.Error(err)
	}
}

func waitFor(t *testing.T, ok func() bool) {
	t.Helper()
	for range 3000 { // half a minute
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("the condition is still false after 30 s")
}

// A request without a key is refused before its message is read.
func TestGRPCRefusesLargeMessagesOfStrangersUnread(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := a2apb.NewA2AServiceClient(dial(t, w.h2c()))
	_, err := c.SendMessage(t.Context(), protoSend("echo", strings.Repeat("x", 3<<20)))
	failsGRPC(t, err, codes.Unauthenticated, "UNAUTHENTICATED")
}

func TestGRPCOverTLS(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	srv := httptest.NewUnstartedServer(w.handler)
	srv.EnableHTTP2 = true
	srv.StartTLS()
	t.Cleanup(srv.Close)
	conn, err := grpc.NewClient(srv.Listener.Addr().String(),
		grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{InsecureSkipVerify: true})))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	ctx := as(t.Context(), w.caller("user:ada"))
	res, err := a2apb.NewA2AServiceClient(conn).SendMessage(ctx, protoSend("echo", "hello"))
	if err != nil || res.GetTask().GetStatus().GetState() != a2apb.TaskState_TASK_STATE_COMPLETED {
		t.Errorf("got %v, %v, want TASK_STATE_COMPLETED", res, err)
	}
}
