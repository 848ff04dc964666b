// Command fleet shows a fleet of agents that improves itself. It needs no model and no key:
//
//	go run ./examples/fleet
//
// A shop takes orders. Three agents work on each: intake (Python) reads it, pricing (TypeScript)
// prices it, and dispatch (Go) plans its way. Intake does not know pounds. It reports what got in its
// way each time; the third report files a proposal, the other agents vote, and you decide in the
// dashboard. The approved proposal comes back to intake as a task, and intake fixes its handbook: from
// then on, orders in pounds pass.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var s settings
	flag.StringVar(&s.listen, "listen", "127.0.0.1:8137", "address of the server")
	flag.DurationVar(&s.patience, "decide", time.Minute,
		"approve the proposal after this time if nobody does in the dashboard; 0: never")
	flag.DurationVar(&s.pause, "pause", 2*time.Second, "time between two orders")
	flag.BoolVar(&s.once, "once", false, "end when the fleet has improved")
	flag.Parse()
	if err := run(ctx, s); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "fleet:", err)
		os.Exit(1)
	}
}

// settings are the flags.
type settings struct {
	listen          string
	patience, pause time.Duration
	once            bool
}

func run(ctx context.Context, s settings) error {
	dir, err := os.MkdirTemp("", "parley-fleet-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx, cancel := context.WithCancel(ctx)
	f := &fleet{dir: dir}
	defer f.wg.Wait()
	defer cancel() // first

	if err := prepared(s.listen); err != nil {
		return err
	}
	say("building the server")
	if err := f.build(ctx); err != nil {
		return err
	}
	site, err := f.startServer(ctx, s.listen)
	if err != nil {
		return err
	}
	say("installing the agents in Python and TypeScript")
	if err := f.startAgents(ctx, site); err != nil {
		return err
	}
	say("the agents are at work; watch them in the dashboard:\n\n    %s\n", site.link)
	return newShop(s, site).sell(ctx)
}

// prepared reports what is missing before anything takes long.
func prepared(listen string) error {
	for _, program := range []string{"python3", "node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("%s is not installed", program)
		}
	}
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return fmt.Errorf("%w; choose another address with -listen", err)
	}
	return l.Close()
}

// say prints a line of the story.
func say(format string, args ...any) {
	fmt.Printf("%s  %s\n", time.Now().Format("15:04:05"), fmt.Sprintf(format, args...))
}
