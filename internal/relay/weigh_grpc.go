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

// fieldSize is what a field takes: a value of JSON in protobuf, and its copy in Go.
const fieldSize = 2 * valueSize

// weighing decodes messages within a share of the memory. It serves one call.
type weighing struct {
	encoding.CodecV2
	memory *reservation
	needed int64 // by the last message
	failed error // why a message was not decoded; gRPC keeps only its text
}

func weigh(memory *reservation) *weighing {
	return &weighing{CodecV2: encoding.GetCodecV2("proto"), memory: memory}
}

// Unmarshal implements encoding.CodecV2.
func (w *weighing) Unmarshal(data mem.BufferSlice, v any) error {
	w.failed = w.decode(data, v)
	return w.failed
}

func (w *weighing) decode(data mem.BufferSlice, v any) error {
	m, ok := v.(proto.Message)
	if !ok {
		return errGarbled
	}
	buf := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer buf.Free()
	text := buf.ReadOnlyData()
	room := (maxHeld - int64(len(text))) / fieldSize
	fields := countFields(m.ProtoReflect().Descriptor(), text, room, maxNested)
	if fields > room {
		return errTooMany
	}
	w.needed = int64(len(text)) + fields*fieldSize
	if err := w.memory.hold(w.needed); err != nil {
		return err
	}
	if proto.Unmarshal(text, m) != nil {
		return errGarbled
	}
	return nil
}

// countFields returns how many fields a message and those inside it have, or more than most. A member of
// a map counts as more, for the map. What is not valid is left to the decoder.
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
			if f.IsMap() {
				n += mapValues
			}
		}
		b = b[size:]
	}
	return n
}
