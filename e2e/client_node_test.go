package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// nodePackages installs what the scripts of a folder need, in a copy of the folder:
// exactly what its lock file names.
func nodePackages(t *testing.T, from string) string {
	t.Helper()
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("%s is not installed, and the JavaScript clients need it: make deps, or apt-get install nodejs npm", program)
		}
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	install := exec.Command("npm", "ci", "--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund")
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("npm ci in %s: %v\n%s", from, err, out)
	}
	return dir
}

// TestJavaScriptClients runs the scripts of clients/js, each of which makes every
// call of one version of the official JavaScript SDK.
func TestJavaScriptClients(t *testing.T) {
	t.Parallel()
	dir := nodePackages(t, "clients/js")
	s := newStage(t, engine{"sqlite", []string{"--data", t.TempDir()}})
	for _, script := range []string{"v1.mjs", "v03.mjs"} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			out := s.node(t, filepath.Join(dir, script))
			if n := strings.Count(out, "ok  "); n < 60 {
				t.Errorf("only %d checks were made:\n%s", n, out)
			}
		})
	}
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
