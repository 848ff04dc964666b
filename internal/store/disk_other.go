//go:build !linux && !darwin

package store

// freeBytes returns false: it is unknown how to find out.
func freeBytes(string) (uint64, bool) { return 0, false }
