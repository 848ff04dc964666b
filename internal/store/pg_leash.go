package store

import (
	"net"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// leash bounds how long a connection is used at once, and ends its use when the
// database does not respond. A context for every statement would do the same, but a
// statement is so short that making one costs a good part of its time.
type leash struct {
	conn net.Conn

	mu    sync.Mutex
	until time.Time // zero: the connection is not in use
	fault string    // why its use was ended; empty: it was not
}

const (
	leashKey = "leash" // where a connection keeps its leash
	// leashEvery is how exact the bounds are.
	leashEvery = 100 * time.Millisecond
)

// hold begins the use of the connection.
func (l *leash) hold(until time.Time) {
	l.mu.Lock()
	l.until, l.fault = until, ""
	l.mu.Unlock()
}

// drop ends the use of the connection. It may be used again unless it is closed.
func (l *leash) drop(closed bool) {
	l.mu.Lock()
	if l.fault != "" && !closed { // it was done just before
		_ = l.conn.SetDeadline(time.Time{})
	}
	l.until = time.Time{}
	l.mu.Unlock()
}

// pull makes whoever waits for the connection fail, if it is in use.
func (l *leash) pull(fault string, due func(until time.Time) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.until.IsZero() || l.fault != "" || !due(l.until) {
		return
	}
	l.fault = fault
	_ = l.conn.SetDeadline(time.Now())
}

// pulled says why the use of the connection was ended; empty: it was not.
func (l *leash) pulled() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fault
}

// leashes are those of all connections in the pools.
type leashes struct {
	mu   sync.Mutex
	all  map[*leash]struct{}
	stop chan struct{}
	done sync.WaitGroup
}

func newLeashes() *leashes {
	s := &leashes{all: map[*leash]struct{}{}, stop: make(chan struct{})}
	s.done.Go(s.run)
	return s
}

func (s *leashes) add(c *pgx.Conn) {
	l := &leash{conn: c.PgConn().Conn()}
	c.PgConn().CustomData()[leashKey] = l
	s.mu.Lock()
	s.all[l] = struct{}{}
	s.mu.Unlock()
}

func (s *leashes) remove(c *pgx.Conn) {
	s.mu.Lock()
	delete(s.all, leashOf(c))
	s.mu.Unlock()
}

func leashOf(c *pgx.Conn) *leash {
	l, _ := c.PgConn().CustomData()[leashKey].(*leash)
	return l
}

func (s *leashes) run() {
	tick := time.NewTicker(leashEvery)
	defer tick.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-tick.C:
		}
		now := time.Now()
		s.pull(faultSlow, now.After)
	}
}

// pullAll ends the use of all connections: the database does not respond.
func (s *leashes) pullAll() { s.pull(faultSilent, func(time.Time) bool { return true }) }

func (s *leashes) pull(fault string, due func(until time.Time) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for l := range s.all {
		l.pull(fault, due)
	}
}

func (s *leashes) close() {
	close(s.stop)
	s.done.Wait()
}
