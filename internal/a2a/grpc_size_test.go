package a2a

import (
	"bytes"
	"testing"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
)

func TestAMessageOfVeryManyFieldsIsNotDecoded(t *testing.T) {
	t.Parallel()
	codec := countingCodec{encoding.GetCodecV2("proto")}
	decode := func(b []byte) (*a2apb.SendMessageRequest, error) {
		m := &a2apb.SendMessageRequest{}
		return m, codec.Unmarshal(mem.BufferSlice{mem.SliceBuffer(b)}, m)
	}
	parts := bytes.Repeat([]byte{0x2a, 0}, 1<<20) // empty parts of a message
	message := proto.CloneOf(&a2apb.SendMessageRequest{Message: &a2apb.Message{MessageId: "m"}})
	b, err := proto.Marshal(message)
	if err != nil {
		t.Fatal(err)
	}
	if m, err := decode(b); err != nil || m.GetMessage().GetMessageId() != "m" {
		t.Errorf("a small message: %v, %v", m, err)
	}
	wrapped := append([]byte{0x12}, append(appendUvarint(nil, uint64(len(parts))), parts...)...)
	if m, err := decode(wrapped); err == nil {
		t.Errorf("a message of %d parts was decoded", len(m.GetMessage().GetParts()))
	}
	text, err := proto.Marshal(&a2apb.SendMessageRequest{Message: &a2apb.Message{MessageId: string(bytes.Repeat([]byte("x"), 3<<20))}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := decode(text); err != nil {
		t.Errorf("a message of 3 MiB of text: %v", err)
	}
}

func appendUvarint(b []byte, n uint64) []byte {
	for ; n >= 0x80; n >>= 7 {
		b = append(b, byte(n)|0x80)
	}
	return append(b, byte(n))
}
