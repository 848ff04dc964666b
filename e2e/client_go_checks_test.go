package e2e

import (
	"strings"
	"testing"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"
	"github.com/a2aproject/a2a-go/v2/a2aclient/agentcard"
	"github.com/google/go-cmp/cmp"
)

func goCards(t *testing.T, c *goClient) {
	for name, url := range map[string]string{"the address": c.stage.url(), "with a slash": c.stage.url() + "/"} {
		card, err := agentcard.DefaultResolver.Resolve(t.Context(), url)
		if err != nil || card.Name != "Actor" || !card.Capabilities.Streaming || !card.Capabilities.PushNotifications ||
			!card.Capabilities.ExtendedAgentCard {
			t.Errorf("card of %s = %+v, %v; want Actor with streaming, push and an extended card", name, card, err)
			continue
		}
		if len(card.Skills) != 1 || card.Skills[0].ID != "acting" || len(card.SecuritySchemes) != 3 {
			t.Errorf("card: skills %+v, schemes %+v; want the skill acting and 3 schemes", card.Skills, card.SecuritySchemes)
		}
	}
	// A key for one agent need not name it.
	card, err := agentcard.DefaultResolver.Resolve(t.Context(), c.stage.base+"/a2a",
		agentcard.WithRequestHeader("Authorization", "Bearer "+c.stage.only))
	if err != nil || card.Name != "Actor" {
		t.Errorf("card below /a2a with a key of one agent = %+v, %v; want that of Actor", card, err)
	}
	extended, err := c.GetExtendedAgentCard(t.Context(), &a2a.GetExtendedAgentCardRequest{})
	if err != nil || extended.Name != "Actor" || extended.Provider == nil || extended.Provider.Org != "main" {
		t.Errorf("extended card = %+v, %v; want Actor of the provider main", extended, err)
	}
}

// goCredentials: the SDK's own interceptor reads from the card how to send a key.
func goCredentials(t *testing.T, c *goClient) {
	card, err := agentcard.DefaultResolver.Resolve(t.Context(), c.stage.url())
	if err != nil {
		t.Fatal(err)
	}
	const session = a2aclient.SessionID("s")
	keys := a2aclient.NewInMemoryCredentialsStore()
	keys.Set(session, "bearer", a2aclient.AuthCredential(c.stage.key))
	client, err := a2aclient.NewFromCard(t.Context(), card, a2aclient.WithDefaultsDisabled(), c.option,
		a2aclient.WithCallInterceptors(&a2aclient.AuthInterceptor{Service: keys}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Destroy() })
	ctx := a2aclient.AttachSessionID(t.Context(), session)
	if res, err := client.SendMessage(ctx, &a2a.SendMessageRequest{Message: say("echo hello")}); err != nil {
		t.Errorf("send = %v, %v; want no error", res, err)
	}
}

// goParts: parts of every kind arrive as the worker sent them.
func goParts(t *testing.T, c *goClient) {
	task := c.order(t, "kinds")
	wantTask(t, task, a2a.TaskStateCompleted, "plain")
	file := a2a.NewRawPart([]byte{0, 1, 254, 255})
	file.Filename, file.MediaType = "small.bin", "application/octet-stream"
	far := a2a.NewFileURLPart("https://example.com/far.txt", "text/plain")
	far.Filename = "far.txt"
	want := a2a.ContentParts{
		a2a.NewTextPart("plain"),
		a2a.NewDataPart(map[string]any{"n": 1.0, "deep": []any{"x", true, nil}}),
		file, far,
	}
	if len(task.Artifacts) != 1 {
		t.Fatalf("artifacts = %+v, want 1", task.Artifacts)
	}
	if diff := cmp.Diff(want, task.Artifacts[0].Parts); diff != "" {
		t.Errorf("the parts (-want +got):\n%s", diff)
	}
}

// goRoundTrip: parts and metadata of the client reach the worker and come back unchanged.
func goRoundTrip(t *testing.T, c *goClient) {
	file := a2a.NewRawPart([]byte("\x00file\xff"))
	file.Filename, file.MediaType = "a.bin", "application/octet-stream"
	far := a2a.NewFileURLPart("https://example.com/b.png", "image/png")
	far.Filename = "b.png"
	labeled := a2a.NewTextPart("echo äöü 🎭")
	labeled.Metadata = map[string]any{"lang": "de", "n": 1.5}
	m := a2a.NewMessage(a2a.MessageRoleUser, labeled,
		a2a.NewDataPart(map[string]any{"list": []any{1.0, "two", nil, map[string]any{"x": false}}}), file, far)
	m.Metadata = map[string]any{"trace": "abc", "depth": map[string]any{"n": 2.0}}
	task := c.send(t, &a2a.SendMessageRequest{Message: m, Metadata: map[string]any{"job": "17"}})
	if task.Status.State != a2a.TaskStateCompleted || len(task.Artifacts) != 1 || len(task.History) == 0 {
		t.Fatalf("task = %+v, want it completed, with 1 artifact and a history", task)
	}
	a := task.Artifacts[0]
	if a.ID != "echo" || a.Name != "What you sent" {
		t.Errorf("artifact = %q, %q; want echo, What you sent", a.ID, a.Name)
	}
	if diff := cmp.Diff(m.Parts, a.Parts); diff != "" {
		t.Errorf("parts of the artifact (-want +got):\n%s", diff)
	}
	first := task.History[0]
	if first.ID != m.ID || first.Role != a2a.MessageRoleUser || first.TaskID != task.ID ||
		first.ContextID != task.ContextID {
		t.Errorf("first message of the history = %+v, want message %s of the user in task %s", first, m.ID, task.ID)
	}
	if diff := cmp.Diff(m.Metadata, first.Metadata); diff != "" {
		t.Errorf("metadata of the message (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(m.Parts, first.Parts); diff != "" {
		t.Errorf("parts of the history (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{"job": "17"}, task.Metadata); diff != "" {
		t.Errorf("metadata of the task (-want +got):\n%s", diff)
	}
}

func goPoll(t *testing.T, c *goClient) {
	task := c.start(t, "stay")
	if task.Status.State.Terminal() {
		t.Fatalf("state after a send that does not wait = %s, want a state that is not terminal", task.Status.State)
	}
	c.waitFor(t, task.ID, a2a.TaskStateWorking, "on it")
	wantTask(t, c.tell(t, task, "finish"), a2a.TaskStateCompleted, "Told to finish")
	again, err := c.GetTask(t.Context(), &a2a.GetTaskRequest{ID: task.ID})
	if err != nil {
		t.Fatal(err)
	}
	wantTask(t, again, a2a.TaskStateCompleted, "Told to finish")
}

func goStream(t *testing.T, c *goClient) {
	var text, states string
	var chunks int
	var last a2a.Event
	for event, err := range c.SendStreamingMessage(t.Context(), &a2a.SendMessageRequest{Message: say("chunks")}) {
		if err != nil {
			t.Fatal(err)
		}
		info := event.TaskInfo()
		if info.TaskID == "" || info.ContextID == "" || last != nil && info != last.TaskInfo() {
			t.Errorf("event is about %+v, want the same task and context in every event", info)
		}
		switch e := event.(type) {
		case *a2a.Task:
			if last != nil {
				t.Error("got the task a second time in the stream, want it once")
			}
		case *a2a.TaskStatusUpdateEvent:
			states += strings.TrimPrefix(string(e.Status.State), "TASK_STATE_") + " "
		case *a2a.TaskArtifactUpdateEvent:
			if e.Artifact.ID != "log" || e.Append != (chunks > 0) || e.LastChunk != (chunks == 2) {
				t.Errorf("chunk %d = %+v; want artifact log, append after the first, last_chunk on the third", chunks, e)
			}
			chunks++
			text += partsText(e.Artifact.Parts)
		}
		last = event
	}
	if chunks != 3 || text != "one two three" || !strings.HasSuffix(states, "COMPLETED ") {
		t.Errorf("stream = %d chunks, %q, states %s; want 3, one two three, ending in COMPLETED", chunks, text, states)
	}
	task, err := c.GetTask(t.Context(), &a2a.GetTaskRequest{ID: last.TaskInfo().TaskID})
	if err != nil {
		t.Fatal(err)
	}
	wantTask(t, task, a2a.TaskStateCompleted, "one two three")
}

func goHistory(t *testing.T, c *goClient) {
	task := c.order(t, "ask")
	c.tell(t, task, "blue")
	texts := func(length *int) (out []string) {
		t.Helper()
		got, err := c.GetTask(t.Context(), &a2a.GetTaskRequest{ID: task.ID, HistoryLength: length})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range got.History {
			out = append(out, messageText(m))
		}
		return out
	}
	none, one, many := 0, 1, 10
	if got := texts(&none); len(got) != 0 {
		t.Errorf("history of length 0 = %q, want nothing", got)
	}
	if got := texts(&one); len(got) != 1 || got[0] != "blue" {
		t.Errorf("history of length 1 = %q, want blue", got)
	}
	whole := []string{"ask", "Which one?", "blue"}
	if got := texts(&many); !cmp.Equal(got, whole) {
		t.Errorf("the history is %q; want %q", got, whole)
	}
}

func goCancel(t *testing.T, c *goClient) {
	task := c.start(t, "stay")
	got, err := c.CancelTask(t.Context(), &a2a.CancelTaskRequest{ID: task.ID})
	if err != nil {
		t.Fatal(err)
	}
	wantTask(t, got, a2a.TaskStateCanceled, "")
}

// goResubscribe cuts a stream and continues with another.
func goResubscribe(t *testing.T, c *goClient) {
	var task a2a.TaskInfo
	for event, err := range c.SendStreamingMessage(t.Context(), &a2a.SendMessageRequest{Message: say("stay")}) {
		if err != nil {
			t.Fatal(err)
		}
		task = event.TaskInfo()
		if e, ok := event.(*a2a.TaskStatusUpdateEvent); ok && messageText(e.Status.Message) == "on it" {
			break
		}
	}
	var states, result string
	for event, err := range c.SubscribeToTask(t.Context(), &a2a.SubscribeToTaskRequest{ID: task.TaskID}) {
		if err != nil {
			t.Fatal(err)
		}
		if states == "" {
			go func() {
				// The stream shows the result.
				_, _ = c.SendMessage(t.Context(), &a2a.SendMessageRequest{
					Message: a2a.NewMessageForTask(a2a.MessageRoleUser, task, a2a.NewTextPart("finish")),
				})
			}()
		}
		switch e := event.(type) {
		case *a2a.Task:
			states += string(e.Status.State) + " "
		case *a2a.TaskStatusUpdateEvent:
			states += string(e.Status.State) + " "
		case *a2a.TaskArtifactUpdateEvent:
			result += partsText(e.Artifact.Parts)
		}
	}
	if !strings.HasSuffix(states, string(a2a.TaskStateCompleted)+" ") || result != "Told to finish" {
		t.Errorf("second stream = %q, states %s; want Told to finish, ending in completed", result, states)
	}
}

func goAsk(t *testing.T, c *goClient) {
	task := c.order(t, "ask")
	wantTask(t, task, a2a.TaskStateInputRequired, "")
	if m := task.Status.Message; messageText(m) != "Which one?" || m.Role != a2a.MessageRoleAgent {
		t.Fatalf("question = %+v, want Which one? from the agent", m)
	}
	done := c.tell(t, task, "blue")
	wantTask(t, done, a2a.TaskStateCompleted, "You chose blue")
	if done.ID != task.ID || done.ContextID != task.ContextID {
		t.Errorf("reply went to task %s in %s, want %s in %s", done.ID, done.ContextID, task.ID, task.ContextID)
	}
}

func goEnds(t *testing.T, c *goClient) {
	for order, want := range map[string]struct {
		state a2a.TaskState
		text  string
	}{
		"reject": {a2a.TaskStateRejected, "not my part"},
		"fail":   {a2a.TaskStateFailed, "forgot the lines"},
	} {
		task := c.order(t, order)
		if got := messageText(task.Status.Message); task.Status.State != want.state || got != want.text {
			t.Errorf("%s: task is %s, %q; want %s, %q", order, task.Status.State, got, want.state, want.text)
		}
	}
}

func goReply(t *testing.T, c *goClient) {
	res, err := c.SendMessage(t.Context(), &a2a.SendMessageRequest{Message: say("reply")})
	if err != nil {
		t.Fatal(err)
	}
	m, ok := res.(*a2a.Message)
	if !ok || messageText(m) != "Hello yourself" || m.Role != a2a.MessageRoleAgent || m.ID == "" || m.ContextID == "" {
		t.Errorf("response = %T %+v, want a message of the agent: Hello yourself", res, res)
	}
}

func goList(t *testing.T, c *goClient) {
	if !c.v1 {
		return
	}
	first := c.order(t, "ask one")
	m := say("chunks two")
	m.ContextID = first.ContextID
	second := c.send(t, &a2a.SendMessageRequest{Message: m})
	var ids []a2a.TaskID
	token := ""
	for {
		page, err := c.ListTasks(t.Context(), &a2a.ListTasksRequest{
			ContextID: first.ContextID, PageSize: 1, PageToken: token,
			IncludeArtifacts: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Tasks) != 1 || page.TotalSize != 2 || page.PageSize != 1 {
			t.Fatalf("page = %+v, want 1 task of 2", page)
		}
		ids = append(ids, page.Tasks[0].ID)
		if token = page.NextPageToken; token == "" {
			break
		}
	}
	if want := []a2a.TaskID{second.ID, first.ID}; !cmp.Equal(ids, want) {
		t.Errorf("the list is %v; want the newest first: %v", ids, want)
	}
	page, err := c.ListTasks(t.Context(), &a2a.ListTasksRequest{
		ContextID: first.ContextID, Status: a2a.TaskStateCompleted,
		PageSize: 10, IncludeArtifacts: true,
	})
	if err != nil || len(page.Tasks) != 1 || page.Tasks[0].ID != second.ID ||
		resultText(page.Tasks[0]) != "one two three" {
		t.Errorf("completed tasks = %+v, %v; want only %s", page, err, second.ID)
	}
}
