package store

import (
	"errors"
	"sync"
	"time"
)

// avoidFor is how long a host that did not respond is skipped.
const avoidFor = 10 * time.Second

// pgHosts remembers which of several hosts do not respond while another one does. The driver
// tries the hosts in the order of the URL: with a lost host in front, every new connection would
// take connectTimeout.
type pgHosts struct {
	mu    sync.Mutex
	until map[string]time.Time // by host and port
}

var errAvoided = errors.New("the host did not respond recently; it is tried again soon")

// pass reports whether to skip a host. It lets one attempt through from time to time.
func (h *pgHosts) pass(addr string, now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	until, avoided := h.until[addr]
	switch {
	case !avoided:
		return false
	case now.Before(until):
		return true
	}
	h.until[addr] = now.Add(avoidFor)
	return false
}

// avoid marks a host that took too long before another one responded.
func (h *pgHosts) avoid(addr string, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.until == nil {
		h.until = map[string]time.Time{}
	}
	h.until[addr] = now.Add(avoidFor)
}

// good marks a host that responded.
func (h *pgHosts) good(addr string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.until, addr)
}

// attempt is one connection attempt, which tries one host after the other.
type attempt struct {
	hosts *pgHosts
	addr  string // the host that is tried now
	since time.Time
	slow  []string // hosts that took too long
}

// try records that the next host is tried.
func (a *attempt) try(addr string, now time.Time) error {
	if a.hosts.pass(addr, now) {
		return errAvoided
	}
	a.end(now)
	a.addr, a.since = addr, now
	return nil
}

func (a *attempt) end(now time.Time) {
	if a.addr != "" && now.Sub(a.since) >= connectTimeout/2 {
		a.slow = append(a.slow, a.addr)
	}
}

// succeed records that the current host has responded.
func (a *attempt) succeed(now time.Time) {
	for _, addr := range a.slow {
		if addr != a.addr {
			a.hosts.avoid(addr, now)
		}
	}
	a.hosts.good(a.addr)
}
