package cli

import (
	"os"
	"testing"

	"github.com/parley-dev/parley/internal/servertest"
)

// binDir holds the binary under test.
var binDir string

func TestMain(m *testing.M) {
	programs := servertest.Programs{
		"parley": "cmd/parley", "go-worker": "examples/go", "countdown-worker": "examples/countdown",
		"go-client": "examples/a2a-go", "own-client": "examples/client", "mcp-client": "examples/mcp-go",
		"webhook-receiver": "examples/webhook-go",
	}
	os.Exit(servertest.Main(programs, func(dir string) int {
		binDir = dir
		return m.Run()
	}))
}
