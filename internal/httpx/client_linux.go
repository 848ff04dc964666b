package httpx

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// TCP states in Linux: the connection was reset (TCP_CLOSE), and the peer has closed its side
// (TCP_CLOSE_WAIT).
const (
	tcpClosed    = 7
	tcpCloseWait = 8
)

// finished reports whether the peer has closed its side of the connection.
func finished(conn net.Conn) bool {
	info, err := infoOf(conn)
	return err == nil && info != nil && (info.State == tcpClosed || info.State == tcpCloseWait)
}

// infoOf asks the kernel about a connection. It returns nil if it is not a TCP connection.
func infoOf(conn net.Conn) (info *unix.TCPInfo, err error) {
	sc, ok := conn.(syscall.Conn)
	if !ok {
		return nil, nil
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return nil, err // closed
	}
	var none error
	if err := raw.Control(func(fd uintptr) {
		info, none = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
	}); err != nil {
		return nil, err
	}
	if none != nil {
		return nil, nil //nolint:nilerr // no TCP
	}
	return info, nil
}

// acknowledged asks the kernel how much of the sent data the peer has acknowledged.
func acknowledged(conn net.Conn) delivery {
	info, err := infoOf(conn)
	switch {
	case err != nil || info != nil && info.State == tcpClosed:
		return delivery{over: true}
	case info == nil:
		return delivery{taken: true, over: true}
	}
	taken := info.Unacked == 0 && info.Notsent_bytes == 0
	return delivery{acked: info.Bytes_acked, taken: taken, over: taken}
}
