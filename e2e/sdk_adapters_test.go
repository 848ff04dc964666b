//go:build adapters

package e2e

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestPythonAdapters runs the tests of parley.adapters, in which official A2A clients call agents of
// each framework through a server, and checks their types. The frameworks need different versions
// of the same packages, so there are several environments.
func TestPythonAdapters(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		requirements string
		types        bool
		frameworks   []string
	}{
		{"requirements.txt", true, []string{"a2a", "adk", "langgraph", "openai_agents"}},
		{"requirements-a2a-0.3.txt", false, []string{"a2a"}},
		{"requirements-crewai.txt", true, []string{"crewai"}},
	} {
		t.Run(strings.TrimSuffix(c.requirements, ".txt"), func(t *testing.T) {
			t.Parallel()
			interpreter := python(t, filepath.Join("../../../sdk/python/tests/adapters", c.requirements))
			tests := []string{"pytest", "--quiet", "--timeout=120", "-W", "ignore"}
			types := []string{"mypy", "--cache-dir", filepath.Join(filepath.Dir(filepath.Dir(interpreter)), "mypy")}
			for _, framework := range c.frameworks {
				tests = append(tests, "tests/adapters/test_"+framework+".py")
				types = append(types, "src/parley/adapters/"+framework+".py")
			}
			out := adapterCheck(t, interpreter, tests)
			if !strings.Contains(out, " passed") || strings.Contains(out, " skipped") {
				t.Errorf("pytest ran no test or skipped some:\n%s", out)
			}
			if c.types {
				adapterCheck(t, interpreter, types)
			}
		})
	}
}

// adapterCheck runs a Python module in the directory of the SDK and returns its output.
func adapterCheck(t *testing.T, interpreter string, args []string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), interpreter, append([]string{"-m"}, args...)...)
	cmd.Dir = "../sdk/python"
	cmd.Env = append(pythonEnv(interpreter), "PARLEY_BINARY="+program, "PYTHONPATH=src",
		"PYTHONDONTWRITEBYTECODE=", // imports take four times as long without bytecode
		"CREWAI_DISABLE_TELEMETRY=true", "OTEL_SDK_DISABLED=true", "CREWAI_STORAGE_DIR="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return string(out)
}
