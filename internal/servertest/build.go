package servertest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

const module = "github.com/parley-dev/parley/"

// Programs are packages of this module, by the names that their programs get.
type Programs map[string]string

// Parley is the program under test.
var Parley = Programs{"parley": "cmd/parley"}

// Main builds the programs into a folder of their own, runs the tests there, and removes
// the folder. It returns the exit code for TestMain. The version of what is built does not
// matter here, and reading it from git fails where git or its trust is missing.
func Main(programs Programs, tests func(dir string) int) int {
	dir, err := os.MkdirTemp("", "parley-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	for name, pkg := range programs {
		build := exec.Command("go", "build", "-buildvcs=false", "-o", filepath.Join(dir, name), module+pkg)
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build %s: %v\n%s", pkg, err, out)
			return 1
		}
	}
	return tests(dir)
}
