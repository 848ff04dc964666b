package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// ticks is the number of clock ticks of a second in /proc, on every common Linux.
const ticks = 100

// stat is what /proc tells about a process. All fields are 0 if it is unknown.
type stat struct {
	parent      int
	own, reaped float64 // processor time in ticks, and that of children that have ended
}

func statOf(pid int) (s stat) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if pid == 0 || err != nil {
		return s
	}
	_, rest, _ := strings.Cut(string(text), ") ") // the name before may contain anything
	fields := strings.Fields(rest)
	if len(fields) < 15 {
		return s
	}
	number := func(i int) float64 {
		n, _ := strconv.ParseFloat(fields[i], 64) // a number by definition
		return n
	}
	return stat{parent: int(number(1)), own: number(11) + number(12), reaped: number(13) + number(14)}
}

// cpuTicks returns the processor time that a process has used, in ticks; 0 if unknown.
func cpuTicks(pid int) float64 { return statOf(pid).own }

// idle waits until a process has nothing to do, ten seconds at most.
func idle(ctx context.Context, pid int) {
	const pause, calm = 100 * time.Millisecond, 3
	if pid == 0 {
		return
	}
	used, still := cpuTicks(pid), 0
	for range 100 {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
		before := used
		used = cpuTicks(pid)
		if still++; used > before+1 {
			still = 0
		}
		if still == calm {
			return
		}
	}
}

// familyTicks is cpuTicks of a process and of all its children, also of those that have ended.
func familyTicks(pid int) float64 {
	s := statOf(pid)
	sum := s.own + s.reaped
	found, _ := filepath.Glob("/proc/[0-9]*") // the pattern is well formed
	for _, dir := range found {
		child, _ := strconv.Atoi(filepath.Base(dir)) // 0 is unknown
		if s := statOf(child); s.parent == pid {
			sum += s.own
		}
	}
	return sum
}

// postmaster returns the process whose children serve the connections to a database on this machine.
func postmaster(ctx context.Context, url string) (int, error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close(ctx) }()
	var backend int
	if err := conn.QueryRow(ctx, `SELECT pg_backend_pid()`).Scan(&backend); err != nil {
		return 0, err
	}
	parent := statOf(backend).parent
	if parent == 0 {
		return 0, fmt.Errorf("process %d of PostgreSQL is not in /proc", backend)
	}
	return parent, nil
}
