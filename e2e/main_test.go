package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/parley-dev/parley/internal/servertest"
)

// program is the binary under test, built once for all tests.
var program string

func TestMain(m *testing.M) {
	if config := os.Getenv(honestEnv); config != "" {
		if err := runHonest(config); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(servertest.Main(servertest.Parley, func(dir string) int {
		program = filepath.Join(dir, "parley")
		return m.Run()
	}))
}
