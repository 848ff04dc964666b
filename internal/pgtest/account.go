package pgtest

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
)

// account is the user that runs the server; nil means the current user.
type account struct{ uid, gid int }

// unprivileged finds a user other than root: PostgreSQL refuses to run as root.
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

// tempDir creates a directory that the account owns. The path is short because the path of a Unix
// socket is limited to about 100 characters.
func (a *account) tempDir() (string, error) {
	if a == nil {
		return os.MkdirTemp("", "pg")
	}
	// TMPDIR of root may be closed to other users.
	dir, err := os.MkdirTemp("/tmp", "pg")
	if err != nil {
		return "", err
	}
	if err := os.Chown(dir, a.uid, a.gid); err != nil {
		return "", errors.Join(fmt.Errorf("hand %s to another user: %w", dir, err), os.Remove(dir))
	}
	return dir, nil
}
