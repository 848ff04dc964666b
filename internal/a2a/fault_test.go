package a2a

import (
	"net/http"
	"strings"
	"testing"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/grpc/codes"
)

// An unavailable store is a 503 in every binding, with a body that the binding's clients
// understand, so that load balancers and clients try again.
func TestAStoreFaultIsUnavailable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.caller("user:ada")
	send := envelope("tasks/send", hello("t"))
	again := strings.Replace(envelope("tasks/send", hello("u")), `"id":1,`, `"id":2,`, 1)
	notification := strings.Replace(send, `"id":1,`, "", 1)
	official := `{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hello"}]}}`
	w.down.Store(true)
	for name, a := range map[string]*answer{
		"request":       w.do(ada, "POST", "/a2a/echo", send),
		"batch":         w.do(ada, "POST", "/a2a/echo", "["+send+","+again+"]"),
		"notification":  w.do(ada, "POST", "/a2a/echo", notification),
		"notifications": w.do(ada, "POST", "/a2a/echo", "["+notification+"]"),
		"stream":        w.rpc(ada, "echo", "tasks/sendSubscribe", hello("s")),
		"1.0":           w.rpc(ada, "echo", "SendMessage", official, "A2A-Version", "1.0"),
		"1.0 stream":    w.rpc(ada, "echo", "SendStreamingMessage", official, "A2A-Version", "1.0"),
		"HTTP+JSON": w.do(ada, "POST", "/a2a/echo/message:send", official,
			"A2A-Version", "1.0", "Content-Type", "application/json"),
	} {
		retry := a.Header.Get("Retry-After")
		if a.Status != http.StatusServiceUnavailable || retry == "" || !strings.Contains(a.Body, "try again") {
			t.Errorf("%s: status = %d, Retry-After = %q, want 503: %s", name, a.Status, retry, a.Body)
		}
		if name != "HTTP+JSON" && !strings.Contains(a.Body, `"code":-32603`) {
			t.Errorf("%s: body = %s, want a JSON-RPC error", name, a.Body)
		}
	}
	_, err := a2apb.NewA2AServiceClient(dial(t, w.h2c())).SendMessage(as(t.Context(), ada), protoSend("echo", "x"))
	failsGRPC(t, err, codes.Unavailable, reasonOf(err))

	// If some items of a batch were carried out, the client must not repeat all of it.
	mixed := w.do(ada, "POST", "/a2a/echo", "["+send+","+envelope("tasks/get", `{"id":"none"}`)+"]")
	if mixed.Status != http.StatusOK || !strings.Contains(mixed.Body, "store.unavailable") {
		t.Errorf("a batch with one result: status = %d, want 200: %s", mixed.Status, mixed.Body)
	}
	w.down.Store(false)
	w.do(ada, "POST", "/a2a/echo", send, "Prefer", "wait=30").state("completed")
}
