package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/servertest"
)

// TestADK calls an agent by the URL of its card with ADK's RemoteA2aAgent, as docs/clients.md
// shows. The worker is the example in Python. Its reply must be in ADK's session afterwards, where
// ADK keeps only finished replies.
func TestADK(t *testing.T) {
	t.Parallel()
	example := "../examples/python/worker.py"
	if source := must(os.ReadFile(example))(t); !strings.Contains(string(source), `return "You said: " + text`) {
		t.Errorf("%s does not contain the reply that this test expects, want You said: ...", example)
	}
	// With the bindings that cards list by default.
	s := serve(t, engine{"sqlite", []string{"--data", t.TempDir()}}, "--rate-limit", "0")
	s.cli(t, "agent", "create", "repeater", "--org", "main", "--name", "Repeater", "--public")
	worker := exec.Command("python3", example, "repeater")
	worker.Env = append(os.Environ(), "PARLEY_SERVER="+s.base,
		"PARLEY_KEY="+s.newKey(t, "main", "agent:repeater", "svc:a2a:serve"))
	said := &servertest.Output{}
	worker.Stdout, worker.Stderr = said, said
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = worker.Process.Kill()
		_ = worker.Wait()
	})
	eventually(t, time.Minute, "the worker at work", func() bool { return s.presence(t, "repeater") == "available" })
	s.cli(t, "service", "create", "caller", "--org", "main")
	st := &stage{server: s, agent: "repeater", key: s.newKey(t, "main", "service:caller", "svc:a2a:write")}
	if got := st.example(t, "requirements-1.txt", "a2a-python/adk.py", s.base+"/a2a/repeater",
		"Hello"); got != "You said: Hello\n" {
		t.Errorf("the session printed %q, want %q; output of the worker: %s", got, "You said: Hello\n", said)
	}
}

// TestPythonExamples runs examples/a2a-python as docs/clients.md describes.
func TestPythonExamples(t *testing.T) {
	t.Parallel()
	s := newStage(t, engine{"sqlite", []string{"--data", t.TempDir()}})
	for script, requirements := range map[string]string{"v1.py": "requirements-1.txt", "v03.py": "requirements-0.3.txt"} {
		if got := s.example(t, requirements, "a2a-python/"+script, s.base+"/a2a/echo", "Hello"); got != "Hello\n" {
			t.Errorf("%s printed %q, want %q", script, got, "Hello\n")
		}
	}
}

// example runs a Python example with the stage's key and returns its output.
func (s *stage) example(t *testing.T, requirements, script string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), python(t, requirements),
		append([]string{filepath.Join("../examples", script)}, args...)...)
	cmd.Env = append(pythonEnv(cmd.Path), "PARLEY_KEY="+s.key)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, &stderr)
	}
	return string(out)
}
