package relay

import (
	"errors"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	_ "google.golang.org/grpc/encoding/gzip" // remotes may compress
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/parley-dev/parley/internal/budget"
)

// A large task over gRPC is read again with memory for it, and another large message is too large, also
// if the remote compresses its messages.
func TestLargeMessageOverGRPC(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", 3<<20)
	for name, compressor := range map[string]string{"plain": "", "compressed": "gzip"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error {
				if compressor != "" {
					if err := grpc.SetSendCompressor(s.Context(), compressor); err != nil {
						return err
					}
				}
				if err := s.RecvMsg(&wrapperspb.StringValue{}); err != nil {
					return err
				}
				return s.SendMsg(wrapperspb.String(large))
			}))
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			go func() { _ = server.Serve(listener) }()
			t.Cleanup(server.Stop)
			n := &network{memory: budget.NewPool(budget.Limits{Memory: 128 << 20, Response: maxBody})}
			conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()),
				grpc.WithUnaryInterceptor(n.callGRPC(budget.Owner{Org: "acme", Principal: "agent:tariffs"})))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close() })
			ctx, got := withIntake(t.Context())
			defer func() { got.take().release() }()
			reply := &wrapperspb.StringValue{}
			if err := conn.Invoke(ctx, "/A2AService/GetTask", wrapperspb.String("task"), reply); err != nil || reply.Value != large {
				t.Errorf("a task: got %d bytes and %v, want %d", len(reply.Value), err, len(large))
			}
			err = conn.Invoke(ctx, "/A2AService/SendMessage", wrapperspb.String("message"), reply)
			if !errors.Is(err, errTooLarge) {
				t.Errorf("the reply to a message: got %v, want %v", err, errTooLarge)
			}
		})
	}
}
