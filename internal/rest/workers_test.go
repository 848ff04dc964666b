package rest

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/task"
	"github.com/parley-dev/parley/internal/trace"
)

const claim = "/api/v1/agents/fixer/claim"

// worker returns a key of the agent fixer.
func (w *world) worker() string { return w.key("acme", "agent:fixer", identity.A2AServe) }

// recall cancels a task, as a change of its follow-up does.
func (w *world) recall(uid string) {
	w.tb.Helper()
	ann := &identity.Caller{
		Principal: identity.Principal{Org: "acme", Kind: identity.User, ID: "ann"},
		Scopes:    identity.Scopes{identity.TasksWrite},
	}
	a, err := identity.Authorize(ann, "acme", identity.ChangeFollowup)
	if err == nil {
		err = w.tasks.Recall(context.Background(), a, uid)
	}
	if err != nil {
		w.tb.Fatal(err)
	}
}

// send sends a task to fixer as the user.
func (w *world) send(user, id, text string) task.Task {
	w.tb.Helper()
	return w.sendIn(context.Background(), user, id, text)
}

func (w *world) sendIn(ctx context.Context, user, id, text string) task.Task {
	w.tb.Helper()
	caller, err := w.auth.Authenticate(ctx, w.key("acme", "user:"+user, identity.A2AWrite))
	if err != nil {
		w.tb.Fatal(err)
	}
	to, err := w.tasks.Reach(ctx, caller, "fixer")
	if err != nil {
		w.tb.Fatal(err)
	}
	t, err := w.tasks.Send(ctx, to, dispatch.SendRequest{
		ID: id, Message: task.Message{Role: task.RoleUser, Parts: []task.Part{{Kind: task.TextPart, Text: text}}},
	}, 0)
	if err != nil {
		w.tb.Fatal(err)
	}
	return t
}

type claimed struct {
	Tasks []struct {
		ID, Lease, Sender string
		LeaseExpiresAt    time.Time `json:"lease_expires_at"`
		Attempt           int
		ContextID         string `json:"context_id"`
		Message           json.RawMessage
		History           []json.RawMessage
	}
	Messages []struct {
		ID, From string
		Message  json.RawMessage
		At       time.Time
	}
}

func (w *world) claim(secret, body string) claimed {
	w.tb.Helper()
	var c claimed
	w.do(secret, "POST", claim, body).want(200).into(&c)
	return c
}

func TestAWorkerClaimsReportsAndFinishes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sent := w.send("ada", "t-1", "hello")
	worker := w.worker()
	c := w.claim(worker, `{"worker":"host-1","max":1,"wait_seconds":20,"lease_seconds":30,"capacity":4}`)
	if len(c.Tasks) != 1 || len(c.Messages) != 0 {
		t.Fatalf("got %+v, want len(Tasks) 1, len(Messages) 0", c)
	}
	got := c.Tasks[0]
	if got.ID != sent.UID || got.Attempt != 1 || got.Sender != "acme/user:ada" || got.ContextID != sent.ContextID ||
		len(got.History) != 1 {
		t.Errorf("got %+v, want ID %v, Attempt 1, Sender acme/user:ada, ContextID %v, len(History) 1", got, sent.UID,
			sent.ContextID)
	}
	want := `{"kind":"message","role":"user","parts":[{"type":"text","kind":"text","text":"hello"}],"messageId":"m-` +
		sent.UID + `-1"}`
	if diff := cmp.Diff(want, string(got.Message)); diff != "" {
		t.Errorf("mismatch (-want +got):\n%s", diff)
	}
	if d := time.Until(got.LeaseExpiresAt); d < 25*time.Second || d > 31*time.Second {
		t.Errorf("the lease lasts %s, want about 30 s", d)
	}
	lease := "/api/v1/agents/fixer/leases/" + got.Lease
	var p struct {
		State    string
		Canceled bool
		Expires  *time.Time `json:"lease_expires_at"`
		Messages []json.RawMessage
	}
	w.do(worker, "POST", lease, `{}`).want(200).into(&p)
	if p.State != "working" || p.Canceled || p.Expires == nil || p.Messages == nil {
		t.Errorf("got %+v, want State working, Canceled false, Expires not nil, Messages not nil", p)
	}
	w.send("ada", "t-1", "and this")
	w.do(worker, "POST", lease, `{"status":"working","message":{"parts":[{"type":"text","text":"half"}]},"extend_seconds":600,
		"artifacts":[{"artifact_id":"a","parts":[{"kind":"text","text":"1"}]},
			{"artifact_id":"a","append":true,"last_chunk":true,"parts":[{"text":"2"}]},
			{"parts":[{"type":"data","data":{"n": [1, 2]}}]},
			{"parts":[{"type":"file","file":{"name":"x","mimeType":"text/plain","bytes":"aGk="}}]}]}`).want(200).into(&p)
	if time.Until(*p.Expires) < 500*time.Second || len(p.Messages) != 1 ||
		!strings.Contains(string(p.Messages[0]), "and this") {
		t.Errorf("got %+v, want an extended lease and one message", p)
	}
	w.do(worker, "POST", lease, `{"status":"completed"}`).want(200).into(&p)
	if p.State != "completed" || p.Expires != nil {
		t.Errorf("got %+v, want State completed, Expires nil", p)
	}
	for _, c := range []struct{ method, body string }{{"POST", `{"status":"failed"}`}, {"POST", `{}`}, {"DELETE", ""}} {
		if p := w.do(worker, c.method, lease, c.body).want(409).problem(); p.Code != task.CodeStaleLease {
			t.Errorf("%s: got %+v, want Code %v", c.method, p, task.CodeStaleLease)
		}
	}
	done, err := w.store.Tasks().ByUID(context.Background(), "acme", sent.UID, task.All)
	if err != nil || done.State != task.Completed || len(done.Artifacts) != 3 || len(done.Artifacts[0].Parts) != 2 {
		t.Fatalf("got %+v %v, want no error, State %v, len(Artifacts) 3, len(done.Artifacts[0].Parts) 2", done, err,
			task.Completed)
	}
	if a, b := done.Artifacts[1].ID, done.Artifacts[2].ID; a == "" || a == b {
		t.Errorf("artifacts without an id got %q and %q, want two different ids", a, b)
	}
}

// A claim has the trace of its task, if there is one; an admin sees it, too.
func TestAClaimHasTheTraceOfItsTask(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	ctx := context.WithValue(context.Background(), trace.Key{}, &trace.Context{Parent: parent, State: "a=1"})
	w.sendIn(ctx, "ada", "t-1", "hello")
	w.send("ada", "t-2", "hello")
	body := w.do(w.worker(), "POST", claim, `{"max":2}`).want(200).Body
	if want := `"traceparent":"` + parent + `","tracestate":"a=1"}`; strings.Count(body, want) != 1 ||
		strings.Count(body, "trace") != 2 {
		t.Errorf("the claim is %s; want one task with %s", body, want)
	}
}

func TestATaskThatIsHandedBackLosesNoAttempt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.send("ada", "t-1", "hello")
	worker := w.worker()
	for range task.MaxAttempts + 1 {
		c := w.claim(worker, `{"wait_seconds":0}`)
		if len(c.Tasks) != 1 || c.Tasks[0].Attempt != 1 {
			t.Fatalf("got %+v, want len(Tasks) 1, c.Tasks[0].Attempt 1", c)
		}
		w.do(worker, "DELETE", "/api/v1/agents/fixer/leases/"+c.Tasks[0].Lease, "").want(204)
	}
}

// failing is a connection that breaks when the response is written.
type failing struct{ *httptest.ResponseRecorder }

func (failing) Write([]byte) (int, error) { return 0, http.ErrHandlerTimeout }

func TestAClaimWhoseAnswerCannotBeSentLosesNoAttempt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.send("ada", "t-1", "hello")
	worker := w.worker()
	r := httptest.NewRequest("POST", claim, strings.NewReader(`{}`))
	r.Header.Set("Authorization", "Bearer "+worker)
	w.handler.ServeHTTP(failing{httptest.NewRecorder()}, r)
	if c := w.claim(worker, `{"wait_seconds":0}`); len(c.Tasks) != 1 || c.Tasks[0].Attempt != 1 {
		t.Errorf("got %+v, want len(Tasks) 1, c.Tasks[0].Attempt 1", c)
	}
}

func TestACanceledTaskTellsItsWorker(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sent := w.send("ada", "t-1", "hello")
	worker := w.worker()
	lease := "/api/v1/agents/fixer/leases/" + w.claim(worker, `{}`).Tasks[0].Lease
	w.recall(sent.UID)
	res := w.do(worker, "POST", lease, `{"status":"completed"}`).want(200)
	if !strings.Contains(res.Body, `"state":"canceled","canceled":true,"lease_expires_at":null`) {
		t.Errorf("got %v, want containing \"state\":\"canceled\",\"canceled\":true,\"lease_expires_at\":null", res.Body)
	}
	for range 2 { // the worker may confirm it
		w.do(worker, "POST", lease, `{"status":"canceled"}`).want(200)
	}
}

func TestDirectMessagesComeUntilAcknowledged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := context.Background()
	worker := w.worker()
	caller, err := w.auth.Authenticate(ctx, w.key("acme", "user:ada", identity.A2AWrite))
	if err != nil {
		t.Fatal(err)
	}
	to, err := w.tasks.Reach(ctx, caller, "fixer")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.tasks.Message(ctx, to, task.Message{
		Role:  task.RoleUser,
		Parts: []task.Part{{Kind: task.TextPart, Text: "psst"}},
	}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		c := w.claim(worker, `{"max":0}`)
		if len(c.Messages) != 1 || c.Messages[0].From != "acme/user:ada" ||
			!strings.Contains(string(c.Messages[0].Message), "psst") {
			t.Fatalf("got %+v, want len(Messages) 1, c.Messages[0].From acme/user:ada, containing psst", c)
		}
	}
	id := w.claim(worker, `{"max":0}`).Messages[0].ID
	if c := w.claim(worker, `{"max":0,"wait_seconds":0,"ack":["`+id+`"]}`); len(c.Messages) != 0 {
		t.Errorf("got %+v, want len(Messages) 0", c)
	}
}

func TestWhoMayWorkForAnAgent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.orgs.Agent(agent.Agent{ID: "other", Org: "acme", Name: "Other"})
	serve := identity.A2AServe
	for name, c := range map[string]struct {
		key    string
		agent  string
		status int
		code   string
	}{
		"nobody":                 {"", "fixer", 401, "auth.missing"},
		"the agent":              {w.worker(), "fixer", 200, ""},
		"the agent, for another": {w.worker(), "other", 403, "auth.agent_out_of_scope"},
		"a user without agent:":  {w.key("acme", "user:ada", serve), "fixer", 403, "auth.agent_out_of_scope"},
		"a service with agent:":  {w.key("acme", "service:ci", serve, "agent:fixer"), "fixer", 200, ""},
		"a service for another": {
			w.key("acme", "service:ci", serve, "agent:fixer"), "other", 403,
			"auth.agent_out_of_scope",
		},
		"a service with agent:*": {w.key("acme", "service:ci", serve, "agent:*"), "other", 200, ""},
		"without the scope": {
			w.key("acme", "agent:fixer", identity.A2AWrite, identity.Admin), "fixer", 403,
			"auth.scope_missing",
		},
		"another org":          {w.key("globex", "service:ci", serve, "agent:*"), "fixer", 404, "resource.not_found"},
		"no such agent":        {w.key("acme", "service:ci", serve, "agent:*"), "nobody", 404, "resource.not_found"},
		"an id that cannot be": {w.key("acme", "service:ci", serve, "agent:*"), "FIXER", 404, "resource.not_found"},
		"an id with a slash":   {w.key("acme", "service:ci", serve, "agent:*"), "fixer%2Fx", 404, "resource.not_found"},
		"an encoded, foreign one": {
			w.key("acme", "service:ci", serve, "agent:fixer"), "%6Fther", 403,
			"auth.agent_out_of_scope",
		},
	} {
		for _, call := range []struct{ method, path, body string }{
			{"POST", "/claim", `{"wait_seconds":0}`},
			{"POST", "/leases/lease-x-y", `{}`},
			{"DELETE", "/leases/lease-x-y", ""},
		} {
			body, want := call.body, c.status
			if want == 200 && call.path != "/claim" {
				want = 409 // authorized, but the lease does not exist
			}
			if want >= 400 && want != 409 && body != "" {
				body = `{"unknown":` // an unauthorized caller learns nothing from validation
			}
			res := w.do(c.key, call.method, "/api/v1/agents/"+c.agent+call.path, body).want(want)
			if want >= 400 && want != 409 && res.problem().Code != c.code {
				t.Errorf("%s: got %s, want the code %s", name, res.Body, c.code)
			}
		}
	}
}

func TestBadReportsAndClaimsNameWhatIsWrong(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sent := w.send("ada", "t-1", "hello")
	worker := w.worker()
	for body, want := range map[string][]string{
		`{"max":101,"wait_seconds":61,"lease_seconds":0,"capacity":0}`: {
			"/max", "/wait_seconds", "/lease_seconds",
			"/capacity",
		},
		`{"max":-1,"wait_seconds":-1,"lease_seconds":3601,"capacity":10001}`: {
			"/max", "/wait_seconds", "/lease_seconds",
			"/capacity",
		},
		`{"wait_seconds":9223372036854775807,"lease_seconds":9000000000}`: {"/wait_seconds", "/lease_seconds"},
		`{"worker":"` + strings.Repeat("x", 129) + `"}`:                   {"/worker"},
		`{"worker":null}`:                              {"/worker"},
		`{"ack":["a\u0000b"]}`:                         {"/ack/0"},
		`{"ack":["msg-1",null]}`:                       {"/ack/1"},
		`{"ack":[null]}`:                               {"/ack/0"},
		`{"ack":"x","max":1.5,"worker":3,"unknown":1}`: {"/ack", "/max", "/worker", "/unknown"},
		`[]`: {""},
	} {
		if diff := cmp.Diff(want, at(w.do(worker, "POST", claim, body).want(422).problem())); diff != "" {
			t.Errorf("%s: mismatch (-want +got):\n%s", body, diff)
		}
	}
	lease := "/api/v1/agents/fixer/leases/" + w.claim(worker, `{}`).Tasks[0].Lease
	for body, want := range map[string][]string{
		`{"status":"submitted"}`:                     {"/status"},
		`{"status":"canceled"}`:                      {"/status"},
		`{"status":""}`:                              {"/status"},
		`{"status":null,"extend_seconds":"x","x":1}`: {"/status", "/extend_seconds", "/x"},
		`{"extend_seconds":0}`:                       {"/extend_seconds"},
		`{"seen":-1}`:                                {"/seen"},
		`{"seen":1000}`:                              {"/seen"},
		`{"seen":"x"}`:                               {"/seen"},
		`{"extend_seconds":3601}`:                    {"/extend_seconds"},
		`{"message":"hi"}`:                           {"/message"},
		`{"message":{}}`:                             {"/message/parts"},
		`{"message":{"parts":[]}}`:                   {"/message/parts"},
		`{"message":{"role":"user","parts":[{"text":"x"}]}}`:         {"/message/role"},
		`{"message":{"parts":[{"text":"x"},{"type":"text"}],"x":1}}`: {"/message/parts/1/text", "/message/x"},
		`{"artifacts":{}}`:                          {"/artifacts"},
		`{"artifacts":[{"parts":[{"type":"x"}]}]}`:  {"/artifacts/0/parts/0/type"},
		`{"artifacts":[{"parts":[{"text":null}]}]}`: {"/artifacts/0/parts/0/text"},
		`{"artifacts":[{"append":1,"parts":[{"text":"x","url":"y"}]}]}`: {
			"/artifacts/0/append",
			"/artifacts/0/parts/0/url",
		},
		`{"artifacts":[{"append":true,"parts":[{"text":"x"}]}]}`:           {"/artifacts/0/artifact_id"},
		`{"artifacts":[{"parts":[{"text":"x\u0000"}]}]}`:                   {"/artifacts/0/parts/0/text"},
		`{"artifacts":[{"parts":[{"type":"file","file":{}}]}]}`:            {"/artifacts/0/parts/0/file"},
		`{"artifacts":[{"parts":[{"type":"file","file":{"bytes":"%"}}]}]}`: {"/artifacts/0/parts/0/file/bytes"},
	} {
		got := at(w.do(worker, "POST", lease, body).want(422).problem())
		if len(got) > len(want) {
			got = got[:len(want)]
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: mismatch (-want +got):\n%s", body, diff)
		}
	}
	w.do(worker, "POST", lease, `{"status":"working","status":"failed"}`).want(400)
	w.do(worker, "POST", lease, `{"message":{"parts":[{"text":"`+strings.Repeat("x", 5<<20)+`"}]}}`).want(200)
	p := w.do(worker, "POST", lease, `{"message":{"parts":[{"text":"`+strings.Repeat("x", maxReport)+`"}]}}`).want(413).
		problem()
	if !strings.Contains(p.Detail, "6291456") {
		t.Errorf("got %+v, want containing 6291456", p)
	}
	if got, err := w.store.Tasks().ByUID(context.Background(), "acme", sent.UID, task.All); err != nil ||
		got.State != task.Working || len(got.Artifacts) > 0 {
		t.Errorf("got %+v %v, want the task unchanged", got, err)
	}
}

// Worker requests do not count against the rate limit of other requests.
func TestWorkersHaveARateLimitOfTheirOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *httpx.Options, _ *Options) { o.RateLimit = 1 })
	key := w.worker()
	for range 20 { // far beyond the burst of other requests
		w.do(key, "POST", claim, `{"wait_seconds":0}`).want(200)
	}
	for range 5 {
		w.do(key, "GET", "/api/v1/me", "").want(200)
	}
	if got := w.do(key, "GET", "/api/v1/me", "").want(429).Header.Get("RateLimit-Policy"); got != `"principal";q=5;w=5` {
		t.Errorf("RateLimit-Policy = %s, want \"principal\";q=5;w=5", got)
	}
}
