package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-dev/parley/sdk/client"
)

// TestRelayTroubles: what goes wrong in the middle of a task neither loses the task nor sends it twice.
func TestRelayTroubles(t *testing.T) {
	eachEngine(t, func(t *testing.T, e engine) {
		t.Run("readings fail", func(t *testing.T) {
			t.Parallel()
			testFaultyReadings(t, e.fresh(t))
		})
		t.Run("a question without words", func(t *testing.T) {
			t.Parallel()
			testSilentQuestion(t, e.fresh(t))
		})
		t.Run("disabled", func(t *testing.T) {
			t.Parallel()
			testDisabledRelay(t, e.fresh(t))
		})
		t.Run("restarted while the remote is down", func(t *testing.T) {
			t.Parallel()
			testRestartInOutage(t, e.fresh(t))
		})
	})
}

// The remote responds to some readings of its task with HTTP 500, and works on.
func testFaultyReadings(t *testing.T, e engine) {
	r := newRemote(t, "JSONRPC", "1.0", false)
	var reads atomic.Int64
	r.wrap(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			body, _ := io.ReadAll(q.Body)
			if bytes.Contains(body, []byte(`"GetTask"`)) && reads.Add(1) <= 3 {
				http.Error(w, "broken", http.StatusInternalServerError)
				return
			}
			q.Body = io.NopCloser(bytes.NewReader(body))
			next.ServeHTTP(w, q)
		})
	})
	w := newRelayed(t, e, r)
	w.send("steady", "wait here")
	<-r.started
	eventually(t, soon, "the task is read again", func() bool { return reads.Load() > 3 })
	close(r.release)
	w.until("steady", client.TaskCompleted)
	if got := r.got(); len(got) != 1 || r.cancels() != 0 {
		t.Errorf("the remote has got %v and %d cancels, want one message", got, r.cancels())
	}
}

// asker asks without a message, and takes the answer up only after a while. Meanwhile its task looks as
// before.
type asker struct{ answered atomic.Int64 }

func (a *asker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		_, _ = fmt.Fprintf(w, `{"name":"Asker","version":"1","capabilities":{},"skills":[],
			"supportedInterfaces":[{"url":"http://%s/","protocolBinding":"JSONRPC","protocolVersion":"1.0"}]}`, r.Host)
		return
	}
	var q struct {
		ID     json.RawMessage
		Method string
		Params struct {
			Message struct{ TaskID string }
		}
	}
	_ = json.NewDecoder(r.Body).Decode(&q)
	if q.Params.Message.TaskID != "" {
		a.answered.CompareAndSwap(0, time.Now().UnixNano())
	}
	status := `{"state":"TASK_STATE_INPUT_REQUIRED","timestamp":"2026-01-02T03:04:05Z"}`
	if at := a.answered.Load(); at > 0 && time.Since(time.Unix(0, at)) > 7*time.Second {
		status = `{"state":"TASK_STATE_COMPLETED"}`
	}
	task := `{"id":"t1","contextId":"c","status":` + status + `}`
	if q.Method == "SendMessage" {
		task = `{"task":` + task + `}`
	}
	_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, q.ID, task)
}

// A question that was answered is not asked again while the remote has not taken up the answer.
func testSilentQuestion(t *testing.T, e engine) {
	site := httptest.NewServer(&asker{})
	defer site.Close()
	w := newRelayTo(t, e, site.URL)
	w.send("asked", "hello")
	w.until("asked", client.TaskInputRequired)
	w.send("asked", "the answer")
	w.until("asked", client.TaskCompleted)
}

// A task that ends while its relay is disabled is canceled at the remote.
func testDisabledRelay(t *testing.T, e engine) {
	r := newRemote(t, "JSONRPC", "1.0", true)
	w := newRelayed(t, e, r)
	if _, err := w.agent.Send(t.Context(), client.SendParams{
		ID: "late", Message: client.NewMessage(client.Text("wait late")),
		Metadata: json.RawMessage(`{"parley.dev/policy":{"timeout_seconds":6}}`),
	}); err != nil {
		t.Fatal(err)
	}
	<-r.started
	yes := true
	if _, err := w.admin.Agents.Update(t.Context(), "tariffs", client.AgentPatch{Disabled: &yes}); err != nil {
		t.Fatal(err)
	}
	eventually(t, soon, "the remote's task is canceled", func() bool { return r.cancels() == 1 })
}

// A remote that comes back soon after the server has started again gets its tasks soon.
func testRestartInOutage(t *testing.T, e engine) {
	r := newRemote(t, "JSONRPC", "1.0", true)
	w := newRelayed(t, e, r)
	r.stop()
	w.send("down", "say down")
	eventually(t, soon, "the remote is found to be down", func() bool { return w.relayOf("tariffs").Health == "down" })
	key := w.s.key
	w.s.Kill()
	e.settle(t)
	w.s = serve(t, e, toLoopback...)
	w.s.key = key
	w.connect(w.s, key)
	r.start()
	w.until("down", client.TaskCompleted)
}
