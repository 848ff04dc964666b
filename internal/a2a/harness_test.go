package a2a

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/orgtest"
	"github.com/parley-dev/parley/internal/store"
	"github.com/parley-dev/parley/internal/task"
)

var update = flag.Bool("update", false, "write the golden files anew")

// world is a whole server on a real SQLite file. Org acme has the agents bot and other, which have
// no workers, and the public agent echo, which runs in the process.
type world struct {
	tb       testing.TB
	handler  http.Handler
	store    *store.Store
	operator *identity.Operator
	auth     *identity.Authenticator
	registry *agent.Registry
	tasks    *dispatch.Service
	logs     *orgtest.Log
	orgs     *orgtest.World
	down     *atomic.Bool // while set, no task can be stored
	lost     *atomic.Bool // while set, no agent can be found
}

var errStoreDown = errs.Wrap(io.EOF, errs.Unavailable, "store.unavailable",
	"the store cannot be reached right now; try again in a moment")

// faultyStore fails like an unavailable store.
type faultyStore struct {
	dispatch.TaskWriter
	down *atomic.Bool
}

func (s faultyStore) Insert(ctx context.Context, c task.Change, lease time.Duration) error {
	if s.down.Load() {
		return errStoreDown
	}
	return s.TaskWriter.Insert(ctx, c, lease)
}

// faultyDirectory fails like a directory on an unavailable store.
type faultyDirectory struct {
	dispatch.Directory
	lost *atomic.Bool
}

func (d faultyDirectory) Target(ctx context.Context, org, id string) (dispatch.Target, *dispatch.Target, error) {
	if d.lost.Load() {
		return dispatch.Target{}, nil, errStoreDown
	}
	return d.Directory.Target(ctx, org, id)
}

var newID = orgtest.NewID

var exampleURL = &url.URL{Scheme: "http", Host: "example.com"}

func newWorld(tb testing.TB, edit ...func(*httpx.Options, *Options)) *world {
	tb.Helper()
	down, lost := new(atomic.Bool), new(atomic.Bool)
	base := orgtest.New(tb, func(o *dispatch.Options) {
		o.Stores.Write, o.Directory = faultyStore{o.Stores.Write, down}, faultyDirectory{o.Directory, lost}
		o.CheckPushURL = func(url string) error {
			if strings.Contains(url, "refused") {
				return errors.New("is refused")
			}
			return nil
		}
		o.OnError = func(err error) { tb.Error(err) }
	})
	w := &world{
		tb: tb, store: base.Store, operator: base.Operator, auth: base.Auth, registry: base.Agents,
		tasks: base.Tasks, logs: base.Logs, orgs: base,
		down: down, lost: lost,
	}
	for _, a := range []agent.Agent{
		{ID: "bot", Org: "acme", Name: "Bot", Description: "Does things.", Skills: []string{"things"}},
		{ID: "other", Org: "acme", Name: "Other"},
		{ID: "echo", Org: "acme", Name: "Echo", Description: "Says it again.", Skills: []string{"echo"}, Public: true},
	} {
		base.Agent(a)
	}
	w.tasks.Host(dispatch.Target{ID: "echo", Org: "acme", Public: true}, dispatch.Echo{}, dispatch.Hosting{})
	ho := base.Router()
	o := Options{
		Tasks: w.tasks.Tasks, Workers: w.tasks.Workers, Agents: w.registry, Directory: base.Directory,
		Version: "1.2.3", PublicURL: exampleURL,
	}
	for _, e := range edit {
		e(&ho, &o)
	}
	rt := httpx.NewRouter(ho)
	Mount(rt, o)
	w.handler = rt
	run, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { w.tasks.Run(run) })
	tb.Cleanup(func() {
		w.tasks.Stop()
		stop()
		wg.Wait()
	})
	return w
}

// key makes the principal if necessary, and a key with the scopes.
func (w *world) key(org, ref string, scopes ...identity.Scope) string {
	w.tb.Helper()
	secret, _ := w.orgs.Key(org, ref, scopes...)
	return secret
}

// caller returns a key that may call every agent.
func (w *world) caller(ref string) string { return w.key("acme", ref, "svc:a2a:write") }

// answer is a response with its body read.
type answer struct {
	tb     testing.TB
	Status int
	Header http.Header
	Body   string
}

// do sends a request without a network; headers are name, value pairs.
func (w *world) do(secret, method, target, body string, headers ...string) *answer {
	w.tb.Helper()
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	if secret != "" {
		r.Header.Set("Authorization", "Bearer "+secret)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	rec := httptest.NewRecorder()
	w.handler.ServeHTTP(rec, r)
	return &answer{tb: w.tb, Status: rec.Code, Header: rec.Result().Header, Body: rec.Body.String()}
}

// rpc calls a method of an agent; params is JSON.
func (w *world) rpc(secret, agent, method, params string, headers ...string) *answer {
	w.tb.Helper()
	return w.do(secret, "POST", "/a2a/"+agent, envelope(method, params), headers...)
}

func envelope(method, params string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":` + params + `}`
}

// hello returns the params of a send.
func hello(id string) string {
	return `{"id":"` + id + `","message":{"role":"user","parts":[{"type":"text","text":"hello"}]}}`
}

// reply is a JSON-RPC response.
type reply struct {
	Result struct {
		ID        string
		ContextID string `json:"contextId"`
		Status    struct{ State string }
		Artifacts []json.RawMessage
		History   []json.RawMessage
		Final     *bool
	}
	Error *struct {
		Code    int
		Message string
		Data    json.RawMessage
	}
	ID json.RawMessage
}

func (a *answer) reply() reply {
	a.tb.Helper()
	var r reply
	if err := json.Unmarshal([]byte(a.Body), &r); err != nil {
		a.tb.Fatalf("not a JSON-RPC response: %v in %s", err, a.Body)
	}
	return r
}

// state fails the test unless the response is a task in the state.
func (a *answer) state(want string) reply {
	a.tb.Helper()
	r := a.reply()
	if a.Status != http.StatusOK || r.Error != nil || r.Result.Status.State != want {
		a.tb.Fatalf("got %d %s, want a task with the state %s", a.Status, a.Body, want)
	}
	return r
}

// fails fails the test unless the response is the error.
func (a *answer) fails(status, code int) reply {
	a.tb.Helper()
	r := a.reply()
	if a.Status != status || r.Error == nil || r.Error.Code != code {
		a.tb.Fatalf("got %d %s, want %d with the code %d", a.Status, a.Body, status, code)
	}
	return r
}

// post returns the access to work for an agent.
func (w *world) post(agent string) dispatch.Post {
	w.tb.Helper()
	ctx := context.Background()
	secret := w.key("acme", "service:worker", "svc:a2a:serve", identity.Scope("agent:"+agent))
	c, err := w.auth.Authenticate(ctx, secret)
	if err != nil {
		w.tb.Fatal(err)
	}
	p, err := w.tasks.Serve(ctx, c, agent)
	if err != nil {
		w.tb.Fatal(err)
	}
	return p
}

// claim claims the waiting task of the agent and returns its lease.
func (w *world) claim(p dispatch.Post) string {
	w.tb.Helper()
	c, err := w.tasks.Claim(context.Background(), p, dispatch.ClaimRequest{
		Worker: "w", Max: 1, Wait: 10 * time.Second, Lease: time.Minute, Capacity: 1,
	})
	if err != nil || len(c.Assignments) != 1 {
		w.tb.Fatalf("claimed %d tasks, %v, want 1", len(c.Assignments), err)
	}
	return c.Assignments[0].Lease.Token
}

func (w *world) report(p dispatch.Post, lease string, r task.Report) {
	w.tb.Helper()
	if _, err := w.tasks.Report(context.Background(), p, lease, r); err != nil {
		w.tb.Fatal(err)
	}
}

func says(text string) *task.Message {
	return &task.Message{Role: task.RoleAgent, Parts: []task.Part{{Kind: task.TextPart, Text: text}}}
}

func artifact(id, text string) task.ArtifactUpdate {
	return task.ArtifactUpdate{Artifact: task.Artifact{
		ID: id, Type: "text", Parts: []task.Part{{Kind: task.TextPart, Text: text}},
	}}
}

// Values that differ from run to run are replaced in golden files.
var (
	times      = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z`)
	ulids      = regexp.MustCompile(`\b[0-9a-hjkmnp-tv-z]{26}\b`)
	requestIDs = regexp.MustCompile(`"(request_id|requestId)": ?"[^"]*"`)
	tokens     = regexp.MustCompile(`"nextPageToken": ?"[0-9A-Za-z_-]{16,}"`)
)

func stable(s string) string {
	s = times.ReplaceAllString(s, "2026-01-02T03:04:05.000000Z")
	s = ulids.ReplaceAllString(s, "01k00000000000000000000000")
	s = tokens.ReplaceAllString(s, `"nextPageToken": "page-2"`)
	return requestIDs.ReplaceAllString(s, `"$1": "req-1"`)
}

func indent(tb testing.TB, s string) string {
	tb.Helper()
	var b bytes.Buffer
	if err := json.Indent(&b, []byte(s), "", "  "); err != nil {
		return s
	}
	return b.String()
}

// golden compares text with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s (-want +got; run with -update and review the change):\n%s", file, diff)
	}
}

// serve serves the world over a network.
func (w *world) serve() string {
	srv := httptest.NewServer(w.handler)
	w.tb.Cleanup(func() {
		w.tasks.Stop()
		srv.Close()
	})
	return srv.URL
}

// event is one server-sent event.
type event struct{ ID, Data string }

// open starts a stream over the network.
func open(tb testing.TB, ctx context.Context, url, secret, body, lastEventID string) *http.Response {
	tb.Helper()
	r, err := http.NewRequestWithContext(ctx, "POST", url, strings.NewReader(body))
	if err != nil {
		tb.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+secret)
	if lastEventID != "" {
		r.Header.Set("Last-Event-ID", lastEventID)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = res.Body.Close() })
	return res
}

// parseEvents parses the events of a stream.
func parseEvents(text string) (out []event) {
	for block := range strings.SplitSeq(text, "\n\n") {
		var e event
		for line := range strings.SplitSeq(block, "\n") {
			if v, ok := strings.CutPrefix(line, "id: "); ok {
				e.ID = v
			}
			if v, ok := strings.CutPrefix(line, "data: "); ok {
				e.Data = v
			}
		}
		if e.Data != "" {
			out = append(out, e)
		}
	}
	return out
}

func readAll(tb testing.TB, r io.Reader) string {
	tb.Helper()
	b, err := io.ReadAll(r)
	if err != nil {
		tb.Fatal(err)
	}
	return string(b)
}

func agentEdit(pinned *string, disabled *bool) agent.Edit {
	return agent.Edit{Pinned: pinned, Disabled: disabled}
}
