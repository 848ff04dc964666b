//go:build !linux

package app

import (
	"net"
	"syscall"
	"time"
)

// limitUnacknowledged has no counterpart here; the kernel's own limit applies.
func limitUnacknowledged(time.Duration) func(network, address string, c syscall.RawConn) error {
	return nil
}

// bytesWaiting is not known here.
func bytesWaiting(*net.TCPConn) int { return 0 }
