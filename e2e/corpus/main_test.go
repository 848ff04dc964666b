package corpus

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/parley-dev/parley/internal/servertest"
)

var update = flag.Bool("update", false, "write what the program says to testdata instead of comparing")

// program is the binary under test, built once for all topics.
var program string

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(servertest.Main(servertest.Parley, func(dir string) int {
		program = filepath.Join(dir, "parley")
		return m.Run()
	}))
}
