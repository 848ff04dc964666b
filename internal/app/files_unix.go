//go:build unix

package app

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"syscall"
)

// maxFiles returns the limit of open files, or 0 if it is unknown. It is the hard limit,
// because the Go runtime raises the soft limit to it.
func maxFiles() int {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil || l.Cur > math.MaxInt32 {
		return 0
	}
	return int(l.Cur) // bounded above
}

// syncFolder makes the name of a new file durable.
func syncFolder(path string) error {
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
