package worker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/app"
	"github.com/parley-dev/parley/internal/apptest"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/sdk/worker"
)

// The server that all tests and examples of this package use.
var server apptest.Server

// rounds counts the registrations of each agent, of which go test -count makes several.
var rounds sync.Map

func TestMain(m *testing.M) { os.Exit(server.Main(m)) }

// register creates an agent and a key for its workers.
func register(id string, more ...string) (key string) {
	op, err := app.OpenOperator(context.Background(), server.Store, false)
	if err != nil {
		panic(err)
	}
	defer op.Close()
	round, again := rounds.LoadOrStore(id, 1)
	if again {
		rounds.Store(id, round.(int)+1)
	} else if _, err := op.Agents.Create(context.Background(), agent.Agent{ID: id, Org: "main", Name: id}); err != nil {
		panic(err)
	}
	_, key, err = op.Identity.CreateKey(context.Background(), identity.KeyRequest{
		Principal: identity.Principal{Org: "main", Kind: identity.Agent, ID: id}, Scopes: append(more, "svc:a2a:serve"),
	})
	if err != nil {
		panic(err)
	}
	return key
}

// task is a task as its sender sees it.
type task struct {
	Status struct {
		State   string
		Message *worker.Message
	}
	Artifacts []struct {
		ID    string `json:"artifactId"`
		Parts []worker.Part
	}
}

func (t *task) String() string {
	s := t.Status.State
	if t.Status.Message != nil {
		s += " (" + t.Status.Message.Text() + ")"
	}
	for _, a := range t.Artifacts {
		m := worker.Message{Parts: a.Parts}
		s += ": " + strings.ReplaceAll(m.Text(), "\n", "")
	}
	return s
}

// call makes a sender's JSON-RPC call; with a text it waits for the task to rest.
func call(agentID, method, id, text string) *task {
	params := map[string]any{}
	if id != "" {
		round, _ := rounds.Load(agentID)
		params["id"] = fmt.Sprintf("%s-%d", id, round)
	}
	if method == "tasks/send" || method == "message/send" {
		params["message"] = map[string]any{"role": "user", "parts": []any{map[string]string{"type": "text", "text": text}}}
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		panic(err)
	}
	req, err := http.NewRequest(http.MethodPost, server.URL+"/a2a/"+agentID, bytes.NewReader(body))
	if err != nil {
		panic(err)
	}
	req.Header.Set("Authorization", "Bearer "+server.Key)
	if text != "" {
		req.Header.Set("Prefer", "wait=30")
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		panic(err)
	}
	defer res.Body.Close()
	var a struct {
		Result task
		Error  json.RawMessage
	}
	if err := json.NewDecoder(res.Body).Decode(&a); err != nil || a.Error != nil {
		panic(fmt.Sprintf("%s: %v %s", method, err, a.Error))
	}
	return &a.Result
}

func send(agentID, id, text string) *task { return call(agentID, "tasks/send", id, text) }

// run starts a worker that ends with the test.
func run(t *testing.T, id, key string, handle worker.Handler, change ...func(*worker.Config)) (stop func()) {
	t.Helper()
	cfg := worker.Config{URL: server.URL, Agent: id, Key: key}
	for _, f := range change {
		f(&cfg)
	}
	w, err := worker.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx, handle) }()
	ended := false
	stop = func() {
		cancel()
		if ended {
			return
		}
		ended = true
		if err := <-done; err != nil {
			t.Errorf("Run = %v", err)
		}
	}
	t.Cleanup(stop)
	return stop
}

func TestEveryEndReachesTheSender(t *testing.T) {
	t.Parallel()
	run(t, "ends", register("ends"), func(ctx context.Context, t *worker.Task) error {
		switch t.Text() {
		case "complete":
			return t.Complete(ctx, worker.Text("done for "+t.Sender.String()))
		case "reply":
			return t.Reply(ctx, worker.Text("hello yourself"))
		case "nothing":
			return nil
		case "fail":
			return t.Fail(ctx, "broken")
		case "reject":
			return t.Reject(ctx, "not mine")
		case "panic":
			panic("boom")
		case "grow":
			for _, s := range []string{"a", "b", "c"} {
				if err := t.AppendArtifact(ctx, worker.Artifact{ID: "x", Parts: []worker.Part{worker.Text(s)}}); err != nil {
					return err
				}
			}
			return nil
		case "empty":
			return t.Complete(ctx, worker.Text(""), worker.Data(map[string]int{"n": 1}),
				worker.File("f.txt", "text/plain", []byte("hello")))
		case "too much":
			return t.Complete(ctx, worker.Text(strings.Repeat("x", 17<<20)))
		}
		return fmt.Errorf("what is %q?", t.Text())
	}, func(c *worker.Config) { c.Capacity = 4 })
	for text, want := range map[string]string{
		"complete": "completed: done for main/user:admin",
		"reply":    "completed (hello yourself)",
		"nothing":  "completed",
		"fail":     "failed (broken)",
		"reject":   "rejected (not mine)",
		"panic":    "failed (the agent failed in an unexpected way)",
		"grow":     "completed: abc",
		"empty":    "completed: ",
		"other":    `failed (what is "other"?)`,
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			if got := send("ends", "t-"+text, text).String(); got != want {
				t.Errorf("the sender sees %q; want %q", got, want)
			}
		})
	}
	if got := send("ends", "t-too-much", "too much"); got.Status.State != "failed" {
		t.Errorf("task with an artifact beyond the limit = %s, want failed", got)
	}
}

func TestAConversation(t *testing.T) {
	t.Parallel()
	run(t, "talk", register("talk"), func(ctx context.Context, t *worker.Task) error {
		if !t.Replied() {
			return t.AskForInput(ctx, "What is your name?")
		}
		first := t.History[0]
		return t.Complete(ctx, worker.Text(fmt.Sprintf("%s, %s; attempt %d", first.Text(), t.Text(), t.Attempt)))
	})
	if got := send("talk", "t", "Hello").String(); got != "input-required (What is your name?)" {
		t.Fatalf("first turn = %s, want input-required (What is your name?)", got)
	}
	if got := send("talk", "t", "Ada").String(); got != "completed: Hello, Ada; attempt 1" {
		t.Errorf("second turn = %s, want completed: Hello, Ada; attempt 1", got)
	}
}

func TestCancelReachesTheHandler(t *testing.T) {
	t.Parallel()
	began, ended := make(chan struct{}), make(chan error, 1)
	run(t, "cancels", register("cancels"), func(ctx context.Context, t *worker.Task) error {
		close(began)
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return ctx.Err()
	})
	go send("cancels", "t", "work")
	<-began
	at := time.Now()
	call("cancels", "tasks/cancel", "t", "")
	if err := <-ended; err != worker.ErrCanceled {
		t.Errorf("cause = %v, want %v", err, worker.ErrCanceled)
	}
	if took := time.Since(at); took > 10*time.Second { // not when half of the lease of 30 s is over
		t.Errorf("cancel took %s, want at most 10s", took)
	}
	if got := call("cancels", "tasks/get", "t", "").Status.State; got != "canceled" {
		t.Errorf("state = %s, want canceled", got)
	}
}

func TestFurtherTurnsAndMessages(t *testing.T) {
	t.Parallel()
	heard, began := make(chan string, 1), make(chan struct{})
	run(t, "hears", register("hears"), func(ctx context.Context, t *worker.Task) error {
		close(began)
		turn := <-t.Turns()
		return t.Complete(ctx, worker.Text(t.Text()+", "+turn.Text()))
	}, func(c *worker.Config) {
		c.OnMessage = func(_ context.Context, m worker.DirectMessage) { heard <- m.From.String() + ": " + m.Text() }
	})
	go send("hears", "t", "one")
	<-began
	if got := send("hears", "t", "two").String(); got != "completed: one, two" {
		t.Errorf("task = %q, want completed: one, two", got)
	}
	call("hears", "message/send", "", "By the way")
	if got := <-heard; got != "main/user:admin: By the way" {
		t.Errorf("direct message = %q, want By the way from main/user:admin", got)
	}
}

// The first response with a turn is lost; the handler still gets the turn, and gets it once.
func TestTurnsOfLostResponsesArriveOnce(t *testing.T) {
	t.Parallel()
	var lost sync.Map // turns whose first response was lost
	proxy := server.Proxy(t, func(res *http.Response) error {
		body, err := io.ReadAll(res.Body)
		res.Body = io.NopCloser(bytes.NewReader(body))
		if err != nil || !strings.Contains(res.Request.URL.Path, "/leases/") {
			return err
		}
		for _, turn := range []string{"two", "three"} {
			if strings.Contains(string(body), `"`+turn+`"`) {
				if _, again := lost.LoadOrStore(turn, true); !again {
					return errors.New("it got lost")
				}
			}
		}
		return nil
	})
	said := make(chan string, 10)
	run(t, "deaf", register("deaf"), func(ctx context.Context, t *worker.Task) error {
		said <- t.Text()
		heard := t.Text()
		for range 2 {
			turn := <-t.Turns()
			heard += " " + turn.Text()
			said <- turn.Text()
		}
		// A report with a response: its turns must not arrive again.
		if err := t.Progress(ctx, "heard"); err != nil {
			return err
		}
		select {
		case turn := <-t.Turns():
			heard += " " + turn.Text()
		default:
		}
		return t.Complete(ctx, worker.Text(heard))
	}, func(c *worker.Config) { c.URL = proxy })
	got := make(chan *task, 3)
	for _, text := range []string{"one", "two", "three"} {
		go func() { got <- send("deaf", "t", text) }()
		select {
		case heard := <-said:
			if heard != text {
				t.Errorf("the handler hears %q; want %q", heard, text)
			}
		case <-time.After(time.Minute):
			t.Fatalf("the handler did not get %q, want it", text)
		}
	}
	if got := (<-got).String(); got != "completed (heard): one two three" && got != "completed: one two three" {
		t.Errorf("task = %q, want completed: one two three", got)
	}
	for _, turn := range []string{"two", "three"} {
		if _, ok := lost.Load(turn); !ok {
			t.Errorf("no response with %q was lost, want one: nothing was tested", turn)
		}
	}
}

// A worker that stops costs its tasks neither an attempt nor the time of a lease.
func TestAHandedBackTaskGoesOnAtOnce(t *testing.T) {
	t.Parallel()
	key := register("moves")
	began := make(chan struct{})
	stop := run(t, "moves", key, func(ctx context.Context, t *worker.Task) error {
		close(began)
		<-ctx.Done()
		return ctx.Err()
	}, func(c *worker.Config) { c.Grace, c.Name = -1, "first" })
	got := make(chan *task, 1)
	go func() { got <- send("moves", "t", "work") }()
	<-began
	stop()
	run(t, "moves", key, func(ctx context.Context, t *worker.Task) error {
		return t.Complete(ctx, worker.Text(fmt.Sprintf("attempt %d", t.Attempt)))
	}, func(c *worker.Config) { c.Name = "second" })
	// Without the hand-back the sender would not wait long enough, and it would be attempt 2.
	if got := (<-got).String(); got != "completed: attempt 1" {
		t.Errorf("task = %q, want completed: attempt 1", got)
	}
}

// The worker that claims first never reports, as if it had been killed.
func TestALostWorkersTaskComesAgain(t *testing.T) {
	t.Parallel()
	key := register("lost")
	got := make(chan *task, 1)
	go func() { got <- send("lost", "t", "work") }()
	req, err := http.NewRequest(http.MethodPost, server.URL+"/api/v1/agents/lost/claim",
		strings.NewReader(`{"worker":"doomed","lease_seconds":1}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("claim = %v, %v; want 200", res, err)
	}
	body, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	if err != nil || !strings.Contains(string(body), `"lease"`) {
		t.Fatalf("claim = %s, %v; want a lease", body, err)
	}
	run(t, "lost", key, func(ctx context.Context, t *worker.Task) error {
		return t.Complete(ctx, worker.Text(fmt.Sprintf("attempt %d", t.Attempt)))
	})
	if got := (<-got).String(); got != "completed: attempt 2" {
		t.Errorf("task = %q, want completed: attempt 2", got)
	}
}

func TestPresenceFollowsTheWorker(t *testing.T) {
	t.Parallel()
	key := register("present")
	status := func() string {
		req, _ := http.NewRequest(http.MethodGet, server.URL+"/.well-known/agent.json", nil)
		req.Header.Set("Authorization", "Bearer "+server.Key)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		var card struct {
			Agents []struct{ ID, Status string }
		}
		if err := json.NewDecoder(res.Body).Decode(&card); err != nil {
			t.Fatal(err)
		}
		for _, a := range card.Agents {
			if a.ID == "present" {
				return a.Status
			}
		}
		return "absent"
	}
	becomes := func(want string) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); status() != want; time.Sleep(50 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("the agent is %s; want %s", status(), want)
			}
		}
	}
	release := make(chan struct{})
	run(t, "present", key, func(context.Context, *worker.Task) error {
		<-release
		return nil
	})
	becomes("available")
	go send("present", "t", "work")
	becomes("busy")
	close(release)
	becomes("available")
}
