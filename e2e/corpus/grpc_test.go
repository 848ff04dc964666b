package corpus

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	_ "github.com/a2aproject/a2a-go/a2apb"
	_ "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	_ "google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

const (
	grpcV1  = "lf.a2a.v1.A2AService"
	grpcV03 = "a2a.v1.A2AService"
)

// overGRPC covers versions 1.0 and 0.3 over gRPC, with messages as ProtoJSON.
func overGRPC(s *session) {
	s.cast()
	defer s.dial()()
	const bot = `"tenant":"grpc-bot",`
	one := func(title, who, method, request string) { s.Helper(); s.invoke(title, who, grpcV1+"/"+method, request) }
	one("send and wait", "ann", "SendMessage", `{"tenant":"echo","message":`+say+`}`)
	one("stream", "ann", "SendStreamingMessage", `{"tenant":"echo","message":`+say+`}`)
	one("get", "ann", "GetTask", `{"tenant":"echo","id":"<t-1>","historyLength":1}`)
	one("list", "ann", "ListTasks", `{"tenant":"echo","pageSize":1,"includeArtifacts":true}`)
	one("the next page", "ann", "ListTasks", `{"tenant":"echo","pageSize":1,"pageToken":"<cursor-1>"}`)
	one("list badly", "ann", "ListTasks", `{"tenant":"echo","pageSize":1000,"pageToken":"x"}`)
	one("send at once", "ann", "SendMessage", `{`+bot+`"message":`+say+`,"configuration":{"returnImmediately":true}}`)
	one("set push", "ann", "CreateTaskPushNotificationConfig",
		`{`+bot+`"taskId":"<t-3>","id":"p","url":"https://example.com/hook","token":"t"}`)
	one("get push", "ann", "GetTaskPushNotificationConfig", `{`+bot+`"taskId":"<t-3>","id":"p"}`)
	one("list push", "ann", "ListTaskPushNotificationConfigs", `{`+bot+`"taskId":"<t-3>"}`)
	one("delete push", "ann", "DeleteTaskPushNotificationConfig", `{`+bot+`"taskId":"<t-3>","id":"p"}`)
	one("get what was deleted", "ann", "GetTaskPushNotificationConfig", `{`+bot+`"taskId":"<t-3>","id":"p"}`)
	one("push to a private address", "ann", "CreateTaskPushNotificationConfig",
		`{`+bot+`"taskId":"<t-3>","url":"http://10.0.0.1/"}`)
	s.do("claim", "worker", "POST /api/v1/agents/grpc-bot/claim", `{"worker":"w","wait_seconds":5,"lease_seconds":600}`)
	s.do("ask", "worker", "POST /api/v1/agents/grpc-bot/leases/<lease-1>", `{"status":"input-required"}`)
	one("subscribe to what waits for input, and cancel it", "ann", "SubscribeToTask", `{`+bot+`"id":"<t-3>"}`)
	one("another task", "ann", "SendMessage", `{`+bot+`"message":`+say+`,"configuration":{"returnImmediately":true}}`)
	one("cancel", "ann", "CancelTask", `{`+bot+`"id":"<t-4>"}`)
	one("cancel again", "ann", "CancelTask", `{`+bot+`"id":"<t-3>"}`)
	one("subscribe to what is over", "ann", "SubscribeToTask", `{`+bot+`"id":"<t-3>"}`)
	one("the card", "ann", "GetExtendedAgentCard", `{"tenant":"grpc-bot"}`)
	one("no task", "ann", "GetTask", `{`+bot+`"id":"none"}`)
	one("bad params", "ann", "SendMessage", `{`+bot+`"message":{"parts":[{}]}}`)
	one("no agent", "ann", "GetTask", `{"id":"x"}`)
	one("nobody", "ann", "GetTask", `{"tenant":"nobody","id":"x"}`)
	one("no key", "", "GetTask", `{`+bot+`"id":"x"}`)
	one("a bad key", "bad", "GetTask", `{`+bot+`"id":"x"}`)
	one("no scope", "reader", "GetTask", `{`+bot+`"id":"x"}`)

	s.ownKey("echo", "service:partner", `"svc:a2a:write","agent:echo"`)
	s.ownKey("narrow", "service:partner", `"svc:a2a:write","agent:grpc-bot"`)
	const message = `{"messageId":"m-1","role":"ROLE_USER","parts":[{"text":"Hello."}]}`
	old := func(title, who, method, request string) {
		s.Helper()
		s.invoke("0.3: "+title, who, grpcV03+"/"+method, request)
	}
	old("send and wait", "echo", "SendMessage", `{"request":`+message+`,"configuration":{"blocking":true}}`)
	old("stream", "echo", "SendStreamingMessage", `{"request":`+message+`}`)
	old("get", "echo", "GetTask", `{"name":"tasks/<t-5>"}`)
	old("list", "echo", "ListTasks", `{"pageSize":1}`)
	old("send at once", "narrow", "SendMessage", `{"request":`+message+`,"configuration":{"blocking":false}}`)
	old("set push", "narrow", "CreateTaskPushNotificationConfig",
		`{"parent":"tasks/<t-7>","configId":"p","config":{"pushNotificationConfig":{"url":"https://example.com/hook"}}}`)
	old("get push", "narrow", "GetTaskPushNotificationConfig", `{"name":"tasks/<t-7>/pushNotificationConfigs/p"}`)
	old("list push", "narrow", "ListTaskPushNotificationConfig", `{"parent":"tasks/<t-7>"}`)
	old("delete push", "narrow", "DeleteTaskPushNotificationConfig", `{"name":"tasks/<t-7>/pushNotificationConfigs/p"}`)
	old("cancel", "narrow", "CancelTask", `{"name":"tasks/<t-7>"}`)
	old("subscribe to what is over", "narrow", "TaskSubscription", `{"name":"tasks/<t-7>"}`)
	old("send for a subscription", "narrow", "SendMessage", `{"request":`+message+`,"configuration":{"blocking":false}}`)
	s.do("claim", "worker", "POST /api/v1/agents/grpc-bot/claim", `{"worker":"w","wait_seconds":5,"lease_seconds":600}`)
	s.do("ask", "worker", "POST /api/v1/agents/grpc-bot/leases/<lease-2>", `{"status":"input-required"}`)
	old("subscribe to what waits for input, and cancel it", "narrow", "TaskSubscription", `{"name":"tasks/<t-8>"}`)
	old("the card", "narrow", "GetAgentCard", `{}`)
	old("no task", "narrow", "GetTask", `{"name":"tasks/none"}`)
	old("bad params", "narrow", "SendMessage", `{"request":{"parts":[{}]}}`)
	old("a key for all agents", "ann", "GetTask", `{"name":"tasks/x"}`)
	old("no key", "", "GetTask", `{"name":"tasks/x"}`)
}

// dial connects the session over gRPC until the returned function is called.
func (s *session) dial() func() {
	s.Helper()
	conn, err := grpc.NewClient(strings.TrimPrefix(s.base, "http://"),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		s.Fatal(err)
	}
	s.grpc = conn
	return func() { _ = conn.Close() }
}

// anyTime is a time as ProtoJSON has it, with as many digits as it needs.
var anyTime = regexp.MustCompile(`"20[2-8]\d-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z"`)

// invoke calls a method, unary or with a stream of responses, and records it. The task of a
// subscription is canceled after the first response, so that the stream ends.
func (s *session) invoke(title, who, method, request string) {
	s.Helper()
	s.say("%s", title)
	fmt.Fprintln(&s.out, "> gRPC", method)
	ctx := s.Context()
	if who != "" {
		fmt.Fprintf(&s.out, "> authorization: Bearer <%s>\n", who)
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+s.expand("<"+who+">"))
	}
	s.out.WriteString(prefixed("> ", pretty(request)))
	service, name, _ := strings.Cut(method, "/")
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(service + "." + name))
	if err != nil {
		s.Fatal(err)
	}
	d := found.(protoreflect.MethodDescriptor)
	in := message(s, d.Input())
	if err := protojson.Unmarshal([]byte(s.expand(request)), in); err != nil {
		s.Fatal(err)
	}
	st, err := s.grpc.NewStream(ctx, &grpc.StreamDesc{ServerStreams: d.IsStreamingServer()}, "/"+method)
	if err == nil {
		err = errors.Join(st.SendMsg(in), st.CloseSend())
	}
	if err != nil {
		s.Fatal(err)
	}
	var b strings.Builder
	for n := 0; ; n++ {
		res := message(s, d.Output())
		if err = st.RecvMsg(res); err != nil {
			break
		}
		b.WriteString(prefixed("< ", s.protoJSON(res)))
		if n == 0 && (name == "SubscribeToTask" || name == "TaskSubscription") {
			id := strings.TrimPrefix(s.expand(regexp.MustCompile(`<t-\d+>`).FindString(request)), "tasks/")
			s.must(200, s.quiet(who, "POST /a2a/grpc-bot", call("tasks/cancel", `{"id":"`+id+`"}`)))
		}
		if !d.IsStreamingServer() {
			break
		}
	}
	if err == io.EOF {
		err = nil
	}
	head, _ := st.Header()
	text := "< " + status.Code(err).String() + "\n"
	for _, md := range []metadata.MD{head, st.Trailer()} {
		for _, k := range slices.Sorted(maps.Keys(md)) {
			if !unrecorded[canonical(k)] && !strings.HasSuffix(k, "-bin") && common[canonical(k)] == "" {
				text += fmt.Sprintf("< %s: %s\n", k, strings.Join(md[k], ", "))
			}
			if k == "x-request-id" && md[k][0] != "" {
				s.request = md[k][0]
			}
		}
	}
	if err != nil {
		text += prefixed("< ", s.protoJSON(status.Convert(err).Proto()))
	}
	s.seen.grpc(method, err == nil)
	s.out.WriteString(s.normalize(text + b.String()))
	s.out.WriteByte('\n')
}

func message(s *session, d protoreflect.MessageDescriptor) proto.Message {
	t, err := protoregistry.GlobalTypes.FindMessageByName(d.FullName())
	if err != nil {
		s.Fatal(err)
	}
	return t.New().Interface()
}

// protoJSON returns a message as indented JSON.
func (s *session) protoJSON(m proto.Message) string {
	b, err := protojson.Marshal(m)
	if err != nil {
		s.Fatal(err)
	}
	return anyTime.ReplaceAllString(pretty(string(b)), `"<time>"`)
}

// canonical spells a metadata key as HTTP does.
func canonical(k string) string {
	parts := strings.Split(k, "-")
	for i, p := range parts {
		if p != "" {
			parts[i] = strings.ToUpper(p[:1]) + p[1:]
		}
	}
	return strings.Join(parts, "-")
}
