package client_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/sdk/client"
)

func hello(text string) client.Message { return client.NewMessage(client.Text(text)) }

// Parts of every kind arrive as they were sent, in both forms of A2A, and come back.
func TestPartsOfAllKinds(t *testing.T) {
	t.Parallel()
	ctx, c := t.Context(), admin(t)
	id := unique("parts")
	w := newAgent(t, c, id)
	parts := []client.Part{
		client.Text("plain"),
		{Kind: client.PartText, Text: "# Title", MediaType: "text/markdown", Metadata: json.RawMessage(`{"k":1}`)},
		client.Data(map[string]any{"n": 1, "deep": []any{"x", nil}}),
		client.File("small.bin", "application/octet-stream", []byte{0, 1, 254, 255}),
		client.FileURL("far.txt", "text/plain", "https://example.com/far.txt"),
	}
	plain := slices.Clone(parts)
	plain[1].MediaType = "" // the REST API does not return that of a text
	same := func(what string, want, got []client.Part) {
		t.Helper()
		a, _ := json.Marshal(want)
		b, _ := json.Marshal(got)
		if diff := cmp.Diff(string(a), string(b)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	finish := func() client.ClaimedTask {
		task := claim(ctx, w)
		p := must(w.Report(ctx, task.Lease, client.WorkReport{
			Status: client.TaskCompleted, Artifacts: []client.WorkerArtifact{{Name: "copy", Parts: task.Message.Parts}},
			Seen: task.Seen,
		}))
		if p.State != client.TaskCompleted {
			t.Errorf("report = %+v, want completed", p)
		}
		return task
	}
	sent := must(c.Agent(id).Send(ctx, client.SendParams{
		Message:  client.NewMessage(parts...),
		Metadata: json.RawMessage(`{"a":1}`),
	}))
	if sent.Status.State != client.TaskSubmitted || sent.ContextID == "" {
		t.Errorf("send = %+v, want submitted, with a context", sent)
	}
	task := finish()
	same("the worker has", parts, task.Message.Parts)
	if task.Sender.String() != "main/user:admin" || task.Sender.Kind != client.KindUser || task.SenderTaskID != sent.ID ||
		string(task.Metadata) != `{"a":1}` {
		t.Errorf("claim = %+v, want task %s of main/user:admin with its metadata", task, sent.ID)
	}
	same("the sender gets", parts, must(c.Agent(id).Get(ctx, sent.ID, client.GetParams{})).Artifacts[0].Parts)

	second := must(c.Agent(id).SendMessage(ctx, client.MessageParams{
		Message: client.NewMessage(parts...), ReturnImmediately: true, AcceptedOutputModes: []string{"text/plain"},
		ContextID: sent.ContextID,
	}))
	if second.Task == nil || second.Task.Status.State != client.TaskSubmitted {
		t.Fatalf("send = %+v, want submitted", second)
	}
	task = finish()
	same("the worker has of 1.0", parts, task.Message.Parts)
	if !slices.Equal(task.AcceptedOutputModes, []string{"text/plain"}) {
		t.Errorf("claim = %+v, want output mode text/plain", task)
	}
	n := 0
	for own, err := range c.Agent(id).All(ctx,
		client.TaskListParams{ContextID: sent.ContextID, State: client.TaskCompleted, IncludeArtifacts: true, Limit: 1}) {
		if n++; err != nil || own.Status.State != client.TaskCompleted {
			t.Fatalf("task = %+v, %v; want completed", own, err)
		}
		same("the list of 1.0 has", parts, own.Artifacts[0].Parts)
	}
	if n != 2 {
		t.Errorf("listed %d tasks; want 2", n)
	}
	n = 0
	for own, err := range c.OrgTasks.All(ctx, client.OrgTaskListParams{Agent: id}) {
		if n++; err != nil || own.Sender.Ref() != "user:admin" || own.State != client.TaskCompleted {
			t.Errorf("task of the org = %+v, %v; want completed, sent by user:admin", own, err)
		}
		same("an admin sees", plain, must(c.OrgTasks.Get(ctx, own.UID)).Artifacts[0].Parts)
	}
	if n != 2 {
		t.Errorf("the org has %d tasks; want 2", n)
	}
}

func TestCancelPushAndMessages(t *testing.T) {
	t.Parallel()
	ctx, c := t.Context(), admin(t)
	id := unique("quiet")
	w, a := newAgent(t, c, id), c.Agent(id)
	task := must(a.Send(ctx, client.SendParams{Message: hello("Work")}))
	push := must(a.SetPush(ctx, client.PushConfig{TaskID: task.ID, URL: "https://hooks.example/x", Token: "secret"}))
	if push.ID == "" || len(must(a.ListPush(ctx, task.ID))) != 1 ||
		must(a.GetPush(ctx, task.ID, push.ID)).Token != "secret" {
		t.Errorf("push config = %+v, want it listed and its token kept", push)
	}
	uid := must(c.OrgTasks.List(ctx, client.OrgTaskListParams{Agent: id})).Items[0].UID
	if got := must(c.OrgTasks.TaskPushes(ctx, uid)); len(got) != 1 || got[0].ID != push.ID || got[0].TaskID != task.ID {
		t.Errorf("pushes = %+v, want only %s", got, push.ID)
	}
	if err := a.DeletePush(ctx, task.ID, push.ID); err != nil {
		t.Error(err)
	}
	claimed := claim(ctx, w)
	if err := w.Return(ctx, claimed.Lease); err != nil {
		t.Error(err)
	}
	if got := must(a.Cancel(ctx, task.ID)); got.Status.State != client.TaskCanceled {
		t.Errorf("cancel = %+v, want canceled", got)
	}
	_, err := a.Cancel(ctx, task.ID)
	var refused *client.Error
	if !errors.As(err, &refused) || refused.RPCCode != -32002 || refused.Status != 200 || refused.RequestID == "" {
		t.Errorf("second cancel: error = %v, want -32002", err)
	}
	_, err = w.Report(ctx, claimed.Lease, client.WorkReport{Status: client.TaskCompleted})
	if !errors.As(err, &refused) || refused.Status != http.StatusConflict {
		t.Errorf("report under a lease that is over: error = %v, want 409", err)
	}
	receipt := must(a.Message(ctx, hello("By the way")))
	got := must(w.Claim(ctx, client.ClaimRequest{WaitSeconds: 20}))
	if len(got.Messages) != 1 || got.Messages[0].ID != receipt.ID || got.Messages[0].Text() != "By the way" ||
		got.Messages[0].From.ID != "admin" {
		t.Errorf("messages = %+v, want %s from admin", got.Messages, receipt.ID)
	}
}

func TestCards(t *testing.T) {
	t.Parallel()
	ctx, c := t.Context(), admin(t)
	id := unique("carded")
	newAgent(t, c, id)
	changed := must(c.Agents.Update(ctx, id, client.AgentPatch{
		Status: new(client.AgentBusy), Provider: &client.AgentProvider{Organization: "Acme", URL: "https://acme.example"},
		Skills: &[]client.AgentSkill{{ID: "go", Name: "Go", Description: "Writes Go.", Tags: []string{"code"}}},
	}))
	if changed.PinnedStatus != client.AgentBusy || changed.Provider.Organization != "Acme" ||
		changed.SkillDetails[0].Name != "Go" {
		t.Errorf("update = %+v, want busy, Acme and the skill Go", changed)
	}
	changed = must(c.Agents.Update(ctx, id, client.AgentPatch{
		Status:   new(client.AgentStatus("")),
		Provider: &client.AgentProvider{},
	}))
	if changed.PinnedStatus != "" || changed.Provider != nil {
		t.Errorf("second update = %+v, want neither status nor provider", changed)
	}
	for _, card := range []*client.AgentCard{must(c.Agent(id).Card(ctx)), must(c.Agent(id).ExtendedCard(ctx))} {
		if card.Name != id || len(card.SupportedInterfaces) == 0 || !card.Capabilities.Streaming ||
			card.Skills[0].Name != "Go" {
			t.Errorf("card = %+v, want %s with streaming and the skill Go", card, id)
		}
	}
	found := false
	for a, err := range c.PlatformAgents(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		found = found || a.ID == id && a.Status == client.AgentOffline
	}
	if !found {
		t.Error("platform card lacks the agent, want it listed")
	}
	nobody := newClient(t, client.Config{URL: server.URL})
	if card := must(nobody.PlatformCard(ctx, client.PlatformCardParams{})); len(card.Agents) == 0 || card.Protocol == "" {
		t.Errorf("platform card without a key = %+v, want public agents", card)
	}
	if must(c.Agents.Connection(ctx, id)).State == "" {
		t.Error("got no connection state, want one")
	}
}

// cut breaks a stream after some events, in the middle of the next one.
type cut struct {
	io.ReadCloser
	left int
	seen bytes.Buffer
}

func (c *cut) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p[:min(len(p), 40)])
	for i := range n {
		c.seen.WriteByte(p[i])
		if c.left == 0 && bytes.HasSuffix(c.seen.Bytes(), []byte("data: {")) {
			return i + 1, errors.New("the connection broke")
		}
		if bytes.HasSuffix(c.seen.Bytes(), []byte("}\n\n")) {
			c.left--
		}
	}
	return n, err
}

// TestStreamsSurviveBrokenConnections breaks every connection after a few events. Each event still
// arrives once and in order, in both forms of A2A.
func TestStreamsSurviveBrokenConnections(t *testing.T) {
	t.Parallel()
	const pieces = 6
	for _, after := range []int{1, 2, 5} {
		for form, open := range map[string]func(*client.AgentClient, context.Context) func(func(client.Event, error) bool){
			"send": func(a *client.AgentClient, ctx context.Context) func(func(client.Event, error) bool) {
				return a.Stream(ctx, client.SendParams{Message: hello("Count")})
			},
			"1.0": func(a *client.AgentClient, ctx context.Context) func(func(client.Event, error) bool) {
				return a.StreamMessage(ctx, client.MessageParams{Message: hello("Count")})
			},
		} {
			t.Run(fmt.Sprint(form, " after ", after), func(t *testing.T) {
				t.Parallel()
				ctx := t.Context()
				id := unique("counts")
				w := newAgent(t, admin(t), id)
				var connections atomic.Int32
				proxy := server.Proxy(t, func(res *http.Response) error {
					if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
						connections.Add(1)
						res.Body = &cut{ReadCloser: res.Body, left: after}
					}
					return nil
				})
				var worker sync.WaitGroup
				worker.Go(func() {
					task := claim(ctx, w)
					for i := range pieces {
						must(w.Report(ctx, task.Lease, client.WorkReport{Artifacts: []client.WorkerArtifact{
							{ID: "count", Parts: []client.Part{client.Text(strconv.Itoa(i))}, Append: i > 0, LastChunk: i == pieces-1},
						}}))
					}
					must(w.Report(ctx, task.Lease, client.WorkReport{Status: client.TaskCompleted}))
				})
				c := newClient(t, client.Config{URL: proxy, Key: server.Key})
				var text string
				var last, events int
				var state client.TaskState
				final := false
				for e, err := range open(c.Agent(id), ctx) {
					if err != nil {
						t.Fatal(err)
					}
					seq, err := strconv.Atoi(e.ID)
					if err != nil || seq <= last || final {
						t.Errorf("got event %q after %d (final: %t), want a later one and none after the final", e.ID, last, final)
					}
					last, final = seq, e.Final
					events++
					if e.Artifact != nil {
						if !e.Append {
							text = ""
						}
						text += e.Artifact.Text()
						if want := text == "012345"; e.LastChunk != want {
							t.Errorf("last chunk = %t at %s, want %t", e.LastChunk, text, want)
						}
					}
					if e.Status != nil {
						state = e.Status.State
					}
				}
				worker.Wait() // ctx ends with the test
				if text != "012345" || state != client.TaskCompleted || !final {
					t.Errorf("%q, %s, final %t; want 012345, completed", text, state, final)
				}
				if n := int(connections.Load()); n < events/(after+1) || n < 2 {
					t.Errorf("got %d connections for %d events, want more: nothing was tested", n, events)
				}
			})
		}
	}
}

func TestSubscribeGoesOnAfterAnEvent(t *testing.T) {
	t.Parallel()
	ctx, c := t.Context(), admin(t)
	task := must(c.Agent("echo").Send(ctx, client.SendParams{Message: hello("Hello"), Wait: 30 * time.Second}))
	var all, rest []string
	for e, err := range c.Agent("echo").Subscribe(ctx, task.ID, client.SubscribeParams{}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e.ID)
	}
	if len(all) < 2 {
		t.Fatalf("events %v; want some", all)
	}
	for e, err := range c.Agent("echo").Subscribe(ctx, task.ID, client.SubscribeParams{After: all[0]}) {
		if err != nil {
			t.Fatal(err)
		}
		rest = append(rest, e.ID)
	}
	if diff := cmp.Diff(all[1:], rest); diff != "" {
		t.Errorf("after the first event (-want +got):\n%s", diff)
	}
	for range c.Agent("echo").Subscribe(ctx, task.ID, client.SubscribeParams{}) {
		break // which must end the stream
	}
	var refused *client.Error
	for _, err := range c.Agent("echo").Subscribe(ctx, "no-such-task", client.SubscribeParams{}) {
		if !errors.As(err, &refused) || refused.RPCCode != -32001 {
			t.Errorf("error = %v; want -32001", err)
		}
	}
	if refused == nil {
		t.Error("got no error, want a refusal")
	}
}

func TestAStreamEndsWithItsContext(t *testing.T) {
	t.Parallel()
	id := unique("silent")
	newAgent(t, admin(t), id) // without a worker
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last error
	for e, err := range admin(t).Agent(id).Stream(ctx, client.SendParams{Message: hello("Anyone?")}) {
		if last = err; err == nil && e.Status.State == client.TaskSubmitted {
			cancel()
		}
	}
	if !errors.Is(last, context.Canceled) {
		t.Errorf("stream ended with %v, want context.Canceled", last)
	}
}
