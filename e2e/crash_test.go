package e2e

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// TestCrash kills the server at random moments under load, starts it again on the same data, and
// expects everything that was acknowledged.
func TestCrash(t *testing.T) {
	const clients = 16 // one per voter: each remembers its last request
	rounds := fromEnv(t, "PARLEY_CRASH_ROUNDS", 3)
	eachEngine(t, func(t *testing.T, e engine) {
		seed := uint64(time.Now().UnixNano())
		t.Logf("seed %d", seed)
		rng := rand.New(rand.NewPCG(seed, 0))
		s := serve(t, e, calm...)
		f := newFleet(t, s, clients)
		for round := range rounds {
			// A number of responses instead of a time: the test means the same on a slow machine.
			f.crashAfter(t, s, 50+rng.Int64N(3000), rng)
			e.settle(t)
			s = serve(t, e, calm...)
			f.base = s.base
			f.verify(t, true)
			if t.Failed() {
				t.Fatalf("round %d of %d failed", round+1, rounds)
			}
		}
		t.Logf("%s: %d rounds, %d answers, %d proposals", e.name, rounds, f.acks.Load(), len(f.ledger.all()))
	})
}

// crashAfter runs the clients and kills the server after the given number of responses.
func (f *fleet) crashAfter(t *testing.T, s *server, answers int64, rng *rand.Rand) {
	t.Helper()
	goal := f.acks.Load() + answers
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	for voter := range f.voters {
		own := rand.New(rand.NewPCG(rng.Uint64(), 0))
		wg.Go(func() {
			err := f.work(ctx, voter, own)
			if u := (unexpected{}); errors.As(err, &u) {
				t.Errorf("before the crash: %v", u)
			}
			if err == nil {
				t.Error("a client stopped before the crash, want it to run until then")
			}
		})
	}
	for deadline := time.Now().Add(3 * time.Minute); f.acks.Load() < goal; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) || t.Failed() {
			t.Errorf("the server gave %d answers in three minutes, want %d", f.acks.Load()-goal+answers, answers)
			break
		}
	}
	s.Kill()
	wg.Wait()
	f.http.CloseIdleConnections()
}

// settle waits until PostgreSQL has noticed that the killed server is gone. A commit that was
// under way may still happen, and must not happen between two reads of the check.
func (e engine) settle(t *testing.T) {
	t.Helper()
	if e.name != "postgres" {
		return
	}
	conn, err := pgx.Connect(t.Context(), e.data[1])
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	for deadline := time.Now().Add(soon); ; time.Sleep(5 * time.Millisecond) {
		var others int
		err := conn.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'`).Scan(&others)
		if err != nil {
			t.Fatal(err)
		}
		if others == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("PostgreSQL still serves %d connections of the killed server, want 0", others)
		}
	}
}
