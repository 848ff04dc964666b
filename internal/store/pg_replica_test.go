//go:build unix

package store

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/backup"
	"github.com/parley-dev/parley/internal/pgtest"
)

// onReplica reports where a read that may be stale runs.
func onReplica(t *testing.T, s *Store) (replica bool) {
	t.Helper()
	err := s.stale(t.Context(), "a", func(ctx context.Context, r reader) error {
		_, err := one(ctx, r, []any{&replica}, `SELECT pg_is_in_recovery()`)
		return err
	})
	if err != nil {
		t.Errorf("a read that may be stale: %v", err)
	}
	return replica
}

// TestStaleReadsUseTheReplica has a replica that falls behind, catches up and stops.
func TestStaleReadsUseTheReplica(t *testing.T) {
	t.Parallel()
	pair := pgtest.StartPair(t)
	pair.Primary.Exec(t, `ALTER SYSTEM SET synchronous_standby_names = ''`)
	pair.Primary.Exec(t, `SELECT pg_reload_conf()`)
	s, err := Open(t.Context(), Options{URL: pair.Primary.URL(), ReplicaURL: pair.Replica.URL(), Node: "n1"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	wait := func(want bool, when string) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); onReplica(t, s) != want; time.Sleep(50 * time.Millisecond) {
			if _, err := s.Beat(t.Context()); err != nil {
				t.Fatal(err)
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: reads use the replica: %t", when, !want)
			}
		}
	}
	wait(true, "at first")
	primary := true
	if err := s.slow(t.Context(), "a", func(ctx context.Context, r reader) error {
		_, err := one(ctx, r, []any{&primary}, `SELECT NOT pg_is_in_recovery()`)
		return err
	}); err != nil || !primary {
		t.Errorf("a slow read that must not be stale used the replica, or failed: %v", err)
	}
	backUpFrom(t, pair.Replica.URL())

	pair.Replica.Exec(t, `SELECT pg_wal_replay_pause()`)
	wait(false, "far behind")
	pair.Replica.Exec(t, `SELECT pg_wal_replay_resume()`)
	wait(true, "after it caught up")
	pair.Replica.Stop(t)
	wait(false, "stopped")
	pair.Replica.Start(t)
	wait(true, "started again")
}

// backUpFrom writes a back-up of a replica.
func backUpFrom(t *testing.T, url string) {
	t.Helper()
	snapshot, err := OpenSnapshot(t.Context(), Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = snapshot.Close() }()
	w, err := backup.NewWriter(io.Discard, backup.Header{})
	if err != nil {
		t.Fatal(err)
	}
	if err := snapshot.Write(t.Context(), w, func(string, int64) {}); err != nil {
		t.Errorf("back up a replica: %v", err)
	}
}

// A replica is used only if its data is known to be fresh. A clock that is behind hides the lag.
func TestReplicaIsJudgedByItsLag(t *testing.T) {
	t.Parallel()
	for lag, want := range map[time.Duration]bool{
		0: true, 4 * time.Second: true, 7 * time.Second: false, -500 * time.Millisecond: true, -2 * time.Second: false,
	} {
		r := &replica{log: slog.New(slog.DiscardHandler)}
		if r.judge(lag.Microseconds(), nil); r.usable.Load() != want {
			t.Errorf("with a lag of %s it is usable: %v, want %v", lag, r.usable.Load(), want)
		}
	}
}
