package a2a

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
)

// TestACardIsBuiltOnceForAllWhoWait asks for a card while it is being built.
func TestACardIsBuiltOnceForAllWhoWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cards := newAgentCards()
		key := agentBuildKey{agentCardKey{"acme", "bot", cardForm{}}, 1}
		newer := key
		newer.updated++
		fault := errors.New("no store")
		for _, want := range []struct {
			body string
			err  error
		}{{"", fault}, {"card", nil}} { // a failed build is tried again
			builds, release := 0, make(chan struct{})
			build := func(ctx context.Context) ([]byte, error) {
				builds++
				<-release
				return []byte(want.body), errors.Join(want.err, ctx.Err())
			}
			ctx, leave := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			ask := func(ctx context.Context) {
				if body, err := cards.get(ctx, key, build); string(body) != want.body || !errors.Is(err, want.err) {
					t.Errorf("got %q, %v, want %q, %v", body, err, want.body, want.err)
				}
			}
			wg.Go(func() { ask(ctx) })
			synctest.Wait()
			for range 10 {
				wg.Go(func() { ask(t.Context()) })
			}
			leave() // the card is built although the first request has ended
			synctest.Wait()
			if builds != 1 {
				t.Errorf("builds = %d, want 1", builds)
			}
			gone, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := cards.get(gone, key, build); !errors.Is(err, context.Canceled) {
				t.Errorf("a request that has ended: err = %v, want context.Canceled", err)
			}
			close(release)
			wg.Wait()
		}
		none := func(context.Context) ([]byte, error) { return []byte("new"), nil }
		if body, _ := cards.get(t.Context(), key, none); string(body) != "card" {
			t.Errorf("got %q, want the kept card", body)
		}
		if body, _ := cards.get(t.Context(), newer, none); string(body) != "new" {
			t.Errorf("got %q, want the card after the change", body)
		}
	})
}
