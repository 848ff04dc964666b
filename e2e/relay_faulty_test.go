package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/parley-dev/parley/sdk/client"
)

// faultyRemote is a remote whose response depends on the first word of the message.
func faultyRemote(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		_, _ = fmt.Fprintf(w, `{"name":"Faulty","version":"1","capabilities":{"streaming":true},"skills":[],
			"supportedInterfaces":[{"url":"http://%s/","protocolBinding":"JSONRPC","protocolVersion":"1.0"}]}`, r.Host)
		return
	}
	var q struct {
		ID     json.RawMessage
		Method string
		Params struct {
			ID      string
			Message struct {
				MessageID string
				Parts     []struct{ Text string }
			}
		}
	}
	if json.NewDecoder(r.Body).Decode(&q) != nil || len(q.Params.Message.Parts) == 0 {
		// The task is read: the response has a task of another sender.
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"id":"another","contextId":"c",
			"status":{"state":"TASK_STATE_COMPLETED"},"artifacts":[{"artifactId":"a","parts":[{"text":"private"}]}]}}`, q.ID)
		return
	}
	id := "t-" + q.Params.Message.MessageID
	say := func(result string) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\n\n", q.ID, result)
	}
	switch q.Params.Message.Parts[0].Text {
	case "status":
		http.Error(w, "broken", http.StatusInternalServerError)
	case "gateway":
		http.Error(w, "broken", http.StatusBadGateway)
	case "html":
		_, _ = io.WriteString(w, "<html>")
	case "unknown":
		say(`{"surprise":1}`)
	case "nameless":
		say(`{"task":{"id":"","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}}`)
	case "control":
		say(`{"task":{"id":"a\u0000b","contextId":"c\u0000","status":{"state":"TASK_STATE_WORKING"}}}`)
	case "snapshot":
		say(`{"task":{"id":"` + id + `","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}}`)
	case "echo":
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":{\"code\":-32602,\"message\":\"no %s\"}}\n\n",
			q.ID, r.Header.Get("Authorization"))
	case "foreign":
		say(`{"task":{"id":"` + id + `","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}}`)
		say(`{"statusUpdate":{"taskId":"another","contextId":"c","status":{"state":"TASK_STATE_COMPLETED",` +
			`"message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"private"}]}}}}`)
		say(`{"statusUpdate":{"taskId":"` + id + `","contextId":"c","status":{"state":"TASK_STATE_REJECTED"}}}`)
	default:
		say(`{"task":{"id":"` + id + `","contextId":"c","status":{"state":"TASK_STATE_COMPLETED"}}}`)
	}
}

// TestRelayFaultyResponses: tasks to which a remote responds in a wrong way cost attempts, and do not
// keep others from the remote.
func TestRelayFaultyResponses(t *testing.T) {
	eachEngine(t, func(t *testing.T, e engine) {
		site := httptest.NewServer(http.HandlerFunc(faultyRemote))
		defer site.Close()
		w := newRelayTo(t, e.fresh(t), site.URL)
		faults := map[string]string{
			"status": "HTTP 500", "html": "not valid", "unknown": "not valid", "nameless": "does not name its task",
			"control": "does not name its task", "snapshot": "not valid",
		}
		for id := range faults {
			w.send(id, id)
		}
		for id, want := range faults {
			eventually(t, soon, id+" waits for its second attempt", func() bool {
				got, err := w.agent.Get(t.Context(), id, client.GetParams{})
				return err == nil && got.Status.State == client.TaskWorking && got.Status.Message != nil &&
					strings.Contains(got.Status.Message.Parts[0].Text, want) && len(got.Artifacts) == 0 &&
					strings.Contains(got.Status.Message.Parts[0].Text, "attempt 2 of 3 starts at")
			})
		}
		w.send("foreign", "foreign")
		if got := w.until("foreign", client.TaskRejected); strings.Contains(fmt.Sprint(got.History), "private") {
			t.Errorf("history = %v, want nothing of another task", got.History)
		}
		if e.name == "sqlite" { // it has a key for secrets
			w.register("echoes", object{"url": site.URL, "credential": object{"type": "bearer", "token": "s3cret-token"}})
			tariffs := w.agent
			w.agent = w.admin.Agent("echoes")
			w.send("echo", "echo")
			if got := w.until("echo", client.TaskRejected); strings.Contains(got.Status.Message.Parts[0].Text, "s3cret") {
				t.Errorf("the sender sees %q, want no credential", got.Status.Message.Parts[0].Text)
			}
			w.agent = tariffs
		}
		w.send("gateway", "gateway") // opens the breaker again and again
		w.send("good", "good")
		w.until("good", client.TaskCompleted)
	})
}
