package a2a

import (
	"fmt"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/parley-dev/parley/internal/budget"
	"github.com/parley-dev/parley/internal/task"
	"github.com/parley-dev/parley/internal/wire"
)

// In protobuf every JSON value and every part is an object of its own, many times as
// large as its text. So gRPC counts them.

// valueSize is about what a google.protobuf.Value takes in memory.
const valueSize = 128

// takeValues takes memory for the JSON values of a task that is to be encoded.
func (c *call) takeValues(t *task.Task) error {
	n := wire.Values(t.Metadata)
	if t.Message != nil {
		n += messageValues(t.Message)
	}
	for i := range t.History {
		n += messageValues(&t.History[i])
	}
	for i := range t.Artifacts {
		n += artifactValues(&t.Artifacts[i])
	}
	if n < manyValues {
		return nil
	}
	return budget.From(c).Take(c, n*valueSize)
}

// manyValues is how many values are counted as part of their text.
const manyValues = 1000

func eventValues(e *task.Event) (n int64) {
	if e.Message != nil {
		n += messageValues(e.Message)
	}
	if e.Artifact != nil {
		n += artifactValues(e.Artifact)
	}
	return n
}

func messageValues(m *task.Message) int64 { return wire.Values(m.Metadata) + partValues(m.Parts) }

func artifactValues(a *task.Artifact) int64 { return wire.Values(a.Metadata) + partValues(a.Parts) }

func partValues(parts []task.Part) (n int64) {
	for i := range parts {
		n += wire.Values(parts[i].Data) + wire.Values(parts[i].Metadata)
	}
	return n
}

// maxElements is how many fields, nested ones included, a request may have.
const maxElements = 50_000

// countingCodec is gRPC's own, but refuses a message of very many fields before it is
// decoded: four megabytes of empty ones would become hundreds.
type countingCodec struct{ encoding.CodecV2 }

// Unmarshal implements encoding.CodecV2.
func (c countingCodec) Unmarshal(data mem.BufferSlice, v any) error {
	m, ok := v.(proto.Message)
	if !ok || data.Len() < maxElements { // a field takes two bytes at least
		return c.CodecV2.Unmarshal(data, v)
	}
	left := maxElements
	if !countFields(data.Materialize(), m.ProtoReflect().Descriptor(), &left) {
		return fmt.Errorf("the message has more than %d fields", maxElements)
	}
	return c.CodecV2.Unmarshal(data, v)
}

// countFields reports whether the encoded message has at most as many fields as are
// left. What is not valid is left to the decoder.
func countFields(b []byte, d protoreflect.MessageDescriptor, left *int) bool {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return true
		}
		b = b[n:]
		size := protowire.ConsumeFieldValue(number, kind, b)
		if size < 0 {
			return true
		}
		if *left--; *left < 0 {
			return false
		}
		if f := d.Fields().ByNumber(number); f != nil && f.Message() != nil && kind == protowire.BytesType {
			if inner, n := protowire.ConsumeBytes(b); n >= 0 && !countFields(inner, f.Message(), left) {
				return false
			}
		}
		b = b[size:]
	}
	return true
}
