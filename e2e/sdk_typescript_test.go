package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/parley-dev/parley/internal/nodetest"
)

// TestTypeScriptSDK builds sdk/typescript and runs its tests, which start the built server. The
// generated files must fit api/openapi.yaml. 'make lint' runs its linters.
func TestTypeScriptSDK(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(filepath.Dir(program), "repository", "sdk", "typescript") // TestMain removes it
	if err := nodetest.Install("../sdk/typescript", dir); err != nil {
		t.Fatal(err)
	}
	api := filepath.Join(dir, "..", "..", "api")
	if err := os.CopyFS(api, os.DirFS("../api")); err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "PARLEY="+program, "DENO="+deno(t))
	for _, script := range []string{"build", "generate:check", "test"} {
		cmd := exec.CommandContext(t.Context(), "npm", "run", script)
		cmd.Dir, cmd.Env = dir, env
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("npm run %s: %v\n%s", script, err, out)
		}
	}
}

// deno installs Deno and returns its path; it returns "" on platforms without a pinned package.
func deno(t *testing.T) string {
	t.Helper()
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		return ""
	}
	dir := filepath.Join(filepath.Dir(program), "deno") // TestMain removes it
	if err := nodetest.Install("../sdk/typescript/test/deno", dir); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "node_modules", "@deno", "linux-x64-glibc", "deno")
}
