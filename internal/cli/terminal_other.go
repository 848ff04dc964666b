//go:build !unix

package cli

import "os"

// terminalWidth treats every file as one that is not a terminal.
func terminalWidth(*os.File) (int, bool) { return 0, false }
