package a2a

import (
	"bytes"
	"testing"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

func TestAMessageOfVeryManyFieldsIsNotDecoded(t *testing.T) {
	t.Parallel()
	codec := countingCodec{encoding.GetCodecV2("proto")}
	decode := func(b []byte) (*a2apb.SendMessageRequest, error) {
		in := &received{ctx: t.Context(), into: &a2apb.SendMessageRequest{}}
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
