package store

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// limitUnacknowledged closes a connection whose peer has not acknowledged sent data for so long.
func limitUnacknowledged(d time.Duration) func(network, address string, c syscall.RawConn) error {
	return func(_, _ string, c syscall.RawConn) error {
		var failed error
		if err := c.Control(func(fd uintptr) {
			failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(d.Milliseconds()))
		}); err != nil {
			return err
		}
		return failed
	}
}
