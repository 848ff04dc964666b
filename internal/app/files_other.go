//go:build !unix

package app

// maxFiles is how many files the process may have open; 0: no limit is known.
func maxFiles() int { return 0 }
