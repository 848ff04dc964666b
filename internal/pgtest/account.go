package pgtest

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
)

// account is who runs the server; nil means this process's own user.
type account struct{ uid, gid int }

// unprivileged finds whom to run as: PostgreSQL refuses to run as root.
func unprivileged() (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.Atoi(u.Uid)
		gid, gidErr := strconv.Atoi(u.Gid)
		if uidErr == nil && gidErr == nil {
			return &account{uid: uid, gid: gid}, nil
		}
	}
	return nil, errors.New("pgtest: PostgreSQL does not run as root, and there is no user postgres or nobody to run it as")
}

// tempDir makes a folder that the account owns. Its path is kept short because
// that of a Unix socket may have about 100 characters.
func (a *account) tempDir() (string, error) {
	if a == nil {
		return os.MkdirTemp("", "pg")
	}
	// Root's own TMPDIR may be closed to others.
	dir, err := os.MkdirTemp("/tmp", "pg")
	if err != nil {
		return "", err
	}
	if err := os.Chown(dir, a.uid, a.gid); err != nil {
		return "", errors.Join(fmt.Errorf("hand %s to another user: %w", dir, err), os.Remove(dir))
	}
	return dir, nil
}
