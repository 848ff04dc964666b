package app

import (
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// limitUnacknowledged closes connections whose peer has not acknowledged data for d. It sets
// the option on the listening socket; accepted sockets inherit it.
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

// bytesWaiting returns the number of received bytes that were not read yet.
func bytesWaiting(c *net.TCPConn) (n int) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
	return n
}
