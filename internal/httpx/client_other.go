//go:build !linux

package httpx

import "net"

// acknowledged cannot tell: a write that succeeded counts.
func acknowledged(net.Conn) delivery { return delivery{taken: true, over: true} }
