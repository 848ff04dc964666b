package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

var built struct {
	once sync.Once
	path string
	err  error
}

// binary is the program under test, built once for all tests of this process.
func binary(t testing.TB) string {
	t.Helper()
	built.once.Do(func() {
		dir, err := os.MkdirTemp("", "parley-e2e")
		if err != nil {
			built.err = err
			return
		}
		built.path = filepath.Join(dir, "parley")
		out, err := exec.Command("go", "build", "-o", built.path, "../cmd/parley").CombinedOutput()
		if err != nil {
			t.Logf("%s", out)
			built.err = err
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.path
}
