//go:build !linux && !darwin

package store

// FreeBytes returns false: it is unknown how to find out.
func FreeBytes(string) (uint64, bool) { return 0, false }
