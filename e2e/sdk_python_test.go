package e2e

import (
	"os/exec"
	"testing"
)

// TestPythonSDK runs the checks of sdk/python: its linter, its type checker and its tests, which
// start servers of their own and install the wheel in a clean environment.
func TestPythonSDK(t *testing.T) {
	t.Parallel()
	interpreter := python(t, "../../../sdk/python/requirements.txt")
	for _, c := range []struct {
		name string
		args []string
	}{
		{"lint", []string{"ruff", "check", "--no-cache", "."}},
		{"format", []string{"ruff", "format", "--no-cache", "--check", "."}},
		{"types", []string{"mypy", "--cache-dir", t.TempDir()}},
		{"tests", []string{"pytest", "--quiet"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), interpreter, append([]string{"-m"}, c.args...)...)
			cmd.Dir = "../sdk/python"
			cmd.Env = append(pythonEnv(interpreter), "PARLEY_BINARY="+program, "PYTHONPATH=src")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v: %v\n%s", c.args, err, out)
			}
		})
	}
}
