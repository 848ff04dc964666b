package webhooks

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/parley-dev/parley/internal/servertest"
)

var (
	program string // the binary under test
	scratch string // removed after the tests
)

func TestMain(m *testing.M) {
	os.Exit(servertest.Main(servertest.Parley, func(dir string) int {
		program, scratch = filepath.Join(dir, "parley"), dir
		return m.Run()
	}))
}
