package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"
)

// TestSiegeValues sends small JSON values, which take many times their text in memory, over gRPC
// and to the tools of /mcp: about as many as a request may have, and far more.
func TestSiegeValues(t *testing.T) {
	callers := siegeSize(24, 128)
	eachSiege(t, func(t *testing.T, s *siege) {
		var mu sync.Mutex
		got := map[string]int{}
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() {
				for _, outcome := range []string{
					"gRPC, few: " + s.sendValuesGRPC(t, fmt.Sprint("few", i), 24_000),
					"gRPC, many: " + s.sendValuesGRPC(t, fmt.Sprint("many", i), 200_000),
					"MCP, few: " + s.sendValuesMCP(t, 19_900),
					"MCP, many: " + s.sendValuesMCP(t, 400_000),
				} {
					mu.Lock()
					got[outcome]++
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		t.Log(got)
		for _, want := range []string{"gRPC, few: served", "gRPC, many: refused", "MCP, few: served", "MCP, many: refused"} {
			name, _, _ := strings.Cut(want, ":")
			if got[want] == 0 || got[want]+got[name+": shed"] != callers {
				t.Errorf("%v; want %q, or some of them shed", got, want)
			}
		}
	}, "--rate-limit", "0")
}

// sendValuesGRPC sends a message with n values as its data.
func (s *siege) sendValuesGRPC(t *testing.T, id string, n int) (outcome string) {
	ctx, cancel := context.WithTimeout(bearing(t.Context(), s.attacker.key), soon)
	defer cancel()
	conn, err := grpc.NewClient(strings.TrimPrefix(s.base, "http://"),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err.Error()
	}
	defer func() { _ = conn.Close() }()
	_, err = a2apb.NewA2AServiceClient(conn).SendMessage(ctx, &a2apb.SendMessageRequest{
		Tenant:        s.prey.agent,
		Configuration: &a2apb.SendMessageConfiguration{ReturnImmediately: true},
		Message: &a2apb.Message{
			MessageId: id, Role: a2apb.Role_ROLE_USER, Parts: []*a2apb.Part{{Content: &a2apb.Part_Data{Data: manyValues(n)}}},
		},
	})
	switch {
	case err == nil:
		return "served"
	case status.Code(err) == codes.Unavailable, strings.Contains(err.Error(), "as many large requests"):
		return "shed"
	case strings.Contains(err.Error(), "fields"):
		return "refused"
	}
	return err.Error()
}

// manyValues returns a list of n values that share their memory here, but not in the server.
func manyValues(n int) *structpb.Value {
	list := make([]*structpb.Value, n)
	one := structpb.NewBoolValue(true)
	for i := range list {
		list[i] = one
	}
	return structpb.NewListValue(&structpb.ListValue{Values: list})
}

// sendValuesMCP sends a task with n values as its data.
func (s *siege) sendValuesMCP(t *testing.T, n int) (outcome string) {
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"send_task","arguments":{"agent":"` +
		s.prey.agent +
		`","wait_seconds":0,"parts":[{"type":"data","data":{"v":[` + strings.Repeat("1,", n) + `1]}}]}}}`
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.base+"/mcp", strings.NewReader(body))
	if err != nil {
		return err.Error()
	}
	req.Header.Set("Authorization", "Bearer "+s.attacker.key)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	res, err := taskClient.Do(req)
	if err != nil {
		return "shed" // before it was read
	}
	defer func() { _ = res.Body.Close() }()
	b, _ := io.ReadAll(res.Body)
	switch {
	case res.StatusCode == http.StatusOK && strings.Contains(string(b), "submitted"):
		return "served"
	case res.StatusCode == http.StatusServiceUnavailable, res.StatusCode == http.StatusTooManyRequests,
		strings.Contains(string(b), "server.busy"):
		return "shed"
	case res.StatusCode == http.StatusRequestEntityTooLarge:
		return "refused"
	}
	return fmt.Sprintf("%s %.200s", res.Status, b)
}
