package relay

import (
	"math"

	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // registers the codec
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// maxNested bounds how deep messages are nested. Data of a remote may be nested maxDepth deep, with
// three messages for each level.
const maxNested = 200

// weighing decodes messages that take at most so much memory, with valueSize for each field.
type weighing struct {
	encoding.CodecV2
	most int64
}

func weigh(most int64) weighing { return weighing{encoding.GetCodecV2("proto"), most} }

// Unmarshal implements encoding.CodecV2.
func (w weighing) Unmarshal(data mem.BufferSlice, v any) error {
	m, ok := v.(proto.Message)
	if !ok {
		return errGarbled
	}
	buf := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer buf.Free()
	text := buf.ReadOnlyData()
	room := (w.most - int64(len(text))) / valueSize
	if countFields(m.ProtoReflect().Descriptor(), text, room, maxNested) > room {
		return errTooLarge
	}
	return proto.Unmarshal(text, m)
}

// countFields returns how many fields a message and those inside it have, or more than most. What is
// not valid is left to the decoder.
func countFields(d protoreflect.MessageDescriptor, b []byte, most int64, depth int) (n int64) {
	if depth == 0 {
		return math.MaxInt64
	}
	for len(b) > 0 && n <= most {
		number, kind, size := protowire.ConsumeTag(b)
		if size < 0 {
			return n
		}
		b = b[size:]
		if size = protowire.ConsumeFieldValue(number, kind, b); size < 0 {
			return n
		}
		n++
		if f := d.Fields().ByNumber(number); kind == protowire.BytesType && f != nil && f.Message() != nil {
			inner, _ := protowire.ConsumeBytes(b[:size])
			inside := countFields(f.Message(), inner, most-n, depth-1)
			if inside > most-n {
				return math.MaxInt64
			}
			n += inside
		}
		b = b[size:]
	}
	return n
}
