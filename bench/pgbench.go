package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
)

// addPgbench measures PostgreSQL's own benchmark on the same server (the three statements of
// "simple update") and adds lines that compare tasks with it.
func addPgbench(ctx context.Context, set settings, url string, lines []line) ([]line, error) {
	progress("postgres: pgbench")
	program, err := findPgbench()
	if err != nil {
		return nil, err
	}
	if out, err := exec.CommandContext(ctx, program, "-i", "-q", "-s", "10", url).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("pgbench -i: %w\n%s", err, out)
	}
	var rates []float64
	for range set.rounds {
		out, err := exec.CommandContext(ctx, program, "-n", "-N", "-M", "prepared",
			"-c", strconv.Itoa(writers/2), "-j", "2",
			"-T", strconv.Itoa(max(1, int(set.duration.Seconds()))), url).CombinedOutput()
		if err != nil {
			return nil, fmt.Errorf("pgbench: %w\n%s", err, out)
		}
		m := tpsPattern.FindSubmatch(out)
		if m == nil {
			return nil, fmt.Errorf("no tps in the output of pgbench:\n%s", out)
		}
		tps, err := strconv.ParseFloat(string(m[1]), 64)
		if err != nil {
			return nil, err
		}
		rates = append(rates, tps)
	}
	limit := median(rates)
	for _, l := range lines {
		switch l.Name {
		case taskSends:
			l.Name = taskPG
		case taskWork:
			l.Name = taskWorkPG
		default:
			continue
		}
		l.LimitRate, l.Ratio = limit, l.Rate/limit
		lines = append(lines, l)
	}
	return lines, nil
}

var tpsPattern = regexp.MustCompile(`tps = ([0-9.]+)`)

// findPgbench looks in PATH and in the folders of common packages.
func findPgbench() (string, error) {
	if path, err := exec.LookPath("pgbench"); err == nil {
		return path, nil
	}
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin/pgbench", "/usr/pgsql-*/bin/pgbench", "/opt/homebrew/opt/postgresql@*/bin/pgbench",
	} {
		if found, _ := filepath.Glob(pattern); len(found) > 0 { // the patterns are constant and well formed
			return found[len(found)-1], nil
		}
	}
	return "", errors.New("pgbench is not installed; it comes with PostgreSQL's contrib package")
}
