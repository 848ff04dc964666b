// Command parley is the server and the command line of Parley. Run parley --help.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/parley-dev/parley/internal/cli"
)

func main() {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup ignores it, so that a program outlives its terminal
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	// The first signal asks the command to stop. It also restores the default behaviour, so
	// that a second one ends the program at once.
	context.AfterFunc(ctx, stop)
	code := cli.Main(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
