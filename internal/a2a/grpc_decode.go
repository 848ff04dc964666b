package a2a

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/parley-dev/parley/internal/budget"
)

const (
	// maxElements is the maximum number of fields of a request, including nested ones.
	maxElements = 50_000
	// fewBytes is the size below which fields need not be counted: a field takes at least two
	// bytes.
	fewBytes = 4 << 10
)

var (
	errManyFields = fmt.Errorf("the message has more than %d fields, including nested ones; send fewer", maxElements)
	errNoMessage  = errors.New("the message is not a valid protobuf encoding of this method's request")
)

// countingCodec is gRPC's codec, but refuses a message with very many fields before it is decoded:
// four megabytes of empty fields would become hundreds of megabytes.
type countingCodec struct{ encoding.CodecV2 }

// received is a message to be decoded, and why it was refused. gRPC turns every error of a codec
// into INTERNAL, a server error, so the codec returns none.
type received struct {
	ctx     context.Context // of the call; the codec gets none
	into    any
	refused error
}

// Unmarshal implements encoding.CodecV2.
func (c countingCodec) Unmarshal(data mem.BufferSlice, v any) error {
	in, ok := v.(*received)
	if !ok {
		return c.CodecV2.Unmarshal(data, v)
	}
	if m, ok := in.into.(proto.Message); ok && data.Len() >= fewBytes {
		left := maxElements
		if !countFields(data.Materialize(), m.ProtoReflect().Descriptor(), &left) {
			in.refused = errManyFields
			return nil
		}
		if in.refused = prepare(in.ctx, maxElements-left); in.refused != nil {
			return nil //nolint:nilerr // the handler returns what was refused
		}
	}
	if c.CodecV2.Unmarshal(data, in.into) != nil {
		in.refused = errNoMessage
	}
	return nil
}

// prepare takes the memory of decoded fields and, if there are many, a lane to decode them in: a
// small request can keep a processor busy for long.
func prepare(ctx context.Context, fields int) error {
	account, n := budget.From(ctx), int64(fields)*valueSize
	if err := account.Hold(ctx, n); err != nil {
		return err
	}
	rpcOf(ctx).decoded = n
	return account.Work(ctx)
}

// countFields reports whether the encoded message has at most left fields. Invalid encodings are
// left to the decoder.
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

// decode decodes a message with gRPC's decode function.
func decode(ctx context.Context, with func(any) error, v any) error {
	in := &received{ctx: ctx, into: v}
	if err := with(in); err != nil {
		return err
	}
	switch {
	case in.refused == nil:
		return nil
	case budget.IsBusy(in.refused):
		return grpcStatus(errorOf(ctx, in.refused)).Err()
	default:
		return grpcStatus(newError(codeInvalidParams, in.refused.Error())).Err()
	}
}

// decoding returns the description of a service that decodes its messages with decode.
func decoding(d grpc.ServiceDesc) *grpc.ServiceDesc {
	d.Methods, d.Streams = slices.Clone(d.Methods), slices.Clone(d.Streams)
	for i := range d.Methods {
		handle := d.Methods[i].Handler
		d.Methods[i].Handler = func(
			srv any, ctx context.Context, with func(any) error, next grpc.UnaryServerInterceptor,
		) (any, error) {
			return handle(srv, ctx, func(v any) error { return decode(ctx, with, v) }, next)
		}
	}
	for i := range d.Streams {
		handle := d.Streams[i].Handler
		d.Streams[i].Handler = func(srv any, stream grpc.ServerStream) error {
			return handle(srv, decodingStream{stream})
		}
	}
	return &d
}

type decodingStream struct{ grpc.ServerStream }

// RecvMsg implements grpc.ServerStream.
func (s decodingStream) RecvMsg(m any) error { return decode(s.Context(), s.ServerStream.RecvMsg, m) }
