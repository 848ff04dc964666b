package app

import (
	"log/slog"
	"net"
	"os"
)

// States for the service manager; see sd_notify(3).
const (
	serviceReady    = "READY=1"
	serviceStopping = "STOPPING=1"
)

// notifyService tells systemd, if it started this process as a service of Type=notify, what the
// server does. Without systemd it does nothing.
func notifyService(log *slog.Logger, state string) {
	socket := os.Getenv("NOTIFY_SOCKET")
	if socket == "" {
		return
	}
	// A name that starts with @ is in the abstract namespace, as package net has it.
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err == nil {
		_, err = conn.Write([]byte(state))
		_ = conn.Close()
	}
	if err != nil {
		log.Warn("cannot tell systemd the state of the server", "state", state, "error", err)
	}
}
