//go:build unix

package app

import (
	"math"
	"syscall"
)

// maxFiles is how many files the process may have open, the hard limit: the runtime
// has raised the soft one to it. 0: no limit is known.
func maxFiles() int {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil || l.Cur > math.MaxInt32 {
		return 0
	}
	return int(l.Cur) // bounded above
}
