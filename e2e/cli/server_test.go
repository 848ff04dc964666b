package cli

import (
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/parley-dev/parley/internal/servertest"
)

// patience bounds every wait. A wait ends early when its condition holds.
const patience = time.Minute

// startServer runs parley serve, on a free port unless args name one, and waits until it
// is ready.
func startServer(dir string, environ []string, args ...string) (*servertest.Process, error) {
	if !slices.Contains(args, "--listen") {
		args = append([]string{"--listen", "127.0.0.1:0"}, args...)
	}
	cmd := exec.Command(filepath.Join(binDir, "parley"), append([]string{"serve"}, args...)...)
	// There is no load balancer to wait for.
	cmd.Dir, cmd.Env = dir, append([]string{"PARLEY_SHUTDOWN_DELAY=0s"}, environ...)
	return servertest.Start(cmd, "/readyz")
}

var ports atomic.Int32 // that were tried

var firstPort = rand.IntN(5000)

// ownPort finds a free port that a server can use again after a restart. It is outside of
// the ephemeral range, so that no other process gets it in between.
func ownPort() (string, error) {
	for {
		n := int(ports.Add(1))
		if n > 5000 {
			return "", errors.New("no port is free")
		}
		addr := "127.0.0.1:" + strconv.Itoa(25_000+(firstPort+n)%5000)
		if free, err := net.Listen("tcp", addr); err == nil {
			return addr, free.Close()
		}
	}
}

var errStillWorks = errors.New("the key still works")

// fatal is an error that ends a wait at once.
type fatal struct{ error }

// eventually waits until f returns nil.
func eventually(f func() error) error {
	deadline := time.Now().Add(patience)
	for {
		err := f()
		if _, ok := err.(fatal); ok || err == nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// cleanEnv returns an environment without the settings of the user who runs the tests.
func cleanEnv(dir string, extra ...string) []string {
	return append([]string{
		"PATH=" + binDir + string(os.PathListSeparator) + os.Getenv("PATH"),
		"HOME=" + dir, "TMPDIR=" + os.TempDir(), "NO_PROXY=127.0.0.1",
	}, extra...)
}
