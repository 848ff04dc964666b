package a2a

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/httpx"
)

// until waits for a condition.
func (w *world) until(what string, ok func() bool) {
	w.tb.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.tb.Fatalf("timeout while waiting until %s", what)
		}
	}
}

// walkCard follows the pages of a card and returns the ids on each.
func (w *world) walkCard(secret string) (pages [][]string) {
	w.tb.Helper()
	after := ""
	for range 100 {
		a := w.do(secret, "GET", "/.well-known/agent.json"+after, "")
		if a.Status != 200 || len(a.Body) > maxCardBytes+64<<10 {
			w.tb.Fatalf("status = %d, %d bytes, want 200 and at most a page: %.200s", a.Status, len(a.Body), a.Body)
		}
		var card struct {
			Agents []struct{ ID string }
			Next   string
		}
		if err := json.Unmarshal([]byte(a.Body), &card); err != nil {
			w.tb.Fatal(err)
		}
		ids := []string{}
		for _, a := range card.Agents {
			ids = append(ids, a.ID)
		}
		if pages = append(pages, ids); card.Next == "" {
			return pages
		}
		after = "?after=" + card.Next
	}
	w.tb.Fatal("the pages do not end")
	return nil
}

func TestACardHasPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ *httpx.Options, o *Options) { o.CardAgents = 3 })
	for i := range 4 {
		w.orgs.Agent(agent.Agent{ID: fmt.Sprint("g", i), Org: "globex", Name: "G", Public: true})
	}
	w.orgs.Agent(agent.Agent{ID: "hidden", Org: "globex", Name: "G"})
	for name, c := range map[string]struct {
		key  string
		want [][]string
	}{
		"everybody":        {"", [][]string{{"echo", "g0", "g1"}, {"g2", "g3"}}},
		"own agents first": {w.caller("user:ada"), [][]string{{"bot", "echo", "other"}, {"g0", "g1"}, {"g2", "g3"}}},
		"an agent of one's": {
			w.key("acme", "service:x", "svc:a2a:write", "agent:other"),
			[][]string{{"echo", "other", "g0"}, {"g1", "g2", "g3"}},
		},
		"another org": {
			w.key("globex", "service:y", "svc:a2a:write"),
			[][]string{{"g0", "g1", "g2"}, {"g3", "hidden", "echo"}, {}},
		},
		"no right": {w.key("globex", "service:z", "svc:tasks:read"), [][]string{{"g0", "g1", "g2"}, {"g3", "echo"}, {}}},
	} {
		if diff := cmp.Diff(c.want, w.walkCard(c.key)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	// Without a key, clients cannot make the server build pages that begin anywhere.
	for _, after := range []string{"a/b", "nobody", "g1", "~g1", "~~g1", "~0123456789abcdef01234567~g1", "~"} {
		if a := w.do("", "GET", "/.well-known/agent.json?after="+after, ""); a.Status != 422 {
			t.Errorf("%s: status = %d, want 422: %s", after, a.Status, a.Body)
		}
	}
	if a := w.do(w.caller("user:ada"), "GET", "/.well-known/agent.json?after=a/b", ""); a.Status != 422 {
		t.Errorf("status = %d, want 422: %s", a.Status, a.Body)
	}
}

func TestAPageOfACardHasBoundedBytes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const n = 160
	want := []string{"echo"}
	for i := range n {
		id := fmt.Sprintf("big%03d", i)
		want = append(want, id)
		w.orgs.Agent(agent.Agent{
			ID: id, Org: "globex", Name: "Big", Public: true,
			Description: strings.Repeat("\U0001F98A", agent.MaxDescription),
		})
	}
	pages := w.walkCard("")
	if len(pages) != 2 {
		t.Errorf("pages = %d, want 2 of at most a mebibyte", len(pages))
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, slices.Concat(pages...)); diff != "" {
		t.Error(diff)
	}
}

func TestACardIsBuiltOnceForAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testACardIsBuiltOnceForAll)
}

func testACardIsBuiltOnceForAll(t *testing.T) {
	c := newCardCache()
	var builds atomic.Int64
	build := func(ctx context.Context) (publicPage, error) {
		builds.Add(1)
		if ctx.Err() != nil {
			t.Error("the build ended with the request that started it")
		}
		return publicPage{built: builtCard{body: []byte("x")}}, nil
	}
	starts, cancel := context.WithCancel(t.Context())
	if _, err := c.get(starts, "first", func(ctx context.Context) (publicPage, error) {
		cancel()
		return build(ctx)
	}); err != nil {
		t.Error(err)
	}
	builds.Store(0)
	var wg sync.WaitGroup
	bodies := make([]*byte, 20)
	for i := range bodies {
		wg.Go(func() {
			got, err := c.get(t.Context(), "", build)
			if err != nil {
				t.Error(err)
				return
			}
			bodies[i] = &got.built.body[0]
		})
	}
	wg.Wait()
	slices.SortFunc(bodies, func(a, b *byte) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	if n, copies := builds.Load(), len(slices.Compact(bodies)); n != 1 || copies != 1 {
		t.Errorf("%d builds and %d copies for 20 readers, want 1 and 1", n, copies)
	}
	time.Sleep(cardFor)
	before := builds.Load()
	if _, err := c.get(t.Context(), "", build); err != nil || builds.Load() != before+1 {
		t.Errorf("builds after %s: %d more, %v, want 1", cardFor, builds.Load()-before, err)
	}
	fails := errors.New("fails")
	failing := func(context.Context) (publicPage, error) { return publicPage{}, fails }
	if _, err := c.get(t.Context(), "y", failing); !errors.Is(err, fails) {
		t.Error(err)
	}
	for i := range 10 * maxPages {
		if _, err := c.get(t.Context(), fmt.Sprint(i), build); err != nil || c.pages.Len() > maxPages {
			t.Fatalf("kept pages = %d, %v, want at most %d", c.pages.Len(), err, maxPages)
		}
	}
}

func TestWhoWaitsForACardFollowsItsRequest(t *testing.T) {
	t.Parallel()
	c := newCardCache()
	building, release, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := c.get(context.Background(), "a", func(context.Context) (publicPage, error) {
			close(building)
			<-release
			return publicPage{}, nil
		})
		done <- err
	}()
	<-building
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.get(gone, "b", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a request that has ended: err = %v, want context.Canceled", err)
	}
	close(release)
	if err := <-done; err != nil {
		t.Error(err)
	}
}
