package servertest

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
)

const module = "github.com/parley-dev/parley/"

// Programs maps the name of a program to its package in this module.
type Programs map[string]string

// Parley is the program under test.
var Parley = Programs{"parley": "cmd/parley"}

// Main builds the programs into a temporary directory, runs the tests, and removes the directory.
// It returns the exit code for TestMain. It raises the default of -parallel: tests of other
// processes wait more than they compute.
func Main(programs Programs, tests func(dir string) int) int {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		if err := flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0))); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	dir, err := os.MkdirTemp("", "parley-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	for name, pkg := range programs {
		// Without debug information, to link faster, and without version information, which needs
		// git and a trusted checkout.
		build := exec.Command("go", "build", "-buildvcs=false", "-ldflags=-s -w",
			"-o", filepath.Join(dir, name), module+pkg)
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build %s: %v\n%s", pkg, err, out)
			return 1
		}
	}
	return tests(dir)
}
