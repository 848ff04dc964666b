package a2a

import (
	"bytes"
	"context"
	"testing"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/parley-dev/parley/internal/budget"
	"github.com/parley-dev/parley/internal/httpx"
)

func TestAMessageOfVeryManyFieldsIsNotDecoded(t *testing.T) {
	t.Parallel()
	codec := countingCodec{encoding.GetCodecV2("proto")}
	decode := func(b []byte) (*a2apb.SendMessageRequest, error) {
		in := &received{ctx: context.WithValue(t.Context(), rpcKey{}, &rpc{}), into: &a2apb.SendMessageRequest{}}
		if err := codec.Unmarshal(mem.BufferSlice{mem.SliceBuffer(b)}, in); err != nil {
			t.Fatal(err)
		}
		return in.into.(*a2apb.SendMessageRequest), in.refused
	}
	parts := bytes.Repeat([]byte{0x2a, 0}, 1<<20) // empty parts of a message
	message := proto.CloneOf(&a2apb.SendMessageRequest{Message: &a2apb.Message{MessageId: "m"}})
	b, err := proto.Marshal(message)
	if err != nil {
		t.Fatal(err)
	}
	if m, err := decode(b); err != nil || m.GetMessage().GetMessageId() != "m" {
		t.Errorf("a small message: got %v, %v, want it decoded", m, err)
	}
	wrapped := append([]byte{0x12}, append(appendUvarint(nil, uint64(len(parts))), parts...)...)
	if m, err := decode(wrapped); err == nil {
		t.Errorf("a message of %d parts was decoded, want an error", len(m.GetMessage().GetParts()))
	}
	text, err := proto.Marshal(&a2apb.SendMessageRequest{
		Message: &a2apb.Message{MessageId: string(bytes.Repeat([]byte("x"), 3<<20))},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := decode(text); err != nil {
		t.Errorf("a message of 3 MiB of text: err = %v, want nil", err)
	}
}

// A request gives its memory back before it takes that of the response. Otherwise requests whose
// share of the memory fits them, but not the response as well, would wait for each other.
func TestASendHoldsTheRequestOrTheResponse(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *httpx.Options, _ *Options) {
		o.Memory = budget.NewPool(budget.Limits{Memory: 32 << 20, Response: 17 << 20}) // 8 MiB for a principal
	})
	const values = 20_000 // 2.5 MiB, and 5 MiB in a response
	r := sendOfValues(values)
	count := func(t *a2apb.Task) int {
		return len(t.GetHistory()[0].GetParts()[0].GetData().GetListValue().GetValues())
	}
	c := a2apb.NewA2AServiceClient(dial(t, w.h2c()))
	ctx := as(t.Context(), w.caller("user:ada"))
	sent, err := c.SendMessage(ctx, r)
	if err != nil {
		t.Fatalf("SendMessage: %v", err)
	}
	if got := count(sent.GetTask()); got != values {
		t.Errorf("the response has %d values, want %d", got, values)
	}
	r.Message.MessageId = newID("m-")
	stream, err := c.SendStreamingMessage(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	first, err := stream.Recv()
	if err != nil {
		t.Fatalf("SendStreamingMessage: %v", err)
	}
	if got := count(first.GetTask()); got != values {
		t.Errorf("the stream has %d values, want %d", got, values)
	}
}

// An error would suggest that the command was not carried out.
func TestWithoutMemoryForTheContentACommandAnswersWithTheStatus(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *httpx.Options, _ *Options) {
		o.Memory = budget.NewPool(budget.Limits{Memory: 32 << 20, Response: 17 << 20}) // 8 MiB for a principal
	})
	r := sendOfValues(20_000) // 5 MiB, as the response; with two messages, the response does not fit
	c := a2apb.NewA2AServiceClient(dial(t, w.h2c()))
	ctx := as(t.Context(), w.caller("user:ada"))
	begun, err := c.SendMessage(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	id := begun.GetTask().GetId()
	check := func(method string, want a2apb.TaskState, got *a2apb.Task, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", method, err)
		}
		if got.GetId() != id || got.GetStatus().GetState() != want {
			t.Errorf("%s: task = %v %v, want %v %v", method, got.GetId(), got.GetStatus(), id, want)
		}
		if n := len(got.GetHistory()); n != 0 {
			t.Errorf("%s: the response has %d messages, want none", method, n)
		}
	}
	r.Message.TaskId, r.Message.MessageId = id, newID("m-")
	sent, err := c.SendMessage(ctx, r)
	check("SendMessage", a2apb.TaskState_TASK_STATE_SUBMITTED, sent.GetTask(), err)
	canceled, err := c.CancelTask(ctx, &a2apb.CancelTaskRequest{Tenant: "bot", Id: id})
	check("CancelTask", a2apb.TaskState_TASK_STATE_CANCELED, canceled, err)

	got, err := c.GetTask(ctx, &a2apb.GetTaskRequest{Tenant: "bot", Id: id})
	if status.Code(err) != codes.Unavailable {
		t.Errorf("GetTask: %v, %v, want UNAVAILABLE", got.GetStatus(), err)
	}
}

// sendOfValues returns a request that sends a list of n booleans.
func sendOfValues(n int) *a2apb.SendMessageRequest {
	values := make([]*structpb.Value, n)
	for i := range values {
		values[i] = structpb.NewBoolValue(true)
	}
	data := &a2apb.Part_Data{Data: structpb.NewListValue(&structpb.ListValue{Values: values})}
	r := protoSend("bot", "")
	r.Message.Parts = []*a2apb.Part{{Content: data}}
	r.Configuration = &a2apb.SendMessageConfiguration{ReturnImmediately: true}
	return r
}

// A message that cannot be decoded is a client error, not INTERNAL.
func TestAMessageThatIsNotDecodedIsInvalid(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	conn := dial(t, w.h2c())
	raw := grpc.ForceCodecV2(rawCodec{encoding.GetCodecV2("proto")})
	ctx := as(t.Context(), w.caller("user:ada"))
	parts := bytes.Repeat([]byte{0x2a, 0}, 1<<20)
	for name, body := range map[string][]byte{
		"many fields": append([]byte{0x12}, append(appendUvarint(nil, uint64(len(parts))), parts...)...),
		"no protobuf": []byte("\xff\xff\xff"),
		"bad text":    {0x0a, 1, 0xff},
	} {
		for _, method := range []string{"/lf.a2a.v1.A2AService/SendMessage", "/a2a.v1.A2AService/GetTask"} {
			err := conn.Invoke(ctx, method, body, &a2apb.SendMessageResponse{}, raw)
			if status.Code(err) != codes.InvalidArgument {
				t.Errorf("%s, %s: err = %v, want InvalidArgument", name, method, err)
			}
		}
		for _, method := range []string{
			"/lf.a2a.v1.A2AService/SendStreamingMessage", "/a2a.v1.A2AService/SendStreamingMessage",
		} {
			st, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, method, raw)
			if err != nil {
				t.Fatal(err)
			}
			_ = st.SendMsg(body) // the response has the error
			_ = st.CloseSend()
			if err := st.RecvMsg(&a2apb.StreamResponse{}); status.Code(err) != codes.InvalidArgument {
				t.Errorf("%s, %s: err = %v, want InvalidArgument", name, method, err)
			}
		}
	}
}

// rawCodec sends bytes unchanged.
type rawCodec struct{ encoding.CodecV2 }

func (c rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	if b, ok := v.([]byte); ok {
		return mem.BufferSlice{mem.SliceBuffer(b)}, nil
	}
	return c.CodecV2.Marshal(v)
}

func appendUvarint(b []byte, n uint64) []byte {
	for ; n >= 0x80; n >>= 7 {
		b = append(b, byte(n)|0x80)
	}
	return append(b, byte(n))
}
