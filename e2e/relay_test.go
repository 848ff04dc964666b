package e2e

import (
	"context"
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/parley-dev/parley/sdk/client"
)

// toLoopback lets relays reach the remotes of the tests.
var toLoopback = []string{"--outbound-allow", "127.0.0.1"}

// relayed is a server with one relay.
type relayed struct {
	t     *testing.T
	s     *server
	admin *client.Client
	agent *client.AgentClient
}

func newRelayed(t *testing.T, e engine, r *remote, flags ...string) *relayed {
	t.Helper()
	s := serve(t, e, append(append([]string{}, toLoopback...), flags...)...)
	w := &relayed{t: t, s: s}
	w.connect(s, s.key)
	w.register("tariffs", object{"url": r.url()})
	return w
}

func (w *relayed) connect(s *server, key string) {
	w.t.Helper()
	admin, err := client.New(client.Config{URL: s.base, Key: key})
	if err != nil {
		w.t.Fatal(err)
	}
	w.admin, w.agent = admin, admin.Agent("tariffs")
}

func (w *relayed) register(id string, relay object) *client.Agent {
	w.t.Helper()
	a, err := w.tryRegister(id, relay)
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

func (w *relayed) tryRegister(id string, relay object) (*client.Agent, error) {
	return w.admin.Agents.Create(w.t.Context(), client.AgentCreation{},
		client.WithBody(object{"id": id, "relay": relay}))
}

// send sends a message without waiting.
func (w *relayed) send(id, say string) {
	w.t.Helper()
	_, err := w.agent.Send(w.t.Context(), client.SendParams{ID: id, Message: client.NewMessage(client.Text(say))})
	if err != nil {
		w.t.Fatal(err)
	}
}

// until waits for a state and returns the task.
func (w *relayed) until(id string, state client.TaskState) *client.Task {
	w.t.Helper()
	var last *client.Task
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		got, err := w.agent.Get(w.t.Context(), id, client.GetParams{})
		if err != nil {
			w.t.Fatal(err)
		}
		if last = got; got.Status.State == state {
			return got
		}
	}
	w.t.Fatalf("task %s is %s, want %s: %+v", id, last.Status.State, state, last.Status.Message)
	return nil
}

// result returns the text of all artifacts.
func result(t *client.Task) string {
	var b strings.Builder
	for _, a := range t.Artifacts {
		for _, p := range a.Parts {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}

// TestRelay relays tasks to the official servers of the Go SDKs over every binding.
func TestRelay(t *testing.T) {
	eachEngine(t, func(t *testing.T, e engine) {
		for _, c := range []struct {
			name, binding, version string
			streaming              bool
		}{
			{"JSON-RPC", "JSONRPC", "1.0", true},
			{"JSON-RPC without streams", "JSONRPC", "1.0", false},
			{"HTTP+JSON", "HTTP+JSON", "1.0", true},
			{"gRPC", "GRPC", "1.0", true},
			{"JSON-RPC 0.3", "JSONRPC", "0.3", true},
			{"JSON-RPC 0.3 without streams", "JSONRPC", "0.3", false},
			{"HTTP+JSON 0.3", "HTTP+JSON", "0.3", true},
		} {
			if e.name != "sqlite" && c.name != "JSON-RPC" && c.name != "gRPC" {
				continue // what differs between engines is the same for all bindings
			}
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				r := newRemote(t, c.binding, c.version, c.streaming)
				testRelayed(t, newRelayed(t, e.fresh(t), r), r)
			})
		}
	})
}

// TestRelayOfLargeTasks relays tasks that take much of the memory that a node has for one relay. Over gRPC
// their last event is too large for a stream, so the task is compared with what is stored of it.
func TestRelayOfLargeTasks(t *testing.T) {
	eachEngine(t, func(t *testing.T, e engine) {
		for _, binding := range []string{"GRPC", "JSONRPC"} {
			t.Run(binding, func(t *testing.T) {
				t.Parallel()
				w := newRelayed(t, e.fresh(t), newRemote(t, binding, "1.0", true))
				tasks := map[string]string{"large": "abcd"}
				if e.name == "sqlite" {
					tasks["largest"] = strings.Repeat("abcdefghijklm", 5)
				}
				for id, letters := range tasks {
					w.send(id, "pour "+letters)
					want := "poured: "
					for i := range letters {
						want += strings.Repeat(letters[i:i+1], 200<<10)
					}
					if got := result(w.until(id, client.TaskCompleted)); got != want+strings.Repeat("!", 300<<10) {
						t.Errorf("%s: got %d bytes, want the %d that the remote sent", id, len(got), len(want)+300<<10)
					}
				}
			})
		}
	})
}

func testRelayed(t *testing.T, w *relayed, r *remote) {
	got, err := w.admin.Agents.Get(t.Context(), "tariffs")
	if err != nil {
		t.Fatal(err)
	}
	if got.Name != "Remote" || strings.Join(got.Skills, ",") != "theatre,bad-tag" {
		t.Errorf("the agent is %q with skills %v, want what the card says", got.Name, got.Skills)
	}
	w.send("say", "say hello")
	if done := w.until("say", client.TaskCompleted); result(done) != "hello!" || len(done.Artifacts) != 1 {
		t.Errorf("artifacts = %+v, want one with both chunks", done.Artifacts)
	}
	w.send("reply", "reply at once")
	if done := w.until("reply", client.TaskCompleted); done.Status.Message == nil || done.Status.Message.Parts[0].Text != "at once" {
		t.Errorf("reply = %+v, want the message of the remote", done.Status.Message)
	}
	w.send("ask", "ask which one?")
	if asked := w.until("ask", client.TaskInputRequired); asked.Status.Message.Parts[0].Text != "which one?" {
		t.Errorf("question = %+v, want that of the remote", asked.Status.Message)
	}
	w.send("ask", "the blue one")
	if done := w.until("ask", client.TaskCompleted); result(done) != "the blue one!" {
		t.Errorf("result = %q, want the response to the question", result(done))
	}
	w.send("refuse", "refuse not today")
	if no := w.until("refuse", client.TaskRejected); no.Status.Message.Parts[0].Text != "not today" {
		t.Errorf("refusal = %+v, want that of the remote", no.Status.Message)
	}
	w.send("cancel", "wait for ever")
	for len(r.started) > 0 {
		<-r.started
	}
	w.until("cancel", client.TaskWorking)
	eventually(t, soon, "the remote works on the task", func() bool { return hasID(r.got(), 6) })
	if _, err := w.agent.Cancel(t.Context(), "cancel"); err != nil {
		t.Fatal(err)
	}
	eventually(t, soon, "the remote's task is canceled", func() bool { return r.cancels() == 1 })
	if ids := r.got(); len(ids) != 6 {
		t.Errorf("the remote got %v, want each message once", ids)
	}
}

func hasID(ids []string, n int) bool { return len(ids) >= n }

// relayOf reads the relay of an agent as REST shows it.
func (w *relayed) relayOf(id string) (out struct {
	URL        string
	Health     string
	Problem    string
	Credential *struct{ Type string }
	Remote     struct{ Name, Protocol, Binding string }
},
) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, w.s.base+"/api/v1/orgs/main/agents/"+id, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+w.s.key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	var body struct{ Relay json.RawMessage }
	if err := json.NewDecoder(res.Body).Decode(&body); err != nil {
		w.t.Fatal(err)
	}
	if strings.Contains(string(body.Relay), "s3cret") {
		w.t.Errorf("the response contains a secret: %s", body.Relay)
	}
	if err := json.Unmarshal(body.Relay, &out); err != nil {
		w.t.Fatal(err)
	}
	return out
}

// linked reports whether a store has the link of a relayed task to the remote's task.
func (e engine) linked(t *testing.T, id string) bool {
	t.Helper()
	const query = `SELECT count(*) FROM relay_tasks r JOIN tasks t ON t.org_id = r.org_id AND t.uid = r.uid
		WHERE t.id = $1 AND r.remote_task <> ''`
	n := 0
	if e.name == "postgres" {
		db := must(pgx.Connect(t.Context(), e.data[1]))(t)
		defer func() { _ = db.Close(context.WithoutCancel(t.Context())) }()
		if err := db.QueryRow(t.Context(), query, id).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n > 0
	}
	db := must(sqlite.OpenConn(filepath.Join(e.data[1], "parley.db"), sqlite.OpenReadOnly))(t)
	defer func() { _ = db.Close() }()
	db.SetBusyTimeout(soon)
	err := sqlitex.Execute(db, query, &sqlitex.ExecOptions{Args: []any{id}, ResultFunc: func(s *sqlite.Stmt) error {
		n = s.ColumnInt(0)
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	return n > 0
}

// TestRelaySurvives: a remote or the server is lost while a task is relayed.
func TestRelaySurvives(t *testing.T) {
	eachEngine(t, func(t *testing.T, e engine) {
		t.Parallel()
		r := newRemote(t, "JSONRPC", "1.0", true)
		w := newRelayed(t, e, r)
		busy := func(id string) {
			t.Helper()
			before := len(r.got())
			w.send(id, "wait "+id)
			eventually(t, soon, "the remote works on the task", func() bool { return len(r.got()) > before && len(r.started) > 0 })
			<-r.started
			// Before the first response is stored, a lost message must be sent again. The first event can be
			// stored before the link to the remote's task.
			eventually(t, soon, "the first events are stored", func() bool {
				got, err := w.agent.Get(t.Context(), id, client.GetParams{})
				return err == nil && got.Status.Message != nil
			})
			eventually(t, soon, "the link is stored", func() bool { return e.linked(t, id) })
		}
		once := func(id string, messages int) {
			t.Helper()
			done := w.until(id, client.TaskCompleted)
			if result(done) != id+"!" || len(done.Artifacts) != 1 {
				t.Errorf("%s: artifacts = %+v, want one", id, done.Artifacts)
			}
			if got := len(r.got()); got != messages {
				t.Errorf("%s: the remote has got %d messages, want %d: %v", id, got, messages, r.got())
			}
		}
		busy("break") // the connections break, and the remote goes on
		r.stop()
		r.start()
		r.release <- struct{}{}
		once("break", 1)

		busy("kill") // the server is killed; what the remote has done meanwhile is read
		key := w.s.key
		w.s.Kill()
		r.release <- struct{}{}
		e.settle(t)
		w.s = serve(t, e, toLoopback...)
		w.s.key = key
		w.connect(w.s, key)
		once("kill", 2)

		busy("forget") // a new process of the remote knows nothing of the task: another attempt
		r.stop()
		r.forget("JSONRPC", "1.0", true)
		r.start()
		eventually(t, soon, "the remote gets the message again", func() bool { return len(r.got()) == 4 })
		close(r.release)
		once("forget", 4)

		r.stop() // while the remote is down, tasks wait
		w.send("down", "say down")
		eventually(t, soon, "the remote is found to be down", func() bool { return w.relayOf("tariffs").Health == "down" })
		if got := w.relayOf("tariffs").Problem; !strings.Contains(got, "the connection was refused") {
			t.Errorf("problem = %q, want that the connection was refused", got)
		}
		eventually(t, soon, "the agent is offline", func() bool {
			a, err := w.admin.Agents.Get(t.Context(), "tariffs")
			return err == nil && a.Status == client.AgentOffline
		})
		r.start()
		since := time.Now()
		once("down", 5)
		if took := time.Since(since); took > 15*time.Second {
			t.Errorf("the task was sent %v after the remote came back, want at most 10 s", took)
		}
		eventually(t, soon, "the agent is available", func() bool { return w.relayOf("tariffs").Health == "up" })
	})
}
