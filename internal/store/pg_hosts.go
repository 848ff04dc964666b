package store

import (
	"errors"
	"sync"
	"time"
)

// avoidFor is how long a host that did not respond is passed over.
const avoidFor = 10 * time.Second

// pgHosts remembers which of several hosts do not respond, while another one does.
// The driver tries the hosts in the order of the URL: with a lost one in front, every
// new connection would take connectTimeout.
type pgHosts struct {
	mu    sync.Mutex
	until map[string]time.Time // by address
}

var errAvoided = errors.New("the host did not respond lately, and is tried again soon")

// pass reports whether to pass over a host. From time to time one attempt is let
// through.
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

// avoid is told of a host that took too long before another one responded.
func (h *pgHosts) avoid(addr string, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.until == nil {
		h.until = map[string]time.Time{}
	}
	h.until[addr] = now.Add(avoidFor)
}

// good is told of a host that responded.
func (h *pgHosts) good(addr string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.until, addr)
}

// attempt is one connection attempt, host after host.
type attempt struct {
	hosts *pgHosts
	addr  string // that is tried now
	since time.Time
	slow  []string // that took too long
}

// try notes that the next host is tried.
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

// succeed notes that the host that is tried has responded.
func (a *attempt) succeed(now time.Time) {
	for _, addr := range a.slow {
		if addr != a.addr {
			a.hosts.avoid(addr, now)
		}
	}
	a.hosts.good(a.addr)
}
