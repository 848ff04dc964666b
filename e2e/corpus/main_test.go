package corpus

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "write what the program says to testdata instead of comparing")

// program is the binary under test, built once for all topics.
var program string

func TestMain(m *testing.M) {
	flag.Parse()
	code, err := buildAndRun(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func buildAndRun(m *testing.M) (int, error) {
	dir, err := os.MkdirTemp("", "parley-corpus")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	program = filepath.Join(dir, "parley")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", program, "../../cmd/parley")
	if out, err := build.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("build the program under test: %w\n%s", err, out)
	}
	return m.Run(), nil
}
