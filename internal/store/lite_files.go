package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// createPrivate makes an empty file that only its owner can use, unless it exists. An
// empty file is a new database to SQLite, which gives the files beside it (-wal, -shm)
// the mode of the database. Left to itself it would follow the umask.
func createPrivate(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// Exposed tells of what other users of the machine can use of a data folder, in
// sentences for the operator. The modes of what existed before are never changed: the
// folder may be shared on purpose.
func Exposed(dir string) []string {
	if runtime.GOOS == "windows" { // has no such modes
		return nil
	}
	var out []string
	for _, c := range []struct{ path, mode string }{
		{dir, "700"},
		{filepath.Join(dir, fileName), "600"},
		{filepath.Join(dir, fileName+"-wal"), "600"},
		{filepath.Join(dir, fileName+"-shm"), "600"},
		{filepath.Join(dir, lockName), "600"},
	} {
		if st, err := os.Stat(c.path); err == nil && st.Mode().Perm()&0o077 != 0 {
			out = append(out, fmt.Sprintf("other users of this machine have rights on %s (mode %04o); if that is not intended, run: chmod %s %s",
				c.path, st.Mode().Perm(), c.mode, c.path))
		}
	}
	return out
}
