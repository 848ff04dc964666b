package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/parley-dev/parley/sdk/worker"
)

// stage is a server with a public agent, a worker that obeys commands, and keys of several
// callers.
type stage struct {
	*server
	agent string
	key   string // may call every agent
	only  string // may call this agent only
	none  string // may call no agent
}

func newStage(t *testing.T, e engine) *stage {
	t.Helper()
	s := serve(t, e, "--rate-limit", "0", "--push-allow", "127.0.0.1", "--push-allow", "localhost",
		"--card-bindings", "jsonrpc,http+json,grpc")
	st := &stage{server: s, agent: "actor"}
	s.cli(t, "agent", "create", st.agent, "--org", "main", "--name", "Actor", "--skill", "acting", "--public")
	s.cli(t, "service", "create", "caller", "--org", "main")
	st.key = s.newKey(t, "main", "service:caller", "svc:a2a:write")
	st.only = s.newKey(t, "main", "service:caller", "svc:a2a:write", "agent:"+st.agent)
	st.none = s.newKey(t, "main", "service:caller", "svc:tasks:read")
	key := s.newKey(t, "main", "agent:"+st.agent, "svc:a2a:serve")
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	w, err := worker.New(worker.Config{
		URL: s.base, Agent: st.agent, Key: key, Capacity: 32, Logger: slog.New(slog.DiscardHandler), Grace: -1,
	})
	if err != nil {
		t.Fatal(err)
	}
	go func() { done <- w.Run(ctx, act) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the worker ended: %v", err)
		}
	})
	// A send waits only for an agent that is present.
	eventually(t, time.Minute, "the worker at work", func() bool {
		return s.presence(t, st.agent) == "available"
	})
	return st
}

// presence returns an agent's status from the platform's card.
func (s *server) presence(t *testing.T, agent string) string {
	t.Helper()
	res, err := http.Get(s.base + "/.well-known/agent.json")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	var card struct{ Agents []struct{ ID, Status string } }
	if err := json.NewDecoder(res.Body).Decode(&card); err != nil {
		t.Fatal(err)
	}
	for _, a := range card.Agents {
		if a.ID == agent {
			return a.Status
		}
	}
	return ""
}

// url returns the agent's URL.
func (s *stage) url() string { return s.base + "/a2a/" + s.agent }

// act executes the first word of the first message. docs/clients.md and the scripts in clients/js
// rely on these words.
func act(ctx context.Context, t *worker.Task) error {
	first := t.History[0]
	order, _, _ := strings.Cut(first.Text(), " ")
	switch order {
	case "echo": // all parts come back as they were sent
		if err := t.Artifact(ctx, worker.Artifact{ID: "echo", Name: "What you sent", Parts: t.Message.Parts}); err != nil {
			return err
		}
		return t.Complete(ctx)
	case "kinds": // one part of each kind
		return t.Complete(ctx, worker.Text("plain"), worker.Data(map[string]any{"n": 1, "deep": []any{"x", true, nil}}),
			worker.File("small.bin", "application/octet-stream", []byte{0, 1, 254, 255}),
			worker.FileURL("far.txt", "text/plain", "https://example.com/far.txt"))
	case "chunks":
		for i, s := range []string{"one ", "two ", "three"} {
			if err := t.AppendArtifact(ctx, worker.Artifact{
				ID: "log", Parts: []worker.Part{worker.Text(s)},
				LastChunk: i == 2,
			}); err != nil {
				return err
			}
		}
		return t.Complete(ctx)
	case "ask":
		if !t.Replied() {
			return t.AskForInput(ctx, "Which one?")
		}
		return t.Complete(ctx, worker.Text("You chose "+t.Text()))
	case "stay": // until told otherwise or canceled
		if err := t.Progress(ctx, "on it"); err != nil {
			return err
		}
		if t.Text() != first.Text() { // the turn arrived before this worker began
			return t.Complete(ctx, worker.Text("Told to "+t.Text()))
		}
		select {
		case m, ok := <-t.Turns():
			if !ok {
				return context.Cause(ctx)
			}
			return t.Complete(ctx, worker.Text("Told to "+m.Text()))
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	case "reject":
		return t.Reject(ctx, "not my part")
	case "fail":
		return t.Fail(ctx, "forgot the lines")
	case "reply":
		return t.Reply(ctx, worker.Text("Hello yourself"))
	}
	return fmt.Errorf("what is %q?", order)
}
