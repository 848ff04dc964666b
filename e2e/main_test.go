package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// program is the binary under test, built once for all tests. Its version does not
// matter here, and reading it from git fails where git or its trust is missing.
var program string

func TestMain(m *testing.M) {
	if config := os.Getenv(honestEnv); config != "" {
		if err := runHonest(config); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	dir, err := os.MkdirTemp("", "parley-e2e")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	program = filepath.Join(dir, "parley")
	code := 1
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", program, "../cmd/parley").CombinedOutput(); err == nil {
		code = m.Run()
	} else {
		fmt.Fprintf(os.Stderr, "build the program under test: %v\n%s", err, out)
	}
	_ = os.RemoveAll(dir)
	os.Exit(code)
}
