package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/parley-dev/parley/internal/servertest"
)

// buildParley builds the program that is measured.
func buildParley(ctx context.Context) (program string, cleanup func(), err error) {
	dir, err := os.MkdirTemp("", "parley-bench")
	if err != nil {
		return "", nil, err
	}
	cleanup = func() { _ = os.RemoveAll(dir) }
	program = filepath.Join(dir, "parley")
	progress("building parley")
	if err := build(ctx, "", program, "github.com/parley-dev/parley/cmd/parley"); err != nil {
		cleanup()
		return "", nil, err
	}
	return program, cleanup, nil
}

// build builds a package in the folder dir.
func build(ctx context.Context, dir, program, pkg string) error {
	// Without paths in the binary, builds in another folder use the build cache too.
	cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-trimpath", "-o", program, pkg)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", pkg, err, out)
	}
	return nil
}

// runRole runs this program in another role and returns its output.
func runRole(ctx context.Context, role string, in []byte) ([]byte, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return runRoleOf(ctx, self, role, in)
}

func runRoleOf(ctx context.Context, program, role string, in []byte) ([]byte, error) {
	cmd := exec.CommandContext(ctx, program, role)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), os.Stderr
	return cmd.Output()
}

// process is a server in its own process.
type process struct {
	*servertest.Process
	addr string // host:port
}

// startServer starts a server that prints its URL, and waits until it is ready.
func startServer(ctx context.Context, in io.Reader, ready, program string, args ...string) (*process, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdin, cmd.Env = in, servertest.Environ()
	p, err := servertest.Start(cmd, ready)
	if err != nil {
		return nil, err
	}
	return &process{Process: p, addr: strings.TrimPrefix(p.URL, "http://")}, nil
}
