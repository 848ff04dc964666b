package e2e

import (
	"strings"
	"testing"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// TestSiegeStalledGRPC opens gRPC streams of a large task, with the smallest windows, and reads
// none of them; then it gets the task over connections that stall.
func TestSiegeStalledGRPC(t *testing.T) {
	frontSiege(t, func(t *testing.T, s *siege) {
		s.sendLarge(t, "big")
		ctx := bearing(t.Context(), s.attacker.key)
		opened := 0
		for range siegeSize(30, 60) {
			conn, err := grpc.NewClient(strings.TrimPrefix(s.base, "http://"),
				grpc.WithTransportCredentials(insecure.NewCredentials()),
				grpc.WithInitialWindowSize(64<<10), grpc.WithInitialConnWindowSize(64<<10), grpc.WithStaticStreamWindowSize(64<<10))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close() })
			st, err := a2apb.NewA2AServiceClient(conn).SubscribeToTask(ctx,
				&a2apb.SubscribeToTaskRequest{Tenant: s.prey.agent, Id: "big"})
			if err != nil {
				t.Fatal(err)
			}
			opened++
			go func() { _, _ = st.Header() }()
		}
		eventually(t, soon, "streams to be open", func() bool { return s.metric(t, "parley_http_streams") > 0 })
		// Time for the server's memory to peak; the soak needs enough calls for a percentile.
		time.Sleep(time.Duration(siegeSize(3, 10)) * time.Second)
		t.Logf("%d streams opened, %d bytes counted", opened, s.metric(t, "parley_request_memory_bytes"))
	})
}
