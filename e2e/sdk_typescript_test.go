package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
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
	for _, script := range []string{"build", "generate:check", "test"} {
		cmd := exec.CommandContext(t.Context(), "npm", "run", script)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "PARLEY="+program)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("npm run %s: %v\n%s", script, err, out)
		}
	}
}
