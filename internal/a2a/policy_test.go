package a2a

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	v03pb "github.com/a2aproject/a2a-go/a2apb"
	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/policy"
)

// A sender gives the policy of its task in the metadata of the request, in every dialect. A mistake
// is refused with its path.
func TestEveryDialectHasPolicies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	only := w.key("acme", "user:ada", "svc:a2a:write", "agent:bot")
	ctx, conn, p := as(t.Context(), only), dial(t, w.h2c()), w.post("bot")
	answered := func(a *answer) error {
		if a.Status != 200 || strings.Contains(a.Body, `"error"`) {
			if !strings.Contains(a.Body, "-32602") && !strings.Contains(a.Body, "INVALID_ARGUMENT") {
				return fmt.Errorf("unexpected: %s", a.Body)
			}
			return status.Error(codes.InvalidArgument, a.Body)
		}
		return nil
	}
	object := func(metadata string) *structpb.Struct {
		out := &structpb.Struct{}
		if err := json.Unmarshal([]byte(metadata), out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	spec := func(metadata string) string {
		return `{"id":"` + newID("t-") + `","message":{"role":"user","parts":[{"type":"text","text":"a"}]},"metadata":` +
			metadata + `}`
	}
	v1 := func(metadata string) string {
		return `{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"a"}]},"configuration":` +
			`{"returnImmediately":true},"metadata":` + metadata + `}`
	}
	v03 := func(metadata string) string {
		return `{"message":{"kind":"message","messageId":"m","role":"user","parts":[{"kind":"text","text":"a"}]},` +
			`"configuration":{"blocking":false},"metadata":` + metadata + `}`
	}
	for name, send := range map[string]func(metadata string) error{
		"the specification": func(m string) error {
			return answered(w.rpc(only, "bot", "tasks/send", spec(m), "Prefer", "wait=0"))
		},
		"JSON-RPC":     func(m string) error { return answered(w.rpc(only, "bot", "SendMessage", v1(m))) },
		"HTTP+JSON":    func(m string) error { return answered(w.do(only, "POST", "/a2a/bot/message:send", v1(m))) },
		"JSON-RPC 0.3": func(m string) error { return answered(w.rpc(only, "bot", "message/send", v03(m))) },
		"HTTP+JSON 0.3": func(m string) error {
			return answered(w.do(only, "POST", "/a2a/bot/v1/message:send",
				`{"message":{"messageId":"m","role":"ROLE_USER","content":[{"text":"a"}]},`+
					`"configuration":{"blocking":false},"metadata":`+m+`}`))
		},
		"gRPC": func(m string) error {
			r := now(protoSend("bot", "a"))
			r.Metadata = object(m)
			_, err := a2apb.NewA2AServiceClient(conn).SendMessage(ctx, r)
			return err
		},
		"gRPC 0.3": func(m string) error {
			_, err := v03pb.NewA2AServiceClient(conn).SendMessage(ctx, &v03pb.SendMessageRequest{
				Request: &v03pb.Message{
					MessageId: "m", Role: v03pb.Role_ROLE_USER,
					Parts: []*v03pb.Part{{Part: &v03pb.Part_Text{Text: "a"}}},
				},
				Configuration: &v03pb.SendMessageConfiguration{}, Metadata: object(m),
			})
			return err
		},
	} {
		for metadata, says := range map[string]string{
			`{"parley.dev/policy":{"timeout_seconds":0}}`:                       "timeout_seconds",
			`{"parley.dev/policy":{"retry":{"on":["sometimes"]}}}`:              "retry",
			`{"parley.dev/policy":{"deadline":"2020-01-01T00:00:00Z"}}`:         "deadline",
			`{"parley.dev/policy":{"retries":3}}`:                               "retries",
			`{"x":1,"parley.dev/policy":{"deadline":"2999-01-01T00:00:00Z"}}`:   "at most 30 days",
			`{"parley.dev/policy":{"retry":{"max_attempts":1e9}},"y":"\u00e4"}`: "max_attempts",
		} {
			err := send(metadata)
			if text := fmt.Sprint(err); status.Code(err) != codes.InvalidArgument || !strings.Contains(text, says) ||
				!strings.Contains(text, "parley.dev") {
				t.Errorf("%s: %s: got %v, want that %s is refused", name, metadata, err, says)
			}
		}
		err := send(`{"x":1,"parley.dev/policy":{"timeout_seconds":60,"retry":{"max_attempts":5,"backoff_seconds":2}}}`)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, err := w.tasks.Claim(t.Context(), p, dispatch.ClaimRequest{
			Worker: "w", Max: 1, Wait: 10 * time.Second, Lease: time.Minute, Capacity: 100,
		})
		if err != nil || len(got.Assignments) != 1 {
			t.Fatalf("%s: claimed %d tasks, %v, want 1", name, len(got.Assignments), err)
		}
		task := &got.Assignments[0].Task
		want := policy.Policy{
			Deadline: task.CreatedAt.Add(time.Minute).Truncate(time.Microsecond), Timeout: time.Minute,
			Retry: policy.Retry{Attempts: 5, Backoff: 2 * time.Second, Lost: true, Failed: true},
		}
		if task.Policy != want || !strings.Contains(string(task.Metadata), "parley.dev") {
			t.Errorf("%s: got %+v in %s, want %+v", name, task.Policy, task.Metadata, want)
		}
	}
}
