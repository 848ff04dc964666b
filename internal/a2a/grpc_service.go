package a2a

import (
	"context"
	"math"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/parley-dev/parley/internal/budget"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/stream"
	"github.com/parley-dev/parley/internal/task"
	"github.com/parley-dev/parley/internal/wire"
)

// grpcService is version 1.0 over gRPC. It does the same as v1.go.
type grpcService struct {
	a2apb.UnimplementedA2AServiceServer
	s *server
}

type eventStream = grpc.ServerStreamingServer[a2apb.StreamResponse]

// unary runs a method for the agent of the request.
func unary[T any](
	ctx context.Context, g *grpcService, tenant string, method func(c *call) (T, error),
) (out T, err error) {
	c, err := g.s.grpcCall(ctx, tenant)
	return runUnary(ctx, c, err, method)
}

// runUnary runs a method unless its call was refused.
func runUnary[T any](ctx context.Context, c *call, err error, method func(c *call) (T, error)) (out T, _ error) {
	if err == nil {
		out, err = method(c)
		if c.nameQuota(); err == nil {
			return out, nil
		}
	}
	var none T
	return none, grpcError(ctx, err)
}

func (g *grpcService) SendMessage(
	ctx context.Context, r *a2apb.SendMessageRequest,
) (*a2apb.SendMessageResponse, error) {
	return unary(ctx, g, r.GetTenant(), func(c *call) (*a2apb.SendMessageResponse, error) {
		p, err := sendFromProto(r)
		if err != nil {
			return nil, err
		}
		r.Message, r.Metadata = nil, nil // they may be large, and are not needed any more
		c.dropDecoded()
		t, err := c.sendOfficial(&p)
		if err != nil {
			return nil, err
		}
		c.takeStored(&t)
		out := &a2apb.SendMessageResponse{}
		if p.isReply(&t) {
			out.Payload = &a2apb.SendMessageResponse_Message{Message: protoMessage(t.ID, t.ContextID, t.Message)}
		} else {
			out.Payload = &a2apb.SendMessageResponse_Task{Task: protoTask(&t, p.history, true)}
		}
		return out, nil
	})
}

func (g *grpcService) SendStreamingMessage(r *a2apb.SendMessageRequest, out eventStream) error {
	ctx := out.Context()
	c, err := g.s.grpcCall(ctx, r.GetTenant())
	if err != nil {
		return grpcError(ctx, err)
	}
	p, err := sendFromProto(r)
	if err != nil {
		return grpcError(ctx, err)
	}
	r.Message, r.Metadata = nil, nil
	c.dropDecoded()
	if err := c.s.router.Park(c, httpx.Stream); err != nil {
		return grpcError(ctx, err)
	}
	t, events, err := c.s.Tasks.Stream(c, c.to, p.request, c.s.idle())
	c.nameQuota()
	if err != nil {
		return grpcError(ctx, err)
	}
	c.s.router.Yield(c)
	return c.streamProto(out, &t, events, p.history)
}

func (g *grpcService) SubscribeToTask(r *a2apb.SubscribeToTaskRequest, out eventStream) error {
	ctx := out.Context()
	c, err := g.s.grpcCall(ctx, r.GetTenant())
	if err != nil {
		return grpcError(ctx, err)
	}
	if err := required("id", r.GetId()); err != nil {
		return grpcError(ctx, err)
	}
	if err := c.s.router.Park(c, httpx.Stream); err != nil {
		return grpcError(ctx, err)
	}
	t, events, err := c.followOfficial(r.GetId(), 0, false)
	if err != nil {
		return grpcError(ctx, err)
	}
	c.s.router.Yield(c)
	return c.streamProto(out, &t, events, wire.AllHistory)
}

// streamProto sends a task and then its events, until it rests.
func (c *call) streamProto(out eventStream, t *task.Task, events eventSeq, history int) error {
	t, err := c.sendFirst(t, func(t *task.Task) error {
		return out.Send(&a2apb.StreamResponse{Payload: &a2apb.StreamResponse_Task{Task: protoTask(t, history, true)}})
	})
	if err != nil || t.State.Terminal() {
		drop(events)
		return err
	}
	return c.followGRPC(t, events, func(e *task.Event) error { return out.Send(protoEvent(t, e)) })
}

// followGRPC sends the events of a task until it rests. send encodes and sends an event.
func (c *call) followGRPC(t *task.Task, events eventSeq, send func(*task.Event) error) error {
	checked := time.Now()
	for e, err := range events {
		if err != nil {
			return grpcError(c, err)
		}
		if now := time.Now(); c.s.recheckDue(checked, now) {
			checked = now
			if !c.stillAllowed(t) {
				return status.Error(codes.Unauthenticated,
					"the key was revoked, has expired, or may no longer call this agent")
			}
		}
		if e.Seq == 0 || e.Kind == task.TurnEvent || e.Seq <= t.Seq {
			continue
		}
		if err := c.sendEvent(&e, send); err != nil {
			return err
		}
		if e.Kind == task.StatusEvent && e.State.Rests() {
			return nil
		}
	}
	if err := c.Err(); err != nil {
		return status.FromContextError(err).Err()
	}
	return status.Error(codes.Unavailable, "the server is stopping; subscribe to the task again")
}

// sendFirst sends the current task and returns it without content, to encode its events with. Without
// memory for the content it fails: events up to that of the status are not sent, so a client would
// never get what the status alone omits. It can send its message again, which is recognized.
func (c *call) sendFirst(t *task.Task, send func(*task.Task) error) (*task.Task, error) {
	if len(t.History) == 0 { // not a new task: its content was not loaded
		whole, err := c.s.Tasks.Get(c, c.to, t.ID, task.All)
		if err != nil {
			return t, grpcError(c, err)
		}
		t = &whole
	}
	if err := c.takeValues(t); err != nil {
		return t, grpcError(c, err)
	}
	err := c.sendProto(func() error { return send(t) }, t.Size > smallTask)
	httpx.ReleaseMemory(c)
	return names(t), err
}

// sendProto sends a message of a stream. If the message is large, sendProto returns when the client
// has received it; gRPC itself only hands it to the goroutine that writes.
func (c *call) sendProto(send func() error, large bool) error {
	x := rpcOf(c)
	x.sends++
	err := send()
	budget.From(c).Settle()
	if err == nil && large {
		x.out.Sent(c, x.sends)
	}
	return err
}

// sendEvent sends an event. The memory of a large encoding is counted: gRPC encodes it again for
// every reader.
func (c *call) sendEvent(e *task.Event, send func(*task.Event) error) error {
	if stream.Large(e) {
		worked, release, err := budget.From(c).Borrow(c, e.Size()+eventValues(e)*valueSize)
		if err != nil {
			return grpcError(c, err)
		}
		worked()
		defer release()
	}
	return c.sendProto(func() error { return send(e) }, stream.Large(e))
}

func (g *grpcService) GetTask(ctx context.Context, r *a2apb.GetTaskRequest) (*a2apb.Task, error) {
	return unary(ctx, g, r.GetTenant(), func(c *call) (*a2apb.Task, error) {
		history, fields := historyFromProto(r.HistoryLength, wire.AllHistory)
		if r.GetId() == "" {
			fields = append(fields, mistake("is required", "id"))
		}
		if err := invalid(fields); err != nil {
			return nil, err
		}
		t, err := c.s.Tasks.Get(c, c.to, r.GetId(), task.Content{History: history > 0, Artifacts: true})
		if err == nil {
			err = c.takeValues(&t)
		}
		if err != nil {
			return nil, err
		}
		return protoTask(&t, history, true), nil
	})
}

func (g *grpcService) CancelTask(ctx context.Context, r *a2apb.CancelTaskRequest) (*a2apb.Task, error) {
	return unary(ctx, g, r.GetTenant(), func(c *call) (*a2apb.Task, error) {
		if err := required("id", r.GetId()); err != nil {
			return nil, err
		}
		t, err := c.s.Tasks.Cancel(c, c.to, r.GetId(), task.All)
		if err != nil {
			return nil, err
		}
		c.takeStored(&t)
		return protoTask(&t, wire.AllHistory, true), nil
	})
}

func (g *grpcService) ListTasks(ctx context.Context, r *a2apb.ListTasksRequest) (*a2apb.ListTasksResponse, error) {
	return unary(ctx, g, r.GetTenant(), func(c *call) (*a2apb.ListTasksResponse, error) {
		own, history, err := listFromProto(r)
		if err != nil {
			return nil, err
		}
		page, err := c.s.Tasks.Own(c, c.to, own)
		if err != nil {
			return nil, err
		}
		out := &a2apb.ListTasksResponse{
			NextPageToken: page.Next, PageSize: int32(page.Limit), TotalSize: int32(min(page.Total, math.MaxInt32)),
		}
		for i := range page.Tasks {
			if err := c.takeValues(&page.Tasks[i]); err != nil {
				return nil, err
			}
			out.Tasks = append(out.Tasks, protoTask(&page.Tasks[i], history, own.Artifacts))
		}
		return out, nil
	})
}

func (g *grpcService) CreateTaskPushNotificationConfig(
	ctx context.Context, r *a2apb.TaskPushNotificationConfig,
) (*a2apb.TaskPushNotificationConfig, error) {
	return unary(ctx, g, r.GetTenant(), func(c *call) (*a2apb.TaskPushNotificationConfig, error) {
		if err := required("taskId", r.GetTaskId()); err != nil {
			return nil, err
		}
		p, err := c.s.Tasks.SetPush(c, c.to, r.GetTaskId(), pushFromProto(r))
		return protoPush(&p), err
	})
}

func (g *grpcService) GetTaskPushNotificationConfig(
	ctx context.Context, r *a2apb.GetTaskPushNotificationConfigRequest,
) (*a2apb.TaskPushNotificationConfig, error) {
	return unary(ctx, g, r.GetTenant(), func(c *call) (*a2apb.TaskPushNotificationConfig, error) {
		if err := required("taskId", r.GetTaskId(), "id", r.GetId()); err != nil {
			return nil, err
		}
		p, err := c.s.Tasks.GetPush(c, c.to, r.GetTaskId(), r.GetId())
		return protoPush(&p), err
	})
}

func (g *grpcService) ListTaskPushNotificationConfigs(
	ctx context.Context, r *a2apb.ListTaskPushNotificationConfigsRequest,
) (*a2apb.ListTaskPushNotificationConfigsResponse, error) {
	return unary(ctx, g, r.GetTenant(), func(c *call) (*a2apb.ListTaskPushNotificationConfigsResponse, error) {
		if err := required("taskId", r.GetTaskId()); err != nil {
			return nil, err
		}
		if r.GetPageToken() != "" {
			return nil, newInvalid("pageToken", "must be empty: the list has one page")
		}
		list, err := c.s.Tasks.ListPush(c, c.to, r.GetTaskId())
		out := &a2apb.ListTaskPushNotificationConfigsResponse{}
		for i := range list {
			out.Configs = append(out.Configs, protoPush(&list[i]))
		}
		return out, err
	})
}

func (g *grpcService) DeleteTaskPushNotificationConfig(
	ctx context.Context, r *a2apb.DeleteTaskPushNotificationConfigRequest,
) (*emptypb.Empty, error) {
	return unary(ctx, g, r.GetTenant(), func(c *call) (*emptypb.Empty, error) {
		if err := required("taskId", r.GetTaskId(), "id", r.GetId()); err != nil {
			return nil, err
		}
		return &emptypb.Empty{}, c.s.Tasks.DeletePush(c, c.to, r.GetTaskId(), r.GetId())
	})
}

func (g *grpcService) GetExtendedAgentCard(
	ctx context.Context, r *a2apb.GetExtendedAgentCardRequest,
) (*a2apb.AgentCard, error) {
	return unary(ctx, g, r.GetTenant(), func(c *call) (*a2apb.AgentCard, error) {
		text, err := c.s.appendAgentCard(c, nil, cardForm{version: version1, extended: true})
		if err != nil {
			return nil, err
		}
		card := &a2apb.AgentCard{}
		return card, protojson.Unmarshal(text, card) // the text is ProtoJSON
	})
}

// required returns an error for empty members, which are given as name, value pairs.
func required(members ...string) error {
	var f []errs.Field
	for i := 0; i < len(members); i += 2 {
		if members[i+1] == "" {
			f = append(f, mistake("is required", members[i]))
		}
	}
	return invalid(f)
}
