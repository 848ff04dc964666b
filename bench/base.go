package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// buildRevision builds another revision from an archive of it. A program that was built before is taken
// as it is. The present benchmark is also built there, for what is measured without a server; keys is
// empty if it does not compile with that revision.
func buildRevision(ctx context.Context, revision string) (parley, keys string, cleanup func(), err error) {
	if info, err := os.Stat(revision); err == nil && info.Mode().IsRegular() {
		return revision, "", func() {}, nil
	}
	top, err := git(ctx, "rev-parse", "--show-toplevel")
	if err != nil {
		return "", "", nil, err
	}
	commit, err := git(ctx, "rev-parse", "--verify", "--end-of-options", revision+"^{commit}")
	if err != nil {
		return "", "", nil, err
	}
	dir, err := os.MkdirTemp("", "parley-bench")
	if err != nil {
		return "", "", nil, err
	}
	cleanup = func() { _ = os.RemoveAll(dir) }
	defer func() {
		if err != nil {
			cleanup()
		}
	}()
	progress("building %s (%.12s)", revision, commit)
	src := filepath.Join(dir, "src")
	if err := unpack(ctx, top, commit, dir, src); err != nil {
		return "", "", nil, err
	}
	parley = filepath.Join(dir, "parley")
	if err := build(ctx, src, parley, "./cmd/parley"); err != nil {
		return "", "", nil, err
	}
	if err := os.RemoveAll(filepath.Join(src, "bench")); err != nil {
		return "", "", nil, err
	}
	if err := os.CopyFS(filepath.Join(src, "bench"), os.DirFS(filepath.Join(top, "bench"))); err != nil {
		return "", "", nil, err
	}
	keys = filepath.Join(dir, "bench")
	if failed := build(ctx, src, keys, "./bench"); failed != nil {
		progress("the key check is left out: this benchmark does not compile with %s: %v", revision, failed)
		keys = ""
	}
	return parley, keys, cleanup, nil
}

// unpack writes the files of a commit to src.
func unpack(ctx context.Context, top, commit, dir, src string) error {
	archive := filepath.Join(dir, "src.tar")
	if _, err := git(ctx, "-C", top, "archive", "--output", archive, commit); err != nil {
		return err
	}
	if err := os.Mkdir(src, 0o700); err != nil {
		return err
	}
	if out, err := exec.CommandContext(ctx, "tar", "-xf", archive, "-C", src).CombinedOutput(); err != nil {
		return fmt.Errorf("tar: %w\n%s", err, out)
	}
	return os.Remove(archive)
}

func git(ctx context.Context, args ...string) (string, error) {
	var stderr strings.Builder
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(string(out)), nil
}
