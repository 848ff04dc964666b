package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// createPrivate creates an empty file that only its owner can use, unless it exists. SQLite
// treats an empty file as a new database, and gives the files beside it (-wal, -shm) the mode
// of the database. On its own it would follow the umask.
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

// Exposed returns a warning for the operator for each file of a data folder that other users
// of the machine can access. It never changes the mode of an existing file: the folder may be
// shared on purpose.
func Exposed(dir string) []string {
	if runtime.GOOS == "windows" { // no such modes
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
			out = append(out, fmt.Sprintf(
				"other users of this machine have rights on %s (mode %04o); if that is not intended, run: chmod %s %s",
				c.path, st.Mode().Perm(), c.mode, c.path))
		}
	}
	return out
}
