package e2e

import (
	"context"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"
)

// fromEnv returns the size of a test: short, or that of 'make soak'.
func fromEnv(t *testing.T, name string, short int) int {
	t.Helper()
	v := os.Getenv(name)
	if v == "" {
		return short
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 {
		t.Fatalf("%s = %q, want a positive number", name, v)
	}
	return n
}

// TestLoad has 64 clients submit, vote, edit and approve at once. Four clients
// share each voter, so the same voter often votes twice at the same moment.
func TestLoad(t *testing.T) {
	const clients, voters = 64, 16
	seconds := fromEnv(t, "PARLEY_LOAD_SECONDS", 8)
	eachEngine(t, func(t *testing.T, e engine) {
		s := serve(t, e, calm...)
		f := newFleet(t, s, voters)
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(seconds)*time.Second)
		defer cancel()
		var wg sync.WaitGroup
		for i := range clients {
			wg.Go(func() {
				if err := f.work(ctx, i%voters, rand.New(rand.NewPCG(uint64(i), 0))); err != nil {
					t.Errorf("client %d: %v", i, err)
					cancel() // one failure is enough
				}
			})
		}
		wg.Wait()
		approved := 0
		for _, fa := range f.ledger.all() {
			approved += fa.approvals
		}
		t.Logf("%s: %d answers in %d s; %d proposals, %d approved", e.name, f.acks.Load(), seconds, len(f.ledger.all()),
			approved)
		if approved == 0 {
			t.Error("got no approvals, want at least one: nothing was tested")
		}
		f.verify(t, false)
	})
}
