package worker

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-dev/parley/sdk/client"
)

// fake is a server that fails in chosen ways. It hands out tasks and records all reports. It is
// connected by net.Pipe, so that tests can run in a synctest bubble, where waiting takes no time.
type fake struct {
	http *http.Client // reaches the fake under every URL

	// Called with the count of reports so far, before and after a report is stored. They
	// return true if they have ended the exchange.
	before, after func(n int, w http.ResponseWriter) bool
	claimFails    func(n int, w http.ResponseWriter) bool
	// exchange, if set, makes the fake a server with exchanges. It is called with the count of
	// exchanges so far, like before.
	exchange func(n int, r *client.ExchangeRequest, w http.ResponseWriter) bool

	mu       sync.Mutex
	tasks    []client.ClaimedTask
	messages []DirectMessage
	turns    []Message // for the response to the next report
	claims   []client.ClaimRequest
	together []int // number of reports of each exchange
	tries    int   // reports that arrived, heartbeats not counted
	reports  []client.WorkReport
	beats    []client.WorkReport
	over     map[string]string // final states by lease
	down     bool              // no request gets a response any more
	returned []string
	changed  chan struct{}
}

func newFake(t *testing.T, tasks ...string) *fake {
	f := &fake{over: map[string]string{}, changed: make(chan struct{})}
	for i, text := range tasks {
		m := Message{Role: "user", Parts: []Part{Text(text)}}
		id := string(rune('a' + i))
		f.tasks = append(f.tasks, client.ClaimedTask{
			ID: id, Lease: "lease-" + id, Attempt: 1, Sender: Sender{Org: "main", Kind: client.KindUser, ID: "ada"},
			Message: m, History: []Message{m},
		})
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/v1/agents/scout/claim", f.claim)
	mux.HandleFunc("POST /api/v1/agents/scout/work", f.work)
	mux.HandleFunc("POST /api/v1/agents/scout/leases/{lease}", f.report)
	mux.HandleFunc("DELETE /api/v1/agents/scout/leases/{lease}", f.hand)
	l := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	transport := &http.Transport{DialContext: l.dial}
	f.http = &http.Client{Transport: transport}
	srv := &http.Server{Handler: mux}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		_ = srv.Close()
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("Serve = %v, want %v", err, http.ErrServerClosed)
		}
	})
	return f
}

// pipes is a listener of connections within this process.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.conns <- theirs:
		return ours, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements net.Listener.
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

// Addr implements net.Listener.
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{} }

// bubble runs a test in parallel and in a synctest bubble.
func bubble(t *testing.T, test func(*testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, test)
}

func respond(w http.ResponseWriter, v any) { _ = json.NewEncoder(w).Encode(v) }

func refuse(w http.ResponseWriter, status int, code string) bool {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	respond(w, map[string]string{"detail": "refused", "code": code})
	return true
}

// hangUp closes the connection without a response.
func hangUp(w http.ResponseWriter) bool {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		_ = conn.Close()
	}
	return true
}

func (f *fake) touch() {
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *fake) claim(w http.ResponseWriter, r *http.Request) {
	var req client.ClaimRequest
	_ = json.NewDecoder(r.Body).Decode(&req)
	f.mu.Lock()
	f.claims = append(f.claims, req)
	f.touch()
	n := len(f.claims)
	fails := f.claimFails
	f.mu.Unlock()
	if fails != nil && fails(n, w) {
		return
	}
	f.mu.Lock()
	out := f.grant(&req)
	f.mu.Unlock()
	if len(out.Tasks)+len(out.Messages) == 0 && req.WaitSeconds > 0 {
		select {
		case <-r.Context().Done():
		case <-time.After(time.Duration(req.WaitSeconds) * time.Second):
		}
	}
	respond(w, out)
}

// grant acknowledges messages and hands out tasks.
func (f *fake) grant(req *client.ClaimRequest) client.Claim {
	for _, id := range req.Ack {
		for i, m := range f.messages {
			if m.ID == id {
				f.messages = append(f.messages[:i:i], f.messages[i+1:]...)
				break
			}
		}
	}
	k := min(req.Max, len(f.tasks))
	out := client.Claim{Tasks: f.tasks[:k], Messages: f.messages}
	f.tasks = f.tasks[k:]
	return out
}

// work is an exchange: each report is stored like one that is sent alone.
func (f *fake) work(w http.ResponseWriter, r *http.Request) {
	var req client.ExchangeRequest
	_ = json.NewDecoder(r.Body).Decode(&req)
	if f.exchange == nil {
		refuse(w, http.StatusNotFound, "request.not_found")
		return
	}
	f.mu.Lock()
	f.together = append(f.together, len(req.Reports))
	n := len(f.together)
	f.touch()
	f.mu.Unlock()
	if f.exchange(n, &req, w) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	defer f.touch()
	var out client.Exchange
	for _, report := range req.Reports {
		res := client.ReportResult{Lease: report.Lease}
		if f.over[report.Lease] != "" {
			res.Problem = &client.Error{Status: http.StatusConflict, Code: "task.lease_stale", Detail: "stale"}
		} else {
			f.reports = append(f.reports, report.Report)
			f.over[report.Lease] = string(report.Report.Status)
			res.Progress = &client.WorkProgress{State: report.Report.Status}
		}
		out.Reports = append(out.Reports, res)
	}
	if req.Claim != nil {
		f.claims = append(f.claims, *req.Claim)
		granted := f.grant(req.Claim)
		out.Tasks, out.Messages = granted.Tasks, granted.Messages
	}
	respond(w, encodable(&out))
}

// encodable returns an exchange with its problems as problem documents.
func encodable(e *client.Exchange) any {
	reports := []any{}
	for _, r := range e.Reports {
		item := map[string]any{"lease": r.Lease, "progress": r.Progress}
		if r.Problem != nil {
			item = map[string]any{"lease": r.Lease, "problem": map[string]any{
				"status": r.Problem.Status, "code": r.Problem.Code, "detail": r.Problem.Detail,
			}}
		}
		reports = append(reports, item)
	}
	return map[string]any{"reports": reports, "tasks": e.Tasks, "messages": e.Messages}
}

func (f *fake) report(w http.ResponseWriter, r *http.Request) {
	var req client.WorkReport
	_ = json.NewDecoder(r.Body).Decode(&req)
	f.mu.Lock()
	defer f.mu.Unlock()
	defer f.touch()
	if f.down {
		hangUp(w)
		return
	}
	lease := r.PathValue("lease")
	beat := req.Status == "" && req.Message == nil && req.Artifacts == nil
	if !beat {
		f.tries++
		if f.before != nil && f.before(f.tries, w) {
			return
		}
	}
	switch state := f.over[lease]; {
	case state == "canceled":
		respond(w, client.WorkProgress{State: client.TaskState(state), Canceled: true})
		return
	case state != "":
		refuse(w, http.StatusConflict, "task.lease_stale")
		return
	}
	if beat {
		f.beats = append(f.beats, req)
	} else {
		f.reports = append(f.reports, req)
		if req.Status != "" && req.Status != "working" {
			f.over[lease] = string(req.Status)
		}
		if f.after != nil && f.after(f.tries, w) {
			return
		}
	}
	respond(w, client.WorkProgress{State: "working", Messages: f.turns})
	f.turns = nil
}

func (f *fake) hand(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer f.touch()
	f.over[r.PathValue("lease")] = "returned"
	f.returned = append(f.returned, r.PathValue("lease"))
	w.WriteHeader(http.StatusNoContent)
}

// until waits for a condition, which is evaluated under the lock.
func (f *fake) until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	late := time.After(10 * time.Minute)
	for {
		f.mu.Lock()
		ok, changed := holds(), f.changed
		f.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-late:
			t.Fatalf("after 10 minutes: want %s", what)
		}
	}
}

// start runs a worker; stop ends it and returns the result of Run.
func start(t *testing.T, f *fake, handle Handler, change ...func(*Config)) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	cfg := Config{URL: "http://parley.test/", Agent: "scout", Key: "k", Name: "test", HTTPClient: f.http, Logger: quiet}
	for _, edit := range change {
		edit(&cfg)
	}
	w, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	go func() { done <- w.Run(ctx, handle) }()
	once := sync.OnceValue(func() error {
		cancel()
		select {
		case err := <-done:
			return err
		case <-time.After(time.Minute):
			t.Error("the worker still runs, want it stopped")
			return nil
		}
	})
	t.Cleanup(func() { _ = once() })
	return once
}

// said returns the reports in words.
func (f *fake) said() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []string
	for _, r := range f.reports {
		s := string(r.Status)
		if r.Reply {
			s += " by reply"
		}
		if r.Message != nil {
			s += " " + (&Message{Parts: r.Message.Parts}).Text()
		}
		for _, a := range r.Artifacts {
			sign := "="
			if a.Append {
				sign = "+"
			}
			s += " " + a.ID + sign + (&Message{Parts: a.Parts}).Text()
		}
		out = append(out, strings.TrimSpace(s))
	}
	return strings.Join(out, "; ")
}
