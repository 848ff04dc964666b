package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// binDir holds the binary under test.
var binDir string

func TestMain(m *testing.M) {
	code, err := buildAndRun(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func buildAndRun(m *testing.M) (int, error) {
	dir, err := os.MkdirTemp("", "parley-e2e-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	for name, pkg := range map[string]string{
		"parley": "./cmd/parley", "go-worker": "./examples/go", "countdown-worker": "./examples/countdown", "go-client": "./examples/a2a-go", "own-client": "./examples/client",
	} {
		build := exec.Command("go", "build", "-buildvcs=false", "-o", filepath.Join(dir, name), pkg)
		build.Dir = "../.."
		if out, err := build.CombinedOutput(); err != nil {
			return 0, fmt.Errorf("build %s: %w\n%s", pkg, err, out)
		}
	}
	binDir = dir
	return m.Run(), nil
}
