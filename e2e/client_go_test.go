package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"
	"github.com/a2aproject/a2a-go/v2/a2aclient/agentcard"
	"github.com/a2aproject/a2a-go/v2/a2acompat/a2av0"
	a2agrpc "github.com/a2aproject/a2a-go/v2/a2agrpc/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// goDialect is a version and transport of the official Go client.
type goDialect struct {
	name    string
	v1      bool // version 1.0; else 0.3, which has no list of tasks
	binding a2a.TransportProtocol
	option  a2aclient.FactoryOption
}

var goDialects = []goDialect{
	{"v1-jsonrpc", true, a2a.TransportProtocolJSONRPC, a2aclient.WithJSONRPCTransport(nil)},
	{"v1-rest", true, a2a.TransportProtocolHTTPJSON, a2aclient.WithRESTTransport(nil)},
	{
		"v1-grpc", true, a2a.TransportProtocolGRPC,
		a2agrpc.WithGRPCTransport(grpc.WithTransportCredentials(insecure.NewCredentials())),
	},
	{"v03-jsonrpc", false, a2a.TransportProtocolJSONRPC, a2av0.WithJSONRPCTransport(a2av0.JSONRPCTransportConfig{})},
	{"v03-rest", false, a2a.TransportProtocolHTTPJSON, a2av0.WithRESTTransport(a2av0.RESTTransportConfig{})},
}

// goClient is the official Go client, connected to the stage's agent.
type goClient struct {
	*a2aclient.Client
	goDialect
	stage *stage
}

// withParam sends a header, or what gRPC has for it, with every call.
type withParam struct {
	a2aclient.PassthroughInterceptor
	name, value string
}

func (p withParam) Before(ctx context.Context, req *a2aclient.Request) (context.Context, any, error) {
	if p.value != "" {
		req.ServiceParams[p.name] = []string{p.value}
	}
	return ctx, nil, nil
}

// dial makes a client as users of the SDK do: from the card at the agent's URL. The factory has
// one transport only, so the card must offer it.
func (d goDialect) dial(t *testing.T, s *stage, key string, more ...a2aclient.CallInterceptor) *goClient {
	t.Helper()
	card, err := agentcard.DefaultResolver.Resolve(t.Context(), s.url())
	if err != nil {
		t.Fatal(err)
	}
	key = "Bearer " + key
	if key == "Bearer " {
		key = ""
	}
	c, err := a2aclient.NewFromCard(t.Context(), card, a2aclient.WithDefaultsDisabled(), d.option,
		a2aclient.WithCallInterceptors(append(more, withParam{name: "Authorization", value: key})...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Destroy() })
	return &goClient{c, d, s}
}

// TestGoClient makes every call of the official Go client, over each binding of both versions, and
// checks the results that the client returns.
func TestGoClient(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, e engine) {
		t.Parallel()
		s := newStage(t, e)
		dialects, checks := goDialects, goChecks
		if e.name != "sqlite" { // the engines differ below the wire only
			dialects, checks = dialects[:1], []goCheck{{"stream", goStream}, {"ask", goAsk}, {"list", goList}, {"push", goPush}}
		}
		for _, d := range dialects {
			t.Run(d.name, func(t *testing.T) {
				t.Parallel()
				c := d.dial(t, s, s.key)
				for _, check := range checks {
					t.Run(check.name, func(t *testing.T) {
						t.Parallel()
						check.run(t, c)
					})
				}
			})
		}
	})
}

type goCheck struct {
	name string
	run  func(t *testing.T, c *goClient)
}

var goChecks = []goCheck{
	{"cards", goCards},
	{"credentials", goCredentials},
	{"parts", goParts},
	{"round trip", goRoundTrip},
	{"poll", goPoll},
	{"stream", goStream},
	{"history", goHistory},
	{"cancel", goCancel},
	{"resubscribe", goResubscribe},
	{"ask", goAsk},
	{"ends", goEnds},
	{"reply", goReply},
	{"list", goList},
	{"push", goPush},
	{"push with the message", goPushWithMessage},
	{"mistakes", goMistakes},
	{"keys", goKeys},
}

func say(text string) *a2a.Message { return a2a.NewMessage(a2a.MessageRoleUser, a2a.NewTextPart(text)) }

// send sends a message and expects a task.
func (c *goClient) send(t *testing.T, req *a2a.SendMessageRequest) *a2a.Task {
	t.Helper()
	res, err := c.SendMessage(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	task, ok := res.(*a2a.Task)
	if !ok {
		t.Fatalf("response = %T, want a task", res)
	}
	return task
}

// order sends a text and waits until the task is at rest.
func (c *goClient) order(t *testing.T, text string) *a2a.Task {
	t.Helper()
	return c.send(t, &a2a.SendMessageRequest{Message: say(text)})
}

// start sends a text and does not wait.
func (c *goClient) start(t *testing.T, text string) *a2a.Task {
	t.Helper()
	return c.send(t, &a2a.SendMessageRequest{Message: say(text), Config: &a2a.SendMessageConfig{ReturnImmediately: true}})
}

// tell sends a further message to a task.
func (c *goClient) tell(t *testing.T, task a2a.TaskInfoProvider, text string) *a2a.Task {
	t.Helper()
	return c.send(t, &a2a.SendMessageRequest{
		Message: a2a.NewMessageForTask(a2a.MessageRoleUser, task, a2a.NewTextPart(text)),
	})
}

// waitFor polls until the task is in the state.
func (c *goClient) waitFor(t *testing.T, id a2a.TaskID, state a2a.TaskState, text string) (task *a2a.Task) {
	t.Helper()
	eventually(t, time.Minute, "the task "+string(state)+" "+text, func() bool {
		var err error
		if task, err = c.GetTask(t.Context(), &a2a.GetTaskRequest{ID: id}); err != nil {
			t.Fatal(err)
		}
		return task.Status.State == state && messageText(task.Status.Message) == text
	})
	return task
}

func messageText(m *a2a.Message) (out string) {
	if m != nil {
		out = partsText(m.Parts)
	}
	return out
}

func partsText(parts a2a.ContentParts) (out string) {
	for _, p := range parts {
		out += p.Text()
	}
	return out
}

// resultText returns the text of all artifacts.
func resultText(task *a2a.Task) (out string) {
	for _, a := range task.Artifacts {
		out += partsText(a.Parts)
	}
	return out
}

// wantTask checks the state and the result of a task.
func wantTask(t *testing.T, task *a2a.Task, state a2a.TaskState, result string) {
	t.Helper()
	if task.ID == "" || task.ContextID == "" || task.Status.Timestamp == nil {
		t.Errorf("task = %+v, want an id, a context and a time", task)
	}
	if got := resultText(task); task.Status.State != state || got != result {
		t.Errorf("the task is %s with %q; want %s with %q", task.Status.State, got, state, result)
	}
}
