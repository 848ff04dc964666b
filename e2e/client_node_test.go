package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/nodetest"
	"github.com/parley-dev/parley/internal/servertest"
)

// nodePackages installs the packages of a directory's lock file in a copy of the directory. Tests
// that need the same packages share it.
func nodePackages(t *testing.T, from string) string {
	t.Helper()
	install, _ := installed.LoadOrStore(from, sync.OnceValues(func() (string, error) { return installPackages(from) }))
	dir, err := install.(func() (string, error))()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

var installed sync.Map // folder → func() (string, error)

func installPackages(from string) (string, error) {
	dir := filepath.Join(filepath.Dir(program), "node", from) // TestMain removes it
	return dir, nodetest.Install(from, dir)
}

// TestJavaScriptClients runs the scripts of clients/js, each of which makes every
// call of one version of the official JavaScript SDK, and the examples.
func TestJavaScriptClients(t *testing.T) {
	t.Parallel()
	dir := nodePackages(t, "clients/js")
	s := newStage(t, engine{"sqlite", []string{"--data", t.TempDir()}})
	for _, script := range []string{"v1.mjs", "v03.mjs"} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			out := s.node(t, filepath.Join(dir, script))
			if n := strings.Count(out, "ok  "); n < 60 {
				t.Errorf("got %d checks, want at least 60:\n%s", n, out)
			}
		})
	}
	t.Run("webhooks.mjs", func(t *testing.T) {
		t.Parallel()
		if out := s.node(t, filepath.Join(dir, "webhooks.mjs")); strings.Count(out, "ok  ") != 2 {
			t.Errorf("got %d checks, want 2:\n%s", strings.Count(out, "ok  "), out)
		}
	})
	t.Run("examples", func(t *testing.T) {
		t.Parallel()
		testExamples(t, s, dir)
	})
}

// node runs a script that calls the stage's agent.
func (s *stage) node(t *testing.T, script string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "node", script)
	cmd.Dir = filepath.Dir(script)
	cmd.Env = append(os.Environ(), "NO_PROXY=127.0.0.1", "PARLEY_URL="+s.base, "PARLEY_AGENT="+s.agent,
		"PARLEY_KEY="+s.key, "PARLEY_ONLY_KEY="+s.only, "PARLEY_NONE_KEY="+s.none)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", filepath.Base(script), err, out)
	}
	return string(out)
}

// testExamples runs examples/a2a-js as docs/clients.md describes: the clients, and a receiver that
// gets a signed push and a forged one.
func testExamples(t *testing.T, s *stage, dir string) {
	dir = must(os.MkdirTemp(dir, "examples"))(t) // where Node.js finds the packages
	if err := os.CopyFS(dir, os.DirFS("../examples/a2a-js")); err != nil {
		t.Fatal(err)
	}
	// Both versions of the SDK are installed here, one of them by another name.
	old := filepath.Join(dir, "v03.mjs")
	script := must(os.ReadFile(old))(t)
	if err := os.WriteFile(old, []byte(strings.ReplaceAll(string(script), "@a2a-js/sdk/", "a2a-js-sdk-0.3/")),
		0o600); err != nil {
		t.Fatal(err)
	}
	run := func(script string, args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), "node", append([]string{filepath.Join(dir, script)}, args...)...)
		cmd.Env = append(os.Environ(), "PARLEY_KEY="+s.key, "PARLEY_SERVER="+s.base, "PUSH_TOKEN=a-token")
		return cmd
	}
	for _, script := range []string{"v1.mjs", "v03.mjs"} {
		var stderr strings.Builder
		cmd := run(script, s.base+"/a2a/echo", "Hello")
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil || string(out) != "Hello\n" || !strings.Contains(strings.ToLower(stderr.String()), "completed") {
			t.Errorf("%s printed %q and %s (%v), want %q and the state completed", script, out, &stderr, err, "Hello\n")
		}
	}
	receiver, said := run("receiver.mjs"), &servertest.Output{}
	receiver.Stdout, receiver.Stderr = said, said
	if err := receiver.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = receiver.Process.Kill()
		_ = receiver.Wait()
	})
	says := func(what string) {
		t.Helper()
		eventually(t, time.Minute, "the receiver says "+what, func() bool { return strings.Contains(said.String(), what) })
	}
	says("receiving at ")
	address := addressPattern.FindString(said.String())
	res := must(post(t.Context(), address, "", object{"statusUpdate": object{}}, "X-A2A-Notification-Token: a-token",
		"webhook-signature: v1a,AAAA"))(t)
	_ = res.Body.Close()
	if res.StatusCode != 401 {
		t.Errorf("status of a forged push = %d, want 401", res.StatusCode)
	}
	p := peer{s.base, s.key}
	a := must(p.call(t.Context(), "echo", "SendMessage", object{
		"message":       object{"messageId": "m-1", "role": "ROLE_USER", "parts": []object{{"text": "Hello"}}},
		"configuration": object{"taskPushNotificationConfig": object{"url": address, "token": "a-token"}},
	}))(t)
	if a.Error != nil {
		t.Fatalf("got error %+v, want none", a.Error)
	}
	says("TASK_STATE_COMPLETED")
}
