package rest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/task"
)

// Every POST and PATCH that can be repeated honours an Idempotency-Key: the second response equals
// the first one, secrets included, and nothing is done twice.
func TestAdministrationCanBeRepeated(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.admin("acme", "user:ada")
	const org = "/api/v1/orgs/acme"
	const once = "Idempotency-Key"
	w.do(ada, "POST", org+"/members", `{"kind":"service","id":"crm"}`).want(201)
	var key, client, hook struct{ ID string }
	w.do(ada, "POST", org+"/keys", `{"principal":"service:crm","scopes":["svc:tasks:read"]}`).want(201).into(&key)
	w.do(ada, "POST", org+"/clients", strings.Replace(clientBody, "{", `{"method":"client_secret_basic",`, 1)).want(201).
		into(&client)
	w.do(ada, "POST", org+"/webhooks", webhookBody).want(201).into(&hook)
	for name, c := range map[string]struct{ method, path, body, other string }{
		"member":      {"POST", "/members", `{"kind":"user","id":"bob"}`, `{"kind":"user","id":"bo"}`},
		"member edit": {"PATCH", "/members/service:crm", `{"name":"CRM"}`, `{"name":"C"}`},
		"agent":       {"POST", "/agents", `{"id":"late","name":"Late"}`, `{"id":"later","name":"Late"}`},
		"agent edit":  {"PATCH", "/agents/fixer", `{"name":"Fixer","status":"busy"}`, `{"name":"Fixer","status":null}`},
		"key": {
			"POST", "/keys", `{"principal":"service:crm","scopes":["svc:tasks:read"]}`,
			`{"principal":"service:crm","scopes":["svc:tasks:write"]}`,
		},
		"key rotation":   {"POST", "/keys/" + key.ID + "/rotate", "", `{"overlap_seconds":1}`},
		"invitation":     {"POST", "/invitations", `{"user":"cy"}`, `{"user":"di"}`},
		"client":         {"POST", "/clients", clientBody, strings.Replace(clientBody, `"name":"`, `"name":"x`, 1)},
		"client edit":    {"PATCH", "/clients/" + client.ID, `{"name":"New"}`, `{"name":"Newer"}`},
		"webhook":        {"POST", "/webhooks", webhookBody, `{"url":"https://other.example/"}`},
		"webhook edit":   {"PATCH", "/webhooks/" + hook.ID, `{"state":"paused"}`, `{"state":"active"}`},
		"webhook secret": {"POST", "/webhooks/" + hook.ID + "/rotate", "", `{"overlap_seconds":1}`},
		"client secret":  {"POST", "/clients/" + client.ID + "/rotate", "", `{"overlap_seconds":1}`},
	} {
		first := w.do(ada, c.method, org+c.path, c.body, once, name)
		again := w.do(ada, c.method, org+c.path, c.body, once, name)
		if first.Status >= 300 || again.Status != first.Status || again.Body != first.Body ||
			first.Header.Get("Idempotency-Replayed") != "" ||
			again.Header.Get("Idempotency-Replayed") != "true" || again.Header.Get("Location") != first.Header.Get("Location") {
			t.Errorf("%s: got %d %s, then %d %s; want a replay", name, first.Status, first.Body, again.Status, again.Body)
		}
		if p := w.do(ada, c.method, org+c.path, c.other, once, name).want(422).problem(); p.Code != "idempotency.key_reused" {
			t.Errorf("%s: got %+v, want Code idempotency.key_reused", name, p)
		}
		if strings.Contains(first.Body, `"secret":"`) || strings.Contains(first.Body, "/join/") {
			other := w.admin("acme", "user:ada") // another key of the same user
			if p := w.do(other, c.method, org+c.path, c.body, once, name).want(409).problem(); p.Code != "idempotency.sealed" {
				t.Errorf("%s: got %+v, want Code idempotency.sealed", name, p)
			}
		}
	}
}

// A report can be repeated. A claim rejects an Idempotency-Key.
func TestReportsCanBeRepeated(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.send("ada", "t-1", "hello")
	worker := w.worker()
	w.do(worker, "POST", claim, `{}`, "Idempotency-Key", "k").want(422)
	lease := "/api/v1/agents/fixer/leases/" + w.claim(worker, `{}`).Tasks[0].Lease
	body := `{"artifacts":[{"artifact_id":"a","append":true,"parts":[{"text":"x"}]}],"status":"completed"}`
	first := w.do(worker, "POST", lease, body, "Idempotency-Key", "k").want(200)
	again := w.do(worker, "POST", lease, body, "Idempotency-Key", "k").want(200)
	if again.Body != first.Body || again.Header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("got %s, then %s, want Body %v, Idempotency-Replayed true", first.Body, again.Body, first.Body)
	}
	w.do(worker, "POST", lease, body, "Idempotency-Key", "l").want(409)
}

// The fingerprint of a report covers all its members.
func TestTheFingerprintOfAReport(t *testing.T) {
	t.Parallel()
	of := func(body string) [32]byte {
		var p payload[WorkReport]
		p.decode([]byte(body))
		sum, err := fingerprint(&p.value)
		if err != nil || p.flawed() {
			t.Errorf("%s: got %v %v, want no error", body, err, p.broken)
		}
		return sum
	}
	seen := map[[32]byte]string{}
	for _, body := range []string{
		`{}`, `{"status":"working"}`, `{"status":"completed"}`, `{"reply":true}`, `{"seen":1}`, `{"seen":2}`,
		`{"extend_seconds":30}`,
		`{"message":{"parts":[{"text":"a"}]}}`, `{"message":{"parts":[{"text":"b"}]}}`, `{"artifacts":[]}`,
		`{"artifacts":[{}]}`,
		`{"message":{},"artifacts":[]}`, `{"message":{}}`,
	} {
		if other, ok := seen[of(body)]; ok {
			t.Errorf("got %s has the fingerprint of %s, want false", body, other)
		}
		seen[of(body)] = body
	}
	if of(`{"seen":1,"status":"working"}`) != of(`{ "status" : "working", "seen" : 1 }`) {
		t.Error("the order of members counts")
	}
}

// Hashing a report does not copy its content. The test does not run in parallel, because it measures
// the memory of the process.
func TestTheFingerprintOfAReportCopiesNothing(t *testing.T) {
	large := WorkReport{Artifacts: reportArtifacts(`["` + strings.Repeat("x", 4<<20) + `"]`)}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := fingerprint(&large); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
		t.Errorf("the fingerprint of 4 MiB takes %d bytes of memory, want at most 1 MiB", n)
	}
}

// Outcomes of reports are kept for less time than others, because there are many.
func TestTheKeyOfAReportIsKeptForTwoHours(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		body any
		want time.Duration
	}{{&WorkReport{}, 2 * time.Hour}, {struct{}{}, 0}} {
		r := httptest.NewRequest("POST", "/", nil)
		r.Header.Set(idempotencyHeader, "k")
		k, err := (&call{request: r}).once(c.body)
		if err != nil || k.Keep != c.want {
			t.Errorf("%T: kept for %v (%v), want %v", c.body, k.Keep, err, c.want)
		}
	}
}

// unrepeatable operations wait for work, or send a request to a receiver each time.
var unrepeatable = []string{"claim-tasks", "exchange-work", "ping-webhook", "redeliver-webhook", "refresh-agent"}

// The document lists all operations, so none can be missed.
func TestEveryWriteTakesAnIdempotencyKey(t *testing.T) {
	t.Parallel()
	for path, item := range document(Options{}).Paths {
		for method, op := range map[string]*huma.Operation{"POST": item.Post, "PATCH": item.Patch} {
			if op == nil || slices.Contains(unrepeatable, op.OperationID) || !strings.HasPrefix(path, "/api/") {
				continue
			}
			if !hasParam(op, "header", idempotencyHeader) {
				t.Errorf("%s %s takes no Idempotency-Key", method, path)
			}
		}
	}
}

func TestABadCursorIsRefusedOnEveryList(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.admin("acme", "user:ada")
	p := w.submit(ada, "acme")
	sent := w.send("ada", "t-1", "hello")
	n := 0
	for path, item := range document(Options{}).Paths {
		if item.Get == nil || !hasParam(item.Get, "query", "cursor") {
			continue
		}
		n++
		id := p.ID
		if strings.Contains(path, "/a2a/") {
			id = sent.UID
		}
		target := strings.NewReplacer("{org}", "acme", "{id}", id).Replace(path)
		for _, cursor := range []string{"x", "!", "0", strings.Repeat("x", 300)} {
			res := w.do(ada, "GET", target+"?cursor="+cursor, "")
			if res.Status != http.StatusUnprocessableEntity || at(res.problem())[0] != "query:cursor" {
				t.Errorf("%s?cursor=%.10s: got %d %s, want Status %v, at(res.problem())[0] query:cursor", target, cursor,
					res.Status, res.Body, http.StatusUnprocessableEntity)
			}
		}
	}
	if n < 8 {
		t.Errorf("%d lists have a cursor, want at least 8", n)
	}
}

func hasParam(op *huma.Operation, in, name string) bool {
	for _, p := range op.Parameters {
		if p.In == in && p.Name == name {
			return true
		}
	}
	return false
}

// A claim contains the metadata and output modes of the sender.
func TestAClaimShowsTheRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	caller, err := w.auth.Authenticate(t.Context(), w.key("acme", "user:ada", identity.A2AWrite))
	if err != nil {
		t.Fatal(err)
	}
	to, err := w.tasks.Reach(t.Context(), caller, "fixer")
	if err != nil {
		t.Fatal(err)
	}
	parts := []task.Part{
		{Kind: task.TextPart, Text: "# hello", MediaType: "text/markdown"},
		{Kind: task.DataPart, Data: []byte("1"), MediaType: "application/json"},
		{Kind: task.FilePart, Bytes: []byte("x"), MediaType: "image/png"},
		{Kind: task.TextPart, Text: "plain"},
	}
	_, err = w.tasks.Send(t.Context(), to, dispatch.SendRequest{
		ID: "mine", Message: task.Message{Role: task.RoleUser, Parts: parts}, Metadata: []byte(`{"text":"a trap"}`),
		OutputModes: []string{"text/plain"},
	}, 0)
	if err != nil {
		t.Fatal(err)
	}
	var c struct {
		Tasks []struct {
			Message struct {
				Parts []struct{ MediaType string }
			}
			TaskID   string          `json:"sender_task_id"`
			Metadata json.RawMessage `json:"metadata"`
			Modes    []string        `json:"accepted_output_modes"`
		}
	}
	worker := w.worker()
	res := w.do(worker, "POST", claim, `{}`).want(200)
	res.into(&c)
	if got := c.Tasks[0]; got.TaskID != "mine" || string(got.Metadata) != `{"text":"a trap"}` ||
		!slices.Equal(got.Modes, []string{"text/plain"}) {
		t.Errorf("got %+v, want the id, metadata and modes of the sender", got)
	}
	for i, want := range []string{"text/markdown", "application/json", "image/png", ""} {
		if got := c.Tasks[0].Message.Parts[i].MediaType; got != want {
			t.Errorf("part %d: got %q, want %q", i, got, want)
		}
	}
	// The worker in examples/shell uses the first "text" that it finds.
	if first := strings.Index(res.Body, `"text":"`); !strings.HasPrefix(res.Body[first:], `"text":"# hello"`) {
		t.Errorf("got %s, want the message to have the first text", res.Body)
	}
	// A worker can send back the parts that it received.
	var raw struct {
		Tasks []struct {
			Lease   string
			Message struct{ Parts json.RawMessage }
		}
	}
	res.into(&raw)
	w.do(worker, "POST", "/api/v1/agents/fixer/leases/"+raw.Tasks[0].Lease,
		`{"status":"completed","artifacts":[{"parts":`+string(raw.Tasks[0].Message.Parts)+`}]}`).want(200)
	// A task without metadata and modes.
	w.send("ada", "plain", "hello")
	if body := w.do(worker, "POST", claim, `{}`).want(200).
		Body; !strings.Contains(body, `"sender_task_id":"plain","metadata":null,"accepted_output_modes":[]}`) {
		t.Errorf("got %v, want containing \"sender_task_id\":\"plain\",\"metadata\":null,\"accepted_output_modes\":[]}", body)
	}
}

// Titles of proposals, friction and follow-ups are one visible line.
func TestTitlesAreOneVisibleLine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.admin("acme", "user:ada")
	for _, title := range []string{
		`a\u2028b`, `a\u2029b`, `a\u0085b`, `a\nb`, `a\u202eb`, `a\u2066b`, `\u200b\u200d`,
		`\u2800`,
	} {
		for path, body := range map[string]string{
			"/proposals": strings.Replace(submission, "Retry webhooks", title, 1),
			"/friction":  strings.Replace(frictionBody, `"title":"`, `"title":"`+title+`","x":"`, 1),
			"/followups": `{"title":"` + title + `"}`,
		} {
			got := at(w.do(ada, "POST", "/api/v1/orgs/acme"+path, body).want(422).problem())
			if !slices.Contains(got, "/title") {
				t.Errorf("%s with %s: got %v, want /title", path, title, got)
			}
		}
		p := w.submit(ada, "acme")
		w.do(ada, "PATCH", "/api/v1/orgs/acme/proposals/"+p.ID, `{"title":"`+title+`"}`).want(422)
	}
	w.do(ada, "POST", "/api/v1/orgs/acme/proposals", strings.Replace(submission, "Retry webhooks", `👩\u200d💻 works`, 1)).
		want(201)
}
