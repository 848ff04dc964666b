package a2a

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	v03pb "github.com/a2aproject/a2a-go/a2apb"
	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/task"
)

// TestWorkersGetTheAcceptedOutputModes sends media types over every binding, including some that
// cannot be kept: those are dropped, and nothing is refused.
func TestWorkersGetTheAcceptedOutputModes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	only := w.key("acme", "user:ada", "svc:a2a:write", "agent:bot")
	ctx, conn, p := as(t.Context(), only), dial(t, w.h2c()), w.post("bot")
	sent := []string{"text/plain", strings.Repeat("x", task.MaxID+1), "a\nb", "a\u0085b", ""}
	want := []string{"text/plain"}
	for i := range 2 * task.MaxIDs {
		sent = append(sent, fmt.Sprintf("text/x-%d", i))
		if len(want) < task.MaxIDs {
			want = append(want, sent[len(sent)-1])
		}
	}
	for len(sent) < 1100 {
		sent = append(sent, "text/more")
	}
	list, err := json.Marshal(sent)
	if err != nil {
		t.Fatal(err)
	}
	// configured adds the accepted modes to a message.
	configured := func(message, now string) string {
		return `{"message":` + message + `,"configuration":{"acceptedOutputModes":` + string(list) + `,` + now + `}}`
	}
	v1 := configured(`{"messageId":"m","role":"ROLE_USER","parts":[{"text":"a"}]}`, `"returnImmediately":true`)
	succeeds := func(a *answer) error {
		if a.Status != 200 || strings.Contains(a.Body, `"error"`) {
			return fmt.Errorf("status = %d, want 200 without an error: %s", a.Status, a.Body)
		}
		return nil
	}
	for name, send := range map[string]func() error{
		"JSON-RPC":  func() error { return succeeds(w.rpc(only, "bot", "SendMessage", v1)) },
		"HTTP+JSON": func() error { return succeeds(w.do(only, "POST", "/a2a/bot/message:send", v1)) },
		"gRPC": func() error {
			r := protoSend("bot", "a")
			r.Configuration = &a2apb.SendMessageConfiguration{AcceptedOutputModes: sent, ReturnImmediately: true}
			_, err := a2apb.NewA2AServiceClient(conn).SendMessage(ctx, r)
			return err
		},
		"JSON-RPC 0.3": func() error {
			return succeeds(w.rpc(only, "bot", "message/send",
				configured(`{"kind":"message","messageId":"m","role":"user","parts":[{"kind":"text","text":"a"}]}`,
					`"blocking":false`)))
		},
		"HTTP+JSON 0.3": func() error {
			return succeeds(w.do(only, "POST", "/a2a/bot/v1/message:send",
				configured(`{"messageId":"m","role":"ROLE_USER","content":[{"text":"a"}]}`, `"blocking":false`)))
		},
		"gRPC 0.3": func() error {
			_, err := v03pb.NewA2AServiceClient(conn).SendMessage(ctx, &v03pb.SendMessageRequest{
				Request: &v03pb.Message{
					MessageId: "m", Role: v03pb.Role_ROLE_USER,
					Parts: []*v03pb.Part{{Part: &v03pb.Part_Text{Text: "a"}}},
				},
				Configuration: &v03pb.SendMessageConfiguration{AcceptedOutputModes: sent},
			})
			return err
		},
	} {
		if err := send(); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, err := w.tasks.Claim(t.Context(), p, dispatch.ClaimRequest{
			Worker: "w", Max: 1, Wait: 10 * time.Second, Lease: time.Minute, Capacity: 100,
		})
		if err != nil || len(got.Assignments) != 1 {
			t.Fatalf("%s: claimed %d tasks, %v, want 1", name, len(got.Assignments), err)
		}
		if diff := cmp.Diff(want, got.Assignments[0].Task.OutputModes); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
