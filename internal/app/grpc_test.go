package app

import (
	"crypto/tls"
	"path/filepath"
	"strings"
	"testing"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// gRPC shares the port with everything else, with and without TLS, and its streams
// end with the server.
func TestGRPCSharesThePort(t *testing.T) {
	t.Parallel()
	for name, security := range map[string]credentials.TransportCredentials{
		"plain": insecure.NewCredentials(),
		"tls":   credentials.NewTLS(&tls.Config{InsecureSkipVerify: true}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := testConfig(t)
			if name == "tls" {
				dir := t.TempDir()
				cfg.TLSCert, cfg.TLSKey = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
				writeCert(t, cfg, 1, time.Now())
			}
			s := startServer(t, cfg)
			_, addr, _ := strings.Cut(s.URL(), "://")
			conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(security))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			c := a2apb.NewA2AServiceClient(conn)
			ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+s.First().Secret)
			send := &a2apb.SendMessageRequest{Tenant: echo, Message: &a2apb.Message{
				MessageId: "m-1", Role: a2apb.Role_ROLE_USER, Parts: []*a2apb.Part{{Content: &a2apb.Part_Text{Text: "hello"}}},
			}}
			res, err := c.SendMessage(ctx, send)
			if err != nil || res.GetTask().GetStatus().GetState() != a2apb.TaskState_TASK_STATE_COMPLETED {
				t.Fatal(res, err)
			}
			if name == "plain" {
				if code, _ := get(t, s.URL()+"/healthz", ""); code != 200 {
					t.Error(code)
				}
			}
			if err := s.Shutdown(); err != nil {
				t.Error(err)
			}
			if _, err := c.SendMessage(ctx, send); status.Code(err) != codes.Unavailable {
				t.Error(err)
			}
		})
	}
}
