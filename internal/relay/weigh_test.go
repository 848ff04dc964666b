package relay

import (
	"errors"
	"testing"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/parley-dev/parley/internal/budget"
)

// A message of very many small values, or of many levels, is refused before it is decoded. Memory is
// held for the values of others.
func TestExpandingMessageIsRefused(t *testing.T) {
	t.Parallel()
	list := func(n int) *structpb.ListValue {
		l := &structpb.ListValue{}
		for range n {
			l.Values = append(l.Values, &structpb.Value{})
		}
		return l
	}
	maps := list(1000)
	for i := range maps.Values {
		maps.Values[i] = structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{"": nil}})
	}
	deep := &structpb.ListValue{}
	for range maxNested {
		deep = &structpb.ListValue{Values: []*structpb.Value{structpb.NewListValue(deep)}}
	}
	for name, test := range map[string]struct {
		in    proto.Message
		want  error
		least int64 // bytes that are held
	}{
		"few":  {list(100), nil, 0},
		"some": {list(100_000), nil, 100_000 * fieldSize},
		"maps": {maps, nil, 1000 * (4 + mapValues) * fieldSize},
		"many": {list(maxHeld / fieldSize), errTooMany, 0},
		"deep": {deep, errTooMany, 0},
	} {
		b, err := proto.Marshal(test.in)
		if err != nil {
			t.Fatal(err)
		}
		out := &structpb.ListValue{}
		pool := budget.NewPool(budget.Limits{Memory: 128 << 20, Response: maxBody})
		codec := weigh(&reservation{pool: pool, ctx: t.Context()})
		if err := codec.Unmarshal(mem.BufferSlice{mem.SliceBuffer(b)}, out); !errors.Is(err, test.want) {
			t.Errorf("%s: got %v, want %v", name, err, test.want)
		} else if err == nil && !proto.Equal(out, test.in) {
			t.Errorf("%s: got %v, want what was sent", name, out)
		}
		if used := pool.Used(); used < test.least || test.least == 0 && used > 0 {
			t.Errorf("%s: %d bytes are held, want at least %d", name, used, test.least)
		}
	}
}
