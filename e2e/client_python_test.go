package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// python returns the interpreter of a virtual environment with the packages of a requirements file
// in clients/python. scripts/venv makes it if it is missing.
func python(t *testing.T, requirements string) string {
	t.Helper()
	make, _ := interpreters.LoadOrStore(requirements,
		sync.OnceValues(func() (string, error) { return makeVenv(requirements) }))
	interpreter, err := make.(func() (string, error))()
	if err != nil {
		t.Fatal(err)
	}
	return interpreter
}

var interpreters sync.Map // requirements file → func() (string, error)

func makeVenv(requirements string) (string, error) {
	if _, err := exec.LookPath("python3"); err != nil {
		return "", fmt.Errorf("python3 is not installed, and the Python clients need it: make deps, or apt-get install python3 python3-venv")
	}
	cmd := exec.Command("../scripts/venv", filepath.Join("clients/python", requirements))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("scripts/venv %s: %w\n%s", requirements, err, &stderr)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "bin", "python"), nil
}

// TestPythonClients runs the scripts of clients/python, each of which makes every
// call of one version of the official Python SDK.
func TestPythonClients(t *testing.T) {
	t.Parallel()
	s := newStage(t, engine{"sqlite", []string{"--data", t.TempDir()}})
	for _, c := range []struct {
		requirements, script string
		checks               int // at least
	}{
		{"requirements-1.txt", "v1.py", 60},
		{"requirements-0.3.txt", "v03.py", 30},
	} {
		t.Run(c.script, func(t *testing.T) {
			t.Parallel()
			out := s.python(t, python(t, c.requirements), filepath.Join("clients/python", c.script))
			if n := strings.Count(out, "ok  "); n < c.checks {
				t.Errorf("got %d checks, want at least %d:\n%s", n, c.checks, out)
			}
		})
	}
}

// python runs a script that calls the stage's agent.
func (s *stage) python(t *testing.T, interpreter, script string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), interpreter, append([]string{script}, args...)...)
	cmd.Env = append(pythonEnv(interpreter), "PARLEY_URL="+s.base, "PARLEY_AGENT="+s.agent, "PARLEY_KEY="+s.key,
		"PARLEY_ONLY_KEY="+s.only, "PARLEY_NONE_KEY="+s.none)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", filepath.Base(script), err, out)
	}
	return string(out)
}

// pythonEnv returns the environment of a Python client. Python keeps its bytecode in the virtual
// environment, not in the checkout.
func pythonEnv(interpreter string) []string {
	compiled := filepath.Join(filepath.Dir(filepath.Dir(interpreter)), "compiled")
	return append(os.Environ(), "NO_PROXY=127.0.0.1,localhost", "PYTHONPYCACHEPREFIX="+compiled)
}
