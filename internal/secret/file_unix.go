//go:build unix

package secret

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// exposed reports whether users other than the owner can read a file. A group may read a file of
// root, because that is how Kubernetes and others hand files to a service.
func exposed(st fs.FileInfo) bool {
	allowed := fs.FileMode(0o600)
	if sys, ok := st.Sys().(*syscall.Stat_t); ok && sys.Uid == 0 && os.Geteuid() != 0 {
		allowed = 0o640
	}
	return st.Mode().Perm()&^allowed&0o077 != 0
}

// keepOwner gives a file the owner and the mode of another one.
func keepOwner(f *os.File, like fs.FileInfo) error {
	sys, ok := like.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	now, err := f.Stat()
	if err != nil {
		return err
	}
	if mine, ok := now.Sys().(*syscall.Stat_t); ok && (mine.Uid != sys.Uid || mine.Gid != sys.Gid) {
		if err := f.Chown(int(sys.Uid), int(sys.Gid)); err != nil {
			return fmt.Errorf("give it the owner of the old one, without which the server could not read it: %w", err)
		}
	}
	return f.Chmod(like.Mode().Perm())
}

// lock excludes other processes from editing a file until unlock. The file is replaced by an edit,
// so the lock is on its folder.
func lock(path string) (unlock func(), err error) {
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(d.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return func() { _ = d.Close() }, nil
}

// syncFolder makes the name of a new file durable.
func syncFolder(path string) error {
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
