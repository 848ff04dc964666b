//go:build linux || darwin

package store

import "syscall"

// FreeBytes returns the space on the disk of a folder that this process may still use.
func FreeBytes(dir string) (uint64, bool) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return 0, false
	}
	return st.Bavail * uint64(st.Bsize), true
}
