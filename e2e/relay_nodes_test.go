package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-dev/parley/sdk/client"
)

// streamCount counts the streams of each task that are open at a remote at the same time.
type streamCount struct {
	mu   sync.Mutex
	open map[string]int // by the message that made the task
	most int
}

// watch counts the streams of a JSON-RPC server.
func (c *streamCount) watch(next http.Handler, r *remote) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		if err != nil {
			return
		}
		q.Body = io.NopCloser(bytes.NewReader(body))
		var call struct {
			Method string
			Params struct {
				ID      string
				Message struct{ MessageID string }
			}
		}
		_ = json.Unmarshal(body, &call) // the card is requested without a body
		var key string
		switch call.Method {
		case "SendStreamingMessage":
			key = call.Params.Message.MessageID
		case "SubscribeToTask":
			key = r.messageOf(call.Params.ID)
		default:
			next.ServeHTTP(w, q)
			return
		}
		c.mu.Lock()
		c.open[key]++
		c.most = max(c.most, c.open[key])
		c.mu.Unlock()
		defer func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.open[key]--
		}()
		next.ServeHTTP(w, q)
	})
}

// followed returns how many tasks have a stream.
func (c *streamCount) followed() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, open := range c.open {
		n += min(open, 1)
	}
	return n
}

// TestRelayNodes relays tasks on two nodes, one of which is killed: each task is sent once, and
// never followed by both.
func TestRelayNodes(t *testing.T) {
	t.Parallel()
	const tasks = 24
	e := engine{name: "postgres"}.fresh(t)
	r := newRemote(t, "JSONRPC", "1.0", true)
	count := &streamCount{open: map[string]int{}}
	r.wrap(func(next http.Handler) http.Handler { return count.watch(next, r) })
	w := newRelayed(t, e, r)
	first, key := w.s, w.s.key
	second := serve(t, e, toLoopback...)
	second.key = key
	for i := range tasks {
		w.connect([]*server{first, second}[i%2], key)
		w.send(fmt.Sprint("t", i), fmt.Sprint("wait t", i))
	}
	eventually(t, soon, "all tasks are followed", func() bool { return count.followed() == tasks })
	for i := range tasks { // a message whose response is not stored would be sent again
		eventually(t, soon, "the link is stored", func() bool { return e.linked(t, fmt.Sprint("t", i)) })
	}
	first.Kill()
	w.connect(second, key)
	eventually(t, soon, "the remote notices that a node is gone", func() bool { return count.followed() < tasks })
	eventually(t, soon, "the other node follows all tasks", func() bool { return count.followed() == tasks })
	close(r.release)
	for i := range tasks {
		id := fmt.Sprint("t", i)
		if done := w.until(id, client.TaskCompleted); result(done) != id+"!" || len(done.Artifacts) != 1 {
			t.Errorf("%s: artifacts = %+v, want one", id, done.Artifacts)
		}
	}
	sent := map[string]int{}
	for _, id := range r.got() {
		sent[id]++
	}
	if len(r.got()) != tasks || len(sent) != tasks {
		t.Errorf("the remote has got %d messages with %d ids, want %d of each", len(r.got()), len(sent), tasks)
	}
	if count.most != 1 {
		t.Errorf("%d streams of one task were open at once, want 1", count.most)
	}
}

// slowWriter sends a byte at a time.
type slowWriter struct{ http.ResponseWriter }

func (w slowWriter) Write(b []byte) (int, error) {
	for i := range b {
		if _, err := w.ResponseWriter.Write(b[i : i+1]); err != nil {
			return i, err
		}
		w.Flush()
		time.Sleep(time.Millisecond)
	}
	return len(b), nil
}

func (w slowWriter) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

// TestRelaySlow relays to a remote whose every response, the card included, arrives byte by byte.
func TestRelaySlow(t *testing.T) {
	t.Parallel()
	r := newRemote(t, "JSONRPC", "1.0", true)
	r.wrap(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) { next.ServeHTTP(slowWriter{w}, q) })
	})
	w := newRelayed(t, engine{name: "sqlite"}.fresh(t), r)
	w.send("say", "say "+strings.Repeat("slowly ", 50))
	w.send("ask", "ask which one?")
	echo := w.admin.Agent("echo")
	if _, err := echo.Send(t.Context(), client.SendParams{ID: "beside", Message: client.NewMessage(client.Text("quick"))}); err != nil {
		t.Fatal(err)
	}
	eventually(t, soon, "another agent's task is done", func() bool {
		got, err := echo.Get(t.Context(), "beside", client.GetParams{})
		return err == nil && got.Status.State == client.TaskCompleted
	})
	if done := w.until("say", client.TaskCompleted); result(done) != strings.Repeat("slowly ", 50)+"!" {
		t.Errorf("result = %q, want all of it", result(done))
	}
	w.until("ask", client.TaskInputRequired)
	w.send("ask", "the blue one")
	if done := w.until("ask", client.TaskCompleted); result(done) != "the blue one!" {
		t.Errorf("result = %q, want the response to the question", result(done))
	}
	if ids := r.got(); len(ids) != 3 {
		t.Errorf("the remote got %v, want each message once", ids)
	}
}
