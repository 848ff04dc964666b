package store

import (
	"net"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// leash limits how long a connection is used at a time, and ends the use if the database does
// not respond. A context for each statement would do the same, but statements are so short that
// creating a context would take a good part of their time.
type leash struct {
	conn net.Conn

	mu    sync.Mutex
	until time.Time // zero if the connection is not in use
	fault string    // why the use was ended; empty if it was not
}

const (
	leashKey = "leash" // the key of the leash in the connection's custom data
	// leashEvery is the precision of the limits.
	leashEvery = 100 * time.Millisecond
)

// hold begins the use of the connection.
func (l *leash) hold(until time.Time) {
	l.mu.Lock()
	l.until, l.fault = until, ""
	l.mu.Unlock()
}

// drop ends the use of the connection, which can be used again unless it is closed.
func (l *leash) drop(closed bool) {
	l.mu.Lock()
	if l.fault != "" && !closed { // the use ended just before the leash was pulled
		_ = l.conn.SetDeadline(time.Time{})
	}
	l.until = time.Time{}
	l.mu.Unlock()
}

// pull makes the current use of the connection fail, if there is one.
func (l *leash) pull(fault string, due func(until time.Time) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.until.IsZero() || l.fault != "" || !due(l.until) {
		return
	}
	l.fault = fault
	_ = l.conn.SetDeadline(time.Now())
}

// pulled returns why the use of the connection was ended, or "" if it was not.
func (l *leash) pulled() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fault
}

// leashes holds the leashes of all connections in the pools.
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

// pullAll ends the use of all connections, because the database does not respond.
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
