//go:build !linux

package store

import (
	"syscall"
	"time"
)

// limitUnacknowledged is not supported here; the limit of the kernel applies.
func limitUnacknowledged(time.Duration) func(network, address string, c syscall.RawConn) error {
	return nil
}
