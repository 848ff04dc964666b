//go:build !unix

package store

import (
	"fmt"
	"runtime"
)

// LockDir refuses: without a lock two servers could share a folder, and nobody has
// tested another lock here. The command line needs none.
func LockDir(dir, _ string) (release func(), err error) {
	return nil, fmt.Errorf("the data folder %s cannot be locked on %s; run the server on Linux or macOS, or with --database", dir, runtime.GOOS)
}

// tryLock always succeeds: no server can run here.
func tryLock(string, string) (release func(), by string, err error) { return func() {}, "", nil }
