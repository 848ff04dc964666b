//go:build !linux

package store

import (
	"syscall"
	"time"
)

// limitUnacknowledged has no counterpart here; the kernel's own limit applies.
func limitUnacknowledged(time.Duration) func(network, address string, c syscall.RawConn) error {
	return nil
}
