//go:build unix

package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// LockDir makes this process the only server of a data folder. The operating system releases
// the lock when the process ends. The lock file contains holder, for the operator.
func LockDir(dir, holder string) (release func(), err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create the data folder: %w", err)
	}
	release, by, err := tryLock(dir, holder)
	if err != nil {
		return nil, fmt.Errorf("lock the data folder: %w", err)
	}
	if release == nil {
		return nil, fmt.Errorf("another parley server is using the data folder %s (%s); "+
			"stop it, or choose another folder with --data", dir, by)
	}
	return release, nil
}

// InUse reports whether a server uses the data folder.
func InUse(dir string) bool {
	f, err := os.Open(filepath.Join(dir, lockName))
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	return errors.Is(syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}

// tryLock tries to lock a folder. If another process holds the lock, release is nil and by
// describes that process.
func tryLock(dir, holder string) (release func(), by string, err error) {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, "", err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		said, _ := io.ReadAll(io.LimitReader(f, 200))
		_ = f.Close()
		if by = strings.TrimSpace(string(said)); by == "" {
			by = "an unknown process"
		}
		return nil, by, nil
	}
	if err != nil {
		_ = f.Close()
		return nil, "", err
	}
	// The text only informs the operator; flock is the lock.
	_ = f.Truncate(0)
	_, _ = f.WriteAt([]byte(holder+"\n"), 0)
	return func() { _ = f.Close() }, "", nil
}
