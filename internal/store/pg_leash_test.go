package store

import (
	"context"
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/pgtest"
)

// If the database does not respond, its own deadlines do not help.
func TestAReadWithoutAnAnswerHasADeadline(t *testing.T) {
	t.Parallel()
	db := pgtest.URL(t)
	proxy := pgtest.NewProxy(t, db)
	s := openAt(t, Options{URL: proxy.URL(t, db), StatementTimeout: 200 * time.Millisecond})
	if err := s.readEpoch(t.Context()); err != nil {
		t.Fatal(err)
	}
	proxy.Silence()
	wantUnavailable(t, s.readEpoch(t.Context()), faultSlow)
	proxy.Resume()
	until(t, "reads succeed again", func() bool { return s.readEpoch(t.Context()) == nil })
}

// A caller that cancels must not wait for a connection or for a response.
func TestAReadEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	s := openAt(t, Options{URL: pgtest.URL(t), ReadConns: 1, AcquireTimeout: time.Hour, StatementTimeout: time.Hour})
	s.eng.(*pg).numberer.close() // it would wait for the connection, too
	s.search.close()
	waits := s.eng.(*pg).pool.waits.Load()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 2)
	sleep := func() {
		var done string
		_, err := one(ctx, s.eng, []any{&done}, `SELECT pg_sleep(3600)::text`)
		ended <- err
	}
	go sleep()
	go sleep() // waits for the only connection
	until(t, "a read waits for the connection", func() bool { return s.eng.(*pg).pool.waits.Load() == waits+1 })
	cancel()
	for range 2 {
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want it canceled", err)
		}
	}
	until(t, "the connection is free again", func() bool { return s.readEpoch(t.Context()) == nil })
}

func TestALeashIsPulledOnlyWhileItIsHeld(t *testing.T) {
	t.Parallel()
	conn, peer := net.Pipe()
	defer func() { _, _ = conn.Close(), peer.Close() }()
	l := &leash{conn: conn}
	always := func(time.Time) bool { return true }
	read := func() error {
		_, err := conn.Read(make([]byte, 1))
		return err
	}
	answered := func() {
		t.Helper()
		go func() { _, _ = peer.Write([]byte{1}) }()
		if err := read(); err != nil {
			t.Error(err)
		}
	}
	l.pull(faultSilent, always)
	answered()
	l.hold(time.Now().Add(time.Hour))
	l.pull(faultSlow, time.Now().After)
	answered()
	l.pull(faultSilent, always)
	if err := read(); !errors.Is(err, os.ErrDeadlineExceeded) || l.pulled() != faultSilent {
		t.Errorf("%v, %q, want the read to end", err, l.pulled())
	}
	l.drop(false)
	answered() // it was not closed, so the next user gets it
	l.hold(time.Now().Add(-time.Second))
	if l.pulled() != "" {
		t.Errorf("fault of the next user = %q, want none", l.pulled())
	}
	l.pull(faultSlow, time.Now().After)
	if err := read(); !errors.Is(err, os.ErrDeadlineExceeded) || l.pulled() != faultSlow {
		t.Errorf("%v, %q, want the read to end at its deadline", err, l.pulled())
	}
}
