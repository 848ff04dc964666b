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

// LockDir makes this process the one server of a data folder. The lock goes with
// the process, however it ends. The file says who holds it, in the words of holder.
func LockDir(dir, holder string) (release func(), err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create the data folder: %w", err)
	}
	release, by, err := tryLock(dir, holder)
	if err != nil {
		return nil, fmt.Errorf("lock the data folder: %w", err)
	}
	if release == nil {
		return nil, fmt.Errorf("another parley server is using the data folder %s (%s); stop it, or choose another folder with --data", dir, by)
	}
	return release, nil
}

// tryLock takes the lock of a folder; if another process has it, release is nil and
// by says who.
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
	// For the operator only; the lock is what counts.
	_ = f.Truncate(0)
	_, _ = f.WriteAt([]byte(holder+"\n"), 0)
	return func() { _ = f.Close() }, "", nil
}
