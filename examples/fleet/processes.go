package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// fleet runs the server and the agents as processes.
type fleet struct {
	dir string // for everything that they write
	wg  sync.WaitGroup
}

// start runs a program until ctx ends, and prints the lines that it writes to stderr under its name, and
// those to stdout unless cmd says where they go. ended is closed when the program has ended.
func (f *fleet) start(ctx context.Context, name string, cmd *exec.Cmd) (ended <-chan struct{}, err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stderr = w
	if cmd.Stdout == nil {
		cmd.Stdout = w
	}
	err = cmd.Start()
	_ = w.Close()
	if err != nil {
		_ = r.Close()
		return nil, err
	}
	f.wg.Go(func() {
		for lines := bufio.NewScanner(r); lines.Scan(); {
			say("%-9s %s", name, lines.Text())
		}
		_ = r.Close()
	})
	over := make(chan struct{})
	f.wg.Go(func() {
		_ = cmd.Wait() // the program has said why
		close(over)
	})
	f.wg.Go(func() {
		select {
		case <-ctx.Done():
			_ = cmd.Process.Signal(syscall.SIGTERM)
		case <-over:
			if ctx.Err() == nil {
				say("%s has ended; stop the fleet with Ctrl-C", name)
			}
		}
	})
	return over, nil
}

// output runs a command and returns what it prints.
func output(cmd *exec.Cmd) (string, error) {
	var stderr strings.Builder
	cmd.Stderr = &stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // so that it removes its files
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, stderr.String())
	}
	return strings.TrimSpace(string(out)), nil
}
