package httpx

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// tcpClosed is the state of a connection that was reset (TCP_CLOSE in Linux).
const tcpClosed = 7

// acknowledged asks the kernel what the peer has acknowledged of what was sent.
func acknowledged(conn net.Conn) delivery {
	sc, ok := conn.(syscall.Conn)
	if !ok {
		return delivery{taken: true, over: true}
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return delivery{over: true} // closed
	}
	var info *unix.TCPInfo
	if ctl := raw.Control(func(fd uintptr) { info, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) }); ctl != nil {
		return delivery{over: true}
	}
	switch {
	case err != nil:
		return delivery{taken: true, over: true} // no TCP
	case info.State == tcpClosed:
		return delivery{over: true}
	}
	taken := info.Unacked == 0 && info.Notsent_bytes == 0
	return delivery{acked: info.Bytes_acked, taken: taken, over: taken}
}
