package conformance

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/parley-dev/parley/internal/servertest"
)

// built is the directory of the programs that TestMain builds.
var built string

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		fmt.Println("conformance of worker SDKs: 'make test' runs it")
		return
	}
	// The scenarios wait most of the time: for leases, heartbeats and pauses between attempts.
	parallel := flag.Lookup("test.parallel")
	if parallel.Value.String() == parallel.DefValue {
		if err := flag.Set(parallel.Name, "12"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	programs := servertest.Programs{"parley": "cmd/parley", "driver": "sdk/conformance/driver"}
	os.Exit(servertest.Main(programs, func(dir string) int {
		built = dir
		return m.Run()
	}))
}

func TestGo(t *testing.T) {
	conform(t, program{args: []string{filepath.Join(built, "driver")}})
}
