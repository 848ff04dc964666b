package e2e

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// inbox records the webhook ids that arrive at each path, each when it arrives first.
type inbox struct {
	mu   sync.Mutex
	seen map[string]map[string]bool
	ids  map[string][]string
}

func (b *inbox) record(r *http.Request) {
	path, id := r.URL.Path, r.Header.Get("webhook-id")
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.seen[path] == nil {
		b.seen[path] = map[string]bool{}
	}
	if !b.seen[path][id] {
		b.seen[path][id] = true
		b.ids[path] = append(b.ids[path], id)
	}
}

func (b *inbox) at(path string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.ids[path])
}

var (
	honestPaths = []string{"/honest/1", "/honest/2"}
	badPaths    = []string{"/fails", "/stalls", "/redirects", "/trickles", "/lies"}
)

func (b *inbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // else the end of the connection is not noticed
	b.record(r)
	flush := http.NewResponseController(w).Flush
	switch r.URL.Path {
	case "/fails":
		w.WriteHeader(http.StatusInternalServerError)
	case "/stalls":
		<-r.Context().Done()
	case "/redirects":
		http.Redirect(w, r, "/redirected", http.StatusTemporaryRedirect)
	case "/trickles":
		for err := error(nil); err == nil && r.Context().Err() == nil; err = flush() {
			_, _ = w.Write([]byte("."))
			time.Sleep(20 * time.Millisecond)
		}
	case "/lies":
		w.Header().Set("Content-Length", "1000")
		_, _ = w.Write([]byte("short"))
		_ = flush()
		<-r.Context().Done()
	}
}

// cluster is one node on SQLite or two on PostgreSQL, some of which may be killed.
type cluster struct {
	engine
	flags []string

	mu    sync.Mutex
	nodes []*server
	bases []string // of those that run
}

func (c *cluster) start(t *testing.T, i int) {
	t.Helper()
	s := serve(t, c.engine, c.flags...)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes[i] = s
	c.bases = append(c.bases, s.base)
}

func (c *cluster) kill(i int) {
	c.mu.Lock()
	s := c.nodes[i]
	c.bases = slices.DeleteFunc(c.bases, func(base string) bool { return base == s.base })
	c.mu.Unlock()
	s.Kill()
}

// base returns a node that runs; empty if there is none.
func (c *cluster) base() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.bases) == 0 {
		return ""
	}
	return c.bases[rand.IntN(len(c.bases))]
}

// submitAll submits proposals until ctx ends. Requests to a node that is killed fail.
func (c *cluster) submitAll(ctx context.Context, o hookOrg) {
	for ctx.Err() == nil {
		if base := c.base(); base != "" {
			_ = o.submit(ctx, base)
		}
		time.Sleep(5 * time.Millisecond) // receivers keep up
	}
}

// TestWebhookCrash kills nodes while webhooks are delivered, to receivers some of which misbehave.
// Those that work get every event of the log, in order.
func TestWebhookCrash(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, e engine) {
		box := &inbox{seen: map[string]map[string]bool{}, ids: map[string][]string{}}
		receiver := httptest.NewServer(box)
		t.Cleanup(receiver.Close)
		c := &cluster{engine: e, flags: append([]string{"--outbound-allow", "127.0.0.1"}, calm...), nodes: make([]*server, 1)}
		if e.name == "postgres" {
			c.nodes = make([]*server, 2)
		}
		for i := range c.nodes {
			c.start(t, i)
		}
		o := newHookOrg(t, c.nodes[0], "crash")
		for _, path := range slices.Concat(badPaths, honestPaths) {
			o.hook(t, c.base(), receiver.URL+path)
		}
		ctx, stop := context.WithCancel(t.Context())
		var traffic sync.WaitGroup
		defer func() {
			stop()
			traffic.Wait()
		}()
		traffic.Go(func() { c.submitAll(ctx, o) })
		more := func(what string) {
			t.Helper()
			for _, path := range honestPaths {
				want := len(box.at(path)) + 10 + rand.IntN(20)
				eventually(t, soon, path+" gets more "+what, func() bool { return len(box.at(path)) >= want })
			}
		}
		more("before a crash")
		for round := range 4 {
			first := round % len(c.nodes)
			c.kill(first)
			if len(c.nodes) > 1 && round < 2 {
				more("from the other node") // and what the killed one had claimed
			} else {
				for i := range c.nodes {
					if i != first {
						c.kill(i)
					}
				}
				for i := range c.nodes {
					if i != first {
						c.start(t, i)
					}
				}
			}
			c.start(t, first)
			more(fmt.Sprint("after crash ", round+1))
		}
		stop()
		traffic.Wait()
		var log []string
		poll(t, 100*time.Millisecond, soon, "the honest receivers have the whole log", func() bool {
			log = must(o.submitted(t.Context(), c.base()))(t)
			return !slices.ContainsFunc(honestPaths, func(path string) bool { return len(box.at(path)) < len(log) })
		})
		for _, path := range honestPaths {
			if diff := cmp.Diff(log, box.at(path)); diff != "" {
				t.Errorf("events at %s (-log +arrived):\n%s", path, diff)
			}
		}
		for _, path := range badPaths {
			got := box.at(path)
			if len(got) == 0 || !slices.Equal(got, log[:min(len(got), len(log))]) {
				t.Errorf("%d events at %s, want the first ones of the log, in order", len(got), path)
			}
			if n := len(got); n > 1 && !slices.Contains([]string{"/trickles", "/lies"}, path) {
				t.Errorf("%d events at %s, want only the first, again and again", n, path)
			}
		}
		if n := len(box.at("/redirected")); n > 0 {
			t.Errorf("%d redirects were followed", n)
		}
		t.Logf("%s: %d events", e.name, len(log))
	})
}
