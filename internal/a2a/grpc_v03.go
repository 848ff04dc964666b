package a2a

import (
	"cmp"
	"context"
	"encoding/json"
	"math"

	v03pb "github.com/a2aproject/a2a-go/a2apb"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/task"
	"github.com/parley-dev/parley/internal/wire"
)

// grpcV03Service is version 0.3 over gRPC. It does the same as v03rest.go.
type grpcV03Service struct {
	v03pb.UnimplementedA2AServiceServer
	s *server
}

type v03Stream = grpc.ServerStreamingServer[v03pb.StreamResponse]

// grpcCall finds the agent. Requests of this version do not name it.
func (g *grpcV03Service) grpcCall(ctx context.Context) (*call, error) {
	only, ok := httpx.CallerOf(ctx).Scopes.OnlyAgent()
	if !ok {
		return nil, newError(codeInvalidParams, "gRPC of version 0.3 cannot name an agent; "+
			"use a key that is restricted to one agent by the scope agent:<id>, or another binding")
	}
	return g.s.grpcCall(ctx, only)
}

func v03Unary[T any](ctx context.Context, g *grpcV03Service, method func(c *call) (T, error)) (T, error) {
	c, err := g.grpcCall(ctx)
	return runUnary(ctx, c, err, method)
}

func (g *grpcV03Service) SendMessage(
	ctx context.Context, r *v03pb.SendMessageRequest,
) (*v03pb.SendMessageResponse, error) {
	return v03Unary(ctx, g, func(c *call) (*v03pb.SendMessageResponse, error) {
		p, err := v03SendFromProto(r)
		if err != nil {
			return nil, err
		}
		r.Request, r.Metadata = nil, nil // they may be large, and are not needed any more
		c.dropDecoded()
		t, err := c.sendOfficial(&p)
		if err != nil {
			return nil, err
		}
		c.takeStored(&t)
		out := &v03pb.SendMessageResponse{}
		if p.isReply(&t) {
			out.Payload = &v03pb.SendMessageResponse_Msg{Msg: v03ProtoMessage(&t, t.Message)}
		} else {
			out.Payload = &v03pb.SendMessageResponse_Task{Task: v03ProtoTask(&t, p.history, true)}
		}
		return out, nil
	})
}

func (g *grpcV03Service) SendStreamingMessage(r *v03pb.SendMessageRequest, out v03Stream) error {
	return g.stream(out, func(c *call) (_ *task.Task, _ eventSeq, history int, err error) {
		p, err := v03SendFromProto(r)
		if err != nil {
			return nil, nil, 0, err
		}
		r.Request, r.Metadata = nil, nil
		c.dropDecoded()
		t, events, err := c.s.Tasks.Stream(c, c.to, p.request, c.s.idle())
		c.nameQuota()
		return &t, events, p.history, p.asSent(err)
	})
}

func (g *grpcV03Service) TaskSubscription(r *v03pb.TaskSubscriptionRequest, out v03Stream) error {
	return g.stream(out, func(c *call) (_ *task.Task, _ eventSeq, history int, err error) {
		id, _ := named(r.GetName())
		if err := required("name", id); err != nil {
			return nil, nil, 0, err
		}
		t, events, err := c.followOfficial(id, 0, false)
		return &t, events, wire.AllHistory, err
	})
}

// stream sends the task that open returns and then its events, until it rests.
func (g *grpcV03Service) stream(out v03Stream, open func(*call) (*task.Task, eventSeq, int, error)) error {
	ctx := out.Context()
	c, err := g.grpcCall(ctx)
	if err != nil {
		return grpcError(ctx, err)
	}
	if err := c.s.router.Park(c, httpx.Stream); err != nil {
		return grpcError(ctx, err)
	}
	t, events, history, err := open(c)
	if err != nil {
		return grpcError(ctx, err)
	}
	c.s.router.Yield(c)
	t, err = c.sendFirst(t, func(t *task.Task) error {
		m := &v03pb.StreamResponse{Payload: &v03pb.StreamResponse_Task{Task: v03ProtoTask(t, history, true)}}
		return out.Send(m)
	})
	if err != nil || t.State.Terminal() {
		drop(events)
		return err
	}
	return c.followGRPC(t, events, func(e *task.Event) error { return out.Send(v03ProtoEvent(t, e)) })
}

func (g *grpcV03Service) GetTask(ctx context.Context, r *v03pb.GetTaskRequest) (*v03pb.Task, error) {
	return v03Unary(ctx, g, func(c *call) (*v03pb.Task, error) {
		id, _ := named(r.GetName())
		history, fields := v03History(r.GetHistoryLength())
		if id == "" {
			fields = append(fields, mistake("is required", "name"))
		}
		if err := invalid(fields); err != nil {
			return nil, err
		}
		t, err := c.s.Tasks.Get(c, c.to, id, task.Content{History: history > 0, Artifacts: true})
		if err == nil {
			err = c.takeValues(&t)
		}
		if err != nil {
			return nil, err
		}
		return v03ProtoTask(&t, history, true), nil
	})
}

func (g *grpcV03Service) CancelTask(ctx context.Context, r *v03pb.CancelTaskRequest) (*v03pb.Task, error) {
	return v03Unary(ctx, g, func(c *call) (*v03pb.Task, error) {
		id, _ := named(r.GetName())
		if err := required("name", id); err != nil {
			return nil, err
		}
		t, err := c.s.Tasks.Cancel(c, c.to, id, task.All)
		if err != nil {
			return nil, err
		}
		c.takeStored(&t)
		return v03ProtoTask(&t, wire.AllHistory, true), nil
	})
}

func (g *grpcV03Service) ListTasks(ctx context.Context, r *v03pb.ListTasksRequest) (*v03pb.ListTasksResponse, error) {
	return v03Unary(ctx, g, func(c *call) (*v03pb.ListTasksResponse, error) {
		own, history, err := v03ListFromProto(r)
		if err != nil {
			return nil, err
		}
		page, err := c.s.Tasks.Own(c, c.to, own)
		if err != nil {
			return nil, err
		}
		out := &v03pb.ListTasksResponse{NextPageToken: page.Next, TotalSize: int32(min(page.Total, math.MaxInt32))}
		for i := range page.Tasks {
			if err := c.takeValues(&page.Tasks[i]); err != nil {
				return nil, err
			}
			out.Tasks = append(out.Tasks, v03ProtoTask(&page.Tasks[i], history, own.Artifacts))
		}
		return out, nil
	})
}

func (g *grpcV03Service) CreateTaskPushNotificationConfig(
	ctx context.Context, r *v03pb.CreateTaskPushNotificationConfigRequest,
) (*v03pb.TaskPushNotificationConfig, error) {
	return v03Unary(ctx, g, func(c *call) (*v03pb.TaskPushNotificationConfig, error) {
		taskID, _ := named(r.GetParent())
		if err := required("parent", taskID); err != nil {
			return nil, err
		}
		p := v03PushFromProto(r.GetConfig().GetPushNotificationConfig())
		p.ID = cmp.Or(p.ID, r.GetConfigId(), taskID) // see v03SetPush
		p, err := c.s.Tasks.SetPush(c, c.to, taskID, p)
		return v03ProtoPush(&p), err
	})
}

func (g *grpcV03Service) GetTaskPushNotificationConfig(
	ctx context.Context, r *v03pb.GetTaskPushNotificationConfigRequest,
) (*v03pb.TaskPushNotificationConfig, error) {
	return v03Unary(ctx, g, func(c *call) (*v03pb.TaskPushNotificationConfig, error) {
		taskID, id := named(r.GetName())
		if taskID == "" || id == "" {
			return nil, newInvalid("name", mustNameConfig)
		}
		p, err := c.s.Tasks.GetPush(c, c.to, taskID, id)
		return v03ProtoPush(&p), err
	})
}

const mustNameConfig = "must be tasks/<id>/pushNotificationConfigs/<id>"

func (g *grpcV03Service) ListTaskPushNotificationConfig(
	ctx context.Context, r *v03pb.ListTaskPushNotificationConfigRequest,
) (*v03pb.ListTaskPushNotificationConfigResponse, error) {
	return v03Unary(ctx, g, func(c *call) (*v03pb.ListTaskPushNotificationConfigResponse, error) {
		taskID, _ := named(r.GetParent())
		if err := required("parent", taskID); err != nil {
			return nil, err
		}
		if r.GetPageToken() != "" {
			return nil, newInvalid("pageToken", "must be empty: the list has one page")
		}
		list, err := c.s.Tasks.ListPush(c, c.to, taskID)
		out := &v03pb.ListTaskPushNotificationConfigResponse{}
		for i := range list {
			out.Configs = append(out.Configs, v03ProtoPush(&list[i]))
		}
		return out, err
	})
}

func (g *grpcV03Service) DeleteTaskPushNotificationConfig(
	ctx context.Context, r *v03pb.DeleteTaskPushNotificationConfigRequest,
) (*emptypb.Empty, error) {
	return v03Unary(ctx, g, func(c *call) (*emptypb.Empty, error) {
		taskID, id := named(r.GetName())
		if taskID == "" || id == "" {
			return nil, newInvalid("name", mustNameConfig)
		}
		return &emptypb.Empty{}, c.s.Tasks.DeletePush(c, c.to, taskID, id)
	})
}

func (g *grpcV03Service) GetAgentCard(ctx context.Context, _ *v03pb.GetAgentCardRequest) (*v03pb.AgentCard, error) {
	return v03Unary(ctx, g, func(c *call) (*v03pb.AgentCard, error) {
		text, err := c.s.appendAgentCard(c, nil, cardForm{extended: true})
		if err != nil {
			return nil, err
		}
		card := &v03pb.AgentCard{}
		// The card is for clients of every version; this version does not have some of its members.
		if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(text, card); err != nil {
			return nil, err
		}
		card.Security, err = v03ProtoSecurity(text)
		return card, err
	})
}

// v03ProtoSecurity reads the security requirements of a card. Its JSON has lists of scopes where
// the protobuf definition has messages.
func v03ProtoSecurity(card []byte) (out []*v03pb.Security, err error) {
	var required struct{ Security []map[string][]string }
	if err := json.Unmarshal(card, &required); err != nil {
		return nil, err
	}
	for _, alternative := range required.Security {
		schemes := map[string]*v03pb.StringList{}
		for name, scopes := range alternative {
			schemes[name] = &v03pb.StringList{List: scopes}
		}
		out = append(out, &v03pb.Security{Schemes: schemes})
	}
	return out, nil
}
