package worker

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-dev/parley/sdk/client"
)

// fake stands for a server that fails in chosen ways, which a real one cannot be
// asked to do. It gives out tasks, and remembers all reports.
type fake struct {
	// Called with the count of reports so far, before and after a report is taken;
	// true: the exchange ended there.
	before, after func(n int, w http.ResponseWriter) bool
	claimFails    func(n int, w http.ResponseWriter) bool

	mu       sync.Mutex
	tasks    []client.ClaimedTask
	messages []DirectMessage
	turns    []Message // for the next report's answer
	claims   []client.ClaimRequest
	tries    int // reports that arrived, heartbeats not counted
	reports  []client.WorkReport
	beats    []client.WorkReport
	over     map[string]string // state of leases that are over
	down     bool              // nothing is answered any more
	returned []string
	changed  chan struct{}
}

func newFake(t *testing.T, tasks ...string) (*fake, *httptest.Server) {
	f := &fake{over: map[string]string{}, changed: make(chan struct{})}
	for i, text := range tasks {
		m := Message{Role: "user", Parts: []Part{Text(text)}}
		id := string(rune('a' + i))
		f.tasks = append(f.tasks, client.ClaimedTask{ID: id, Lease: "lease-" + id, Attempt: 1, Sender: Sender{Org: "main", Kind: client.KindUser, ID: "ada"}, Message: m, History: []Message{m}})
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/v1/agents/scout/claim", f.claim)
	mux.HandleFunc("POST /api/v1/agents/scout/leases/{lease}", f.report)
	mux.HandleFunc("DELETE /api/v1/agents/scout/leases/{lease}", f.hand)
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	t.Cleanup(srv.CloseClientConnections)
	return f, srv
}

func answer(w http.ResponseWriter, v any) { _ = json.NewEncoder(w).Encode(v) }

func refuse(w http.ResponseWriter, status int, code string) bool {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	answer(w, map[string]string{"detail": "refused", "code": code})
	return true
}

// hangUp ends the connection without an answer.
func hangUp(w http.ResponseWriter) bool {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		_ = conn.(*net.TCPConn).SetLinger(0)
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
	f.mu.Unlock()
	if len(out.Tasks)+len(out.Messages) == 0 && req.WaitSeconds > 0 {
		select {
		case <-r.Context().Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
	answer(w, out)
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
		answer(w, client.WorkProgress{State: client.TaskState(state), Canceled: true})
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
	answer(w, client.WorkProgress{State: "working", Messages: f.turns})
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

// until waits for a condition, which is looked at under the lock.
func (f *fake) until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	late := time.After(time.Minute)
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
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// start runs a worker; stop ends it and returns what Run returned.
func start(t *testing.T, srv *httptest.Server, handle Handler, change ...func(*Config)) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	cfg := Config{URL: srv.URL + "/", Agent: "scout", Key: "k", Name: "test", Logger: quiet}
	for _, f := range change {
		f(&cfg)
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
			t.Error("the worker does not stop")
			return nil
		}
	})
	t.Cleanup(func() { _ = once() })
	return once
}

// said is the reports in words.
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
