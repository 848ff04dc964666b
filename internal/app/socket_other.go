//go:build !linux

package app

import (
	"net"
	"syscall"
	"time"
)

// limitUnacknowledged does nothing on this system; the limit of the kernel applies.
func limitUnacknowledged(time.Duration) func(network, address string, c syscall.RawConn) error {
	return nil
}

// bytesWaiting returns 0, because this system does not tell.
func bytesWaiting(*net.TCPConn) int { return 0 }
