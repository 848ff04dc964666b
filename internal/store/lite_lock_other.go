//go:build !unix

package store

import (
	"fmt"
	"runtime"
)

// LockDir returns an error: without a lock two servers could share a folder, and no other
// kind of lock is tested here. The command line does not need the lock.
func LockDir(dir, _ string) (release func(), err error) {
	return nil, fmt.Errorf("the data folder %s cannot be locked on %s; "+
		"run the server on Linux or macOS, or with --database", dir, runtime.GOOS)
}

// InUse always returns false: no server can run here.
func InUse(string) bool { return false }

// tryLock always succeeds: no server can run here.
func tryLock(string, string) (release func(), by string, err error) { return func() {}, "", nil }
