package e2e

import (
	"bufio"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-dev/parley/sdk/client"
)

// official is a remote agent on an official server, in a process of its own. It knows its tasks only
// as long as it runs. Its messages are its script:
//
//	say X   an artifact with X in two chunks, and done
//	ask X   asks X, and says the response
//	wait X  works until released, then says X
//	file X  an artifact with a file that has X a thousand times
type official struct {
	t       *testing.T
	program []string // and its arguments, without the port
	port    string
	release string // file; tasks that wait go on when it exists

	process *exec.Cmd
	exited  chan struct{}

	mu    sync.Mutex
	lines []string // of its output
}

func newOfficial(t *testing.T, program ...string) *official {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o := &official{t: t, program: program, release: filepath.Join(t.TempDir(), "release")}
	_, o.port, _ = net.SplitHostPort(l.Addr().String())
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	o.start()
	t.Cleanup(o.kill)
	return o
}

func (o *official) url() string { return "http://127.0.0.1:" + o.port }

// start starts the process, and waits until it serves its card.
func (o *official) start() {
	o.t.Helper()
	o.process = exec.Command(o.program[0], append(o.program[1:], o.port, o.release)...)
	o.process.Env = pythonEnv(o.program[0])
	out, err := o.process.StdoutPipe()
	if err != nil {
		o.t.Fatal(err)
	}
	o.process.Stderr = os.Stderr
	if err := o.process.Start(); err != nil {
		o.t.Fatal(err)
	}
	process, exited := o.process, make(chan struct{})
	o.exited = exited
	go func() {
		defer close(exited)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			o.mu.Lock()
			o.lines = append(o.lines, lines.Text())
			o.mu.Unlock()
		}
		_ = process.Wait()
	}()
	eventually(o.t, time.Minute, "the remote serves its card", func() bool {
		res, err := http.Get(o.url() + "/.well-known/agent-card.json")
		if err != nil {
			return false
		}
		defer func() { _ = res.Body.Close() }()
		return res.StatusCode == http.StatusOK
	})
}

// kill ends the process at once, and waits for its end.
func (o *official) kill() {
	_ = o.process.Process.Kill()
	<-o.exited
}

// count returns how many lines of its output begin with a word.
func (o *official) count(word string) (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, l := range o.lines {
		if strings.HasPrefix(l, word+" ") {
			n++
		}
	}
	return n
}

// TestRelayToOfficialServers relays tasks to the official servers of other languages.
func TestRelayToOfficialServers(t *testing.T) {
	t.Parallel()
	for name, program := range map[string]func(*testing.T) []string{
		"Python 1.0": func(t *testing.T) []string { return []string{python(t, "requirements-1.txt"), "remotes/python/v1.py"} },
		"Python 0.3": func(t *testing.T) []string {
			return []string{python(t, "requirements-0.3-server.txt"), "remotes/python/v03.py"}
		},
		"JavaScript": func(t *testing.T) []string {
			return []string{"node", filepath.Join(nodePackages(t, "remotes/js"), "v1.mjs")}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testOfficial(t, newOfficial(t, program(t)...))
		})
	}
}

func testOfficial(t *testing.T, o *official) {
	e := engine{"sqlite", []string{"--data", t.TempDir()}}
	w := newRelayTo(t, e, o.url())
	if a, err := w.admin.Agents.Get(t.Context(), "tariffs"); err != nil || a.Name != "Remote" || strings.Join(a.Skills, ",") != "theatre" {
		t.Errorf("the agent is %+v, %v; want what the card says", a, err)
	}
	w.send("say", "say hello")
	if done := w.until("say", client.TaskCompleted); result(done) != "hello!" || len(done.Artifacts) != 1 {
		t.Errorf("artifacts = %+v, want one with both chunks", done.Artifacts)
	}
	streamRelayed(t, w)
	w.send("ask", "ask which one?")
	if asked := w.until("ask", client.TaskInputRequired); asked.Status.Message.Parts[0].Text != "which one?" {
		t.Errorf("question = %+v, want that of the remote", asked.Status.Message)
	}
	w.send("ask", "the blue one")
	if done := w.until("ask", client.TaskCompleted); result(done) != "the blue one!" {
		t.Errorf("result = %q, want the response to the question", result(done))
	}
	w.send("file", "file abc")
	done := w.until("file", client.TaskCompleted)
	if want := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("abc", 1000))); len(done.Artifacts) != 1 ||
		fileOf(done) != want {
		t.Errorf("file = %.100q, want %.100q", fileOf(done), want)
	}

	got := o.count("got")
	w.send("cancel", "wait for ever")
	eventually(t, time.Minute, "the remote works on the task", func() bool { return o.count("got") == got+1 })
	if _, err := w.agent.Cancel(t.Context(), "cancel"); err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, "the remote's task is canceled", func() bool { return o.count("canceled") == 1 })

	// The remote is killed in the middle of a task. The next one does not know it, so that the task
	// gets another attempt.
	w.send("killed", "wait again")
	eventually(t, time.Minute, "the remote works on the task", func() bool { return o.count("got") == got+2 })
	o.kill()
	w.send("queued", "say later")
	if err := os.WriteFile(o.release, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	o.start()
	if done := w.until("killed", client.TaskCompleted); result(done) != "again!" {
		t.Errorf("result = %q of the task whose remote was killed", result(done))
	}
	if done := w.until("queued", client.TaskCompleted); result(done) != "later!" {
		t.Errorf("result = %q of the task that was sent meanwhile", result(done))
	}
	// Five tasks and an answer, and once more the one that was killed.
	if n := o.count("got"); n != got+4 {
		t.Errorf("the remote got %d messages after the first %d, want 4", n-got, got)
	}
}

// streamRelayed sends a task and follows it by its stream.
func streamRelayed(t *testing.T, w *relayed) {
	t.Helper()
	var states []string
	text := ""
	for e, err := range w.agent.Stream(t.Context(), client.SendParams{
		ID: "stream", Message: client.NewMessage(client.Text("say in parts")),
	}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Status != nil {
			states = append(states, string(e.Status.State))
		}
		if e.Artifact != nil {
			for _, p := range e.Artifact.Parts {
				text += p.Text
			}
		}
	}
	if text != "in parts!" || len(states) == 0 || states[len(states)-1] != string(client.TaskCompleted) {
		t.Errorf("the stream has %q and the states %v", text, states)
	}
}

// fileOf returns the bytes of the first file, in base64.
func fileOf(t *client.Task) string {
	for _, a := range t.Artifacts {
		for _, p := range a.Parts {
			if len(p.Bytes) > 0 {
				return base64.StdEncoding.EncodeToString(p.Bytes)
			}
		}
	}
	return ""
}

// newRelayTo starts a server with the relay tariffs to a URL.
func newRelayTo(t *testing.T, e engine, to string, flags ...string) *relayed {
	t.Helper()
	s := serve(t, e, append(append([]string{}, toLoopback...), flags...)...)
	w := &relayed{t: t, s: s}
	w.connect(s, s.key)
	w.register("tariffs", object{"url": to})
	return w
}

// lie is how a remote responds: with a card, or with a redirect.
type lie struct{ card, redirect string }

func (l *lie) tell(w http.ResponseWriter, r *http.Request) {
	switch {
	case l.redirect != "":
		http.Redirect(w, r, l.redirect, http.StatusFound)
	case strings.HasSuffix(r.URL.Path, "agent-card.json"):
		_, _ = io.WriteString(w, l.card)
	default:
		http.NotFound(w, r)
	}
}

// TestRelayRefusesLies registers relays to remotes whose cards are wrong or lead elsewhere. None is
// accepted, and nothing private is requested.
func TestRelayRefusesLies(t *testing.T) {
	t.Parallel()
	private := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the private server got %s %s with the credential %q", r.Method, r.URL, r.Header.Get("Authorization"))
	}))
	defer private.Close()
	_, port, err := net.SplitHostPort(strings.TrimPrefix(private.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	card := func(to string) string {
		return fmt.Sprintf(`{"name":"Liar","version":"1","capabilities":{},"skills":[],
			"supportedInterfaces":[{"url":%q,"protocolBinding":"JSONRPC","protocolVersion":"1.0"}]}`, to)
	}
	var now atomic.Pointer[lie]
	liar := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { now.Load().tell(w, r) }))
	defer liar.Close()
	at, err := url.Parse(liar.URL)
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, engine{"sqlite", []string{"--data", t.TempDir()}}, "--outbound-allow", at.Host)
	w := &relayed{t: t, s: s}
	w.connect(s, s.key)
	bearer := object{"type": "bearer", "token": "s3cret-of-the-relay"}
	for i, c := range []struct {
		name, reply, redirect string
		credential            any
		want                  string
	}{
		{name: "not JSON", reply: "<html>hello</html>", want: "agent card is not valid"},
		{name: "another JSON", reply: `[1, 2]`, want: "agent card is not valid"},
		{name: "no interface", reply: `{"name":"Liar"}`, want: "no interface"},
		{name: "huge", reply: `{"name":"` + strings.Repeat("x", 2<<20) + `"}`, want: "more than"},
		{name: "no URL", reply: card("::"), want: "valid URL"},
		{name: "a file", reply: card("file:///etc/passwd"), want: "interface"},
		{name: "a private address", reply: card("http://10.1.2.3/"), want: "interface"},
		{name: "this machine", reply: card(private.URL), want: "interface"},
		{name: "this machine by name", reply: card("http://localhost:" + port), want: "interface"},
		{name: "metadata of a cloud", reply: card("http://169.254.169.254/latest"), want: "interface"},
		{name: "another origin with a credential", reply: card("https://other.example/a2a"), credential: bearer, want: "another origin"},
		{name: "a redirect into the private network", redirect: private.URL, want: "redirects to"},
		{name: "a redirect with a credential", redirect: private.URL, credential: bearer, want: "redirects to"},
	} {
		now.Store(&lie{c.reply, c.redirect})
		relay := object{"url": liar.URL}
		if c.credential != nil {
			relay["credential"] = c.credential
		}
		_, err := w.tryRegister(fmt.Sprintf("liar-%d", i), relay)
		var refused *client.Error
		if !errors.As(err, &refused) || refused.Status != http.StatusUnprocessableEntity || !strings.Contains(refused.Error(), c.want) {
			t.Errorf("%s: %v; want 422 with %q", c.name, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: the error repeats the credential: %v", c.name, err)
		}
	}
	// A remote that begins to lie after it was registered.
	now.Store(&lie{card: card(liar.URL)})
	w.register("tariffs", object{"url": liar.URL, "credential": bearer})
	now.Store(&lie{redirect: private.URL})
	w.send("lied", "say hello")
	eventually(t, time.Minute, "the task has failed", func() bool {
		got, err := w.agent.Get(t.Context(), "lied", client.GetParams{})
		return err == nil && got.Status.State.Terminal() && got.Status.State != client.TaskCompleted
	})
}
