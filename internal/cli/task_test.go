package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func status(seq int, state, text string, final bool) string {
	msg := ""
	if text != "" {
		msg = fmt.Sprintf(`,"message":{"role":"agent","parts":[{"type":"text","text":%q}]}`, text)
	}
	return fmt.Sprintf("id: %d\ndata: "+`{"jsonrpc":"2.0","id":1,"result":{"id":"t","status":`+
		`{"state":%q,"timestamp":"2026-01-02T03:04:0%dZ"%s},"final":%t}}`+"\n\n", seq, state, seq, msg, final)
}

func chunk(seq int, text string, grows bool) string {
	return fmt.Sprintf("id: %d\ndata: "+`{"jsonrpc":"2.0","id":1,"result":{"id":"t","artifact":`+
		`{"artifactId":"a","parts":[{"type":"text","text":%q}],"append":%t}}}`+"\n\n", seq, text, grows)
}

// log is a task's stream, event by event.
var log = []string{
	status(1, "submitted", "", false), status(2, "working", "", false), status(3, "working", "Reading", false),
	chunk(4, "first ", false), status(5, "working", "Still\nreading", false), chunk(6, "second", true),
	status(7, "completed", "", true),
}

// cutServer breaks every stream after some events.
type cutServer struct {
	cut int

	mu   sync.Mutex
	seen []string // method and Last-Event-ID of each request
}

func (c *cutServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet { // the card
		w.WriteHeader(http.StatusNotFound)
		return
	}
	var req struct{ Method string }
	body, _ := io.ReadAll(r.Body)
	_ = json.Unmarshal(body, &req)
	from := 0
	fmt.Sscan(r.Header.Get("Last-Event-ID"), &from)
	c.mu.Lock()
	c.seen = append(c.seen, fmt.Sprint(req.Method, " ", from))
	c.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, ": hello\n\nretry: 1\n\n")
	for i, ev := range log[from:] {
		if i == c.cut {
			_, _ = io.WriteString(w, ev[:len(ev)/2]) // half an event does not count
			return
		}
		_, _ = io.WriteString(w, ev)
	}
}

func TestStreamGoesOnAfterABrokenConnection(t *testing.T) {
	t.Parallel()
	for cut := 1; cut <= len(log); cut++ {
		t.Run(fmt.Sprint(cut), func(t *testing.T) {
			t.Parallel()
			srv := &cutServer{cut: cut}
			ts := httptest.NewServer(srv)
			defer ts.Close()
			var stdout, stderr bytes.Buffer
			args := []string{"task", "send", "scout", "hello", "--id", "t", "--stream", "--server", ts.URL, "--key", "k"}
			code := Main(t.Context(), args, strings.NewReader(""), &stdout, &stderr)
			if code != exitOK {
				t.Errorf("exit code %d: %s", code, &stderr)
			}
			if got := stdout.String(); got != "first second\n" {
				t.Errorf("the artifact is %q", got)
			}
			var states []string
			for line := range strings.Lines(stderr.String()) {
				if strings.HasPrefix(line, "03:04:0") {
					states = append(states, strings.TrimSpace(line))
				}
			}
			want := []string{
				"03:04:01  submitted", "03:04:02  working", "03:04:03  working  Reading",
				"03:04:05  working  Still reading", "03:04:07  completed",
			}
			if diff := cmp.Diff(want, states); diff != "" {
				t.Errorf("states (-want +got):\n%s", diff)
			}
			for i, seen := range srv.seen {
				if want := fmt.Sprint("tasks/resubscribe ", i*cut); i > 0 && seen != want {
					t.Errorf("request %d was %q; want %q", i+1, seen, want)
				}
			}
			if want := (len(log) + cut - 1) / cut; len(srv.seen) != want || srv.seen[0] != "tasks/sendSubscribe 0" {
				t.Errorf("the requests were %q; want %d", srv.seen, want)
			}
		})
	}
}

func TestExitCodesOfTasks(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]int{
		"completed": 0, "failed": 3, "rejected": 3, "canceled": 3,
		"input-required": 4, "auth-required": 4, "working": 4, "submitted": 4,
	} {
		ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if strings.Contains(string(body), "resubscribe") {
				w.Header().Set("Content-Type", "text/event-stream")
				w.(http.Flusher).Flush()
				<-r.Context().Done() // no further event
				return
			}
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":1,"result":{"id":"t","status":{"state":%q}}}`, state)
		}))
		code, _, stderr := run(t, "task", "send", "scout", "hello", "--id", "t", "--wait=300ms", "--server", ts.URL, "--key", "k")
		said := "parley: sending task t to agent scout\n"
		if state == "working" || state == "submitted" {
			said += "parley: the task is not over yet; follow it with: parley task watch scout t --server " + ts.URL + "\n"
		}
		if code != want || stderr != said {
			t.Errorf("%s: exit code %d; want %d; stderr %q", state, code, want, stderr)
		}
		if code, _, stderr := run(t, "task", "send", "scout", "hello", "--server", ts.URL, "--key", "k"); code != 0 {
			t.Errorf("%s without --wait: exit code %d, %s", state, code, stderr)
		}
		ts.CloseClientConnections()
		ts.Close()
	}
}

// The hint to follow a task works as pasted: it repeats the flags, quoted, but no variables.
func TestTheWatchHintNamesTheTarget(t *testing.T) {
	t.Setenv("PARLEY_ORG", "o")
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet { // the caller, or the card
			_, _ = io.WriteString(w, `{"org":"o"}`)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	t.Cleanup(ts.Close)
	t.Cleanup(ts.CloseClientConnections)
	send := []string{
		"task", "send", "scout", "hello", "--id", "my task", "--stream", "--wait=100ms", "--server", ts.URL, "--key", "k",
	}
	want := "follow it with: parley task watch scout 'my task' --server " + ts.URL
	if _, _, stderr := run(t, send...); !strings.HasSuffix(stderr, want+"\n") {
		t.Errorf("stderr %q; want %q at its end", stderr, want)
	}
	if _, _, stderr := run(t, append(send, "--org", "o")...); !strings.HasSuffix(stderr, want+" --org o\n") {
		t.Errorf("stderr %q; want %q at its end", stderr, want+" --org o")
	}
}

// A wait bounds the retries, too, and a task that was not sent is not said to go on.
func TestATaskThatIsNotSent(t *testing.T) {
	t.Parallel()
	closed := httptest.NewServer(nil)
	closed.Close()
	send := []string{"task", "send", "scout", "hello", "--server", closed.URL, "--key", "k"}
	for _, args := range [][]string{{"--wait=100ms"}, {"--wait=100ms", "--stream"}} {
		code, _, stderr := run(t, append(send, args...)...)
		if code != exitFailed || !strings.Contains(stderr, "cannot reach "+closed.URL) || strings.Contains(stderr, "task watch") {
			t.Errorf("%v: code %d, %s", args, code, stderr)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, args := range [][]string{{}, {"--wait"}, {"--stream"}} {
		var stderr bytes.Buffer
		code := Main(ctx, append(send, args...), strings.NewReader(""), io.Discard, &stderr)
		if code != exitInterrupted || !strings.HasSuffix(stderr.String(), "parley: interrupted; nothing was sent\n") {
			t.Errorf("%v: code %d, %s", args, code, &stderr)
		}
	}
	var stderr bytes.Buffer
	code := Main(ctx, []string{"proposal", "list", "--server", closed.URL, "--key", "k"}, strings.NewReader(""), io.Discard, &stderr)
	if code != exitInterrupted || stderr.String() != "parley: interrupted\n" {
		t.Errorf("code %d, %s", code, &stderr)
	}
}

func TestRefusalsOfAnAgent(t *testing.T) {
	t.Parallel()
	tests := []struct {
		status int
		body   string
		want   string
	}{
		{
			403, `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"not this agent",` +
				`"data":{"code":"auth.agent_out_of_scope"}}}`,
			"parley: not this agent\n  code: auth.agent_out_of_scope\n",
		},
		{
			200, `{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"there is no such task"}}`,
			"parley: task \"t\" not found among those that you sent, on SERVER; run \"parley task list --server SERVER\"\n  code: -32001\n",
		},
		{
			200, `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"bad params",` +
				`"data":[{"pointer":"/id","detail":"is too long"}]}}`,
			"parley: bad params\n  id: is too long\n  code: -32602\n",
		},
	}
	for _, tt := range tests {
		ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(tt.status)
			_, _ = io.WriteString(w, tt.body)
		}))
		for _, args := range [][]string{{"get", "scout", "t"}, {"watch", "scout", "t"}, {"send", "scout", "x", "--id", "t"}} {
			code, _, stderr := run(t, append(append([]string{"task"}, args...), "--server", ts.URL, "--key", "k")...)
			stderr = strings.ReplaceAll(stderr, ts.URL, "SERVER")
			if code != exitFailed || stderr != tt.want {
				t.Errorf("%v: exit code %d, stderr %q; want %q", args, code, stderr, tt.want)
			}
		}
		ts.Close()
	}
}

func TestWaitFlag(t *testing.T) {
	t.Parallel()
	for _, arg := range []string{"--wait=soon", "--wait=-1s", "--wait=0s"} {
		code, _, stderr := run(t, "task", "send", "scout", "x", arg, "--key", "k")
		if code != exitUsage || !strings.Contains(stderr, "not a time to wait") {
			t.Errorf("%s: exit code %d, %s", arg, code, stderr)
		}
	}
}
