package relay

import (
	"errors"
	"testing"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// A message of many small values, or of many levels, is refused before it is decoded.
func TestExpandingMessageIsRefused(t *testing.T) {
	t.Parallel()
	many := &structpb.ListValue{}
	for range 100_000 {
		many.Values = append(many.Values, &structpb.Value{})
	}
	few := &structpb.ListValue{Values: many.Values[:100]}
	deep := &structpb.ListValue{}
	for range maxNested {
		deep = &structpb.ListValue{Values: []*structpb.Value{structpb.NewListValue(deep)}}
	}
	for name, test := range map[string]struct {
		in   proto.Message
		want error
	}{"few": {few, nil}, "many": {many, errTooLarge}, "deep": {deep, errTooLarge}} {
		b, err := proto.Marshal(test.in)
		if err != nil {
			t.Fatal(err)
		}
		out := &structpb.ListValue{}
		if err := weigh(maxSmall).Unmarshal(mem.BufferSlice{mem.SliceBuffer(b)}, out); !errors.Is(err, test.want) {
			t.Errorf("%s: got %v, want %v", name, err, test.want)
		} else if err == nil && !proto.Equal(out, test.in) {
			t.Errorf("%s: got %v, want what was sent", name, out)
		}
	}
}
