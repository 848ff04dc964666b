package app

import (
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// limitUnacknowledged makes connections end that have not acknowledged what was sent
// for so long. It is set on the listening socket; accepted ones inherit it.
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

// bytesWaiting is how many bytes have come on a connection that were not read yet.
func bytesWaiting(c *net.TCPConn) (n int) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
	return n
}
