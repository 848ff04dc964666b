package httpx

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// tcpClosed is the state of a connection that was reset (TCP_CLOSE in Linux).
const tcpClosed = 7

// acknowledged asks the kernel whether the peer has acknowledged all that was sent. over
// is false as long as neither an acknowledgment nor a reset has arrived.
func acknowledged(conn net.Conn) (taken, over bool) {
	sc, ok := conn.(syscall.Conn)
	if !ok {
		return true, true
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return false, true // closed
	}
	var info *unix.TCPInfo
	if ctl := raw.Control(func(fd uintptr) { info, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) }); ctl != nil {
		return false, true
	}
	switch {
	case err != nil:
		return true, true // no TCP
	case info.State == tcpClosed:
		return false, true
	}
	taken = info.Unacked == 0 && info.Notsent_bytes == 0
	return taken, taken
}
