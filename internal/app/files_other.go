//go:build !unix

package app

// maxFiles returns the limit of open files, or 0 if it is unknown.
func maxFiles() int { return 0 }

// syncFolder does nothing: the system offers no way to do it.
func syncFolder(string) error { return nil }
