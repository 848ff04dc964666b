//go:build !unix

package secret

import (
	"io/fs"
	"os"
)

// exposed knows nothing of the access rights of this system.
func exposed(fs.FileInfo) bool { return false }

func keepOwner(*os.File, fs.FileInfo) error { return nil }

// lock does nothing: run one command at a time.
func lock(string) (unlock func(), err error) { return func() {}, nil }

// syncFolder does nothing: the system offers no way to do it.
func syncFolder(string) error { return nil }
