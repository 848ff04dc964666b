package e2e

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
)

// What was acknowledged on one node is in every list and every proposal that any node is asked for
// afterwards: in pages that many callers read, which come from the cache, and in those of one caller.
func TestWritesAreSeenOnAllNodes(t *testing.T) {
	t.Parallel()
	e := engine{name: "postgres"}.fresh(t)
	nodes := []*server{serve(t, e, calm...)}
	key := nodes[0].key
	nodes = append(nodes, serve(t, e, calm...))
	const path = "/api/v1/orgs/main/proposals"
	title := func(edits int) string { return fmt.Sprintf("Edited %04d times", edits) }
	propose := func(node *server) string {
		var made struct{ ID string }
		status, err := api(t.Context(), http.MethodPost, node.base+path, key, object{
			"title": title(0), "category": "process", "priority": "low",
			"problem": "Readers of another node miss the newest proposal.", "suggested_fix": "Read the version of the data first.",
		}, &made)
		if err != nil || status != http.StatusCreated {
			t.Errorf("submit: %d, %v", status, err)
		}
		return made.ID
	}
	first := propose(nodes[0])

	const writes = 150
	var submitted, edits atomic.Int64
	submitted.Store(1)
	var writers, readers sync.WaitGroup
	done := make(chan struct{})
	writers.Go(func() {
		for n := range writes {
			propose(nodes[n%2])
			submitted.Add(1)
		}
	})
	writers.Go(func() {
		for n := range writes {
			status, err := api(t.Context(), http.MethodPatch, nodes[n/2%2].base+path+"/"+first, key, object{
				"title": title(n + 1),
			}, nil)
			if err != nil || status != http.StatusOK {
				t.Errorf("edit: %d, %v", status, err)
			}
			edits.Add(1)
		}
	})
	for r := range 6 {
		list := path + "?limit=1" // one page for three readers
		if r%2 == 1 {
			list = fmt.Sprint(path, "?limit=", r+1)
		}
		readers.Go(func() {
			for i := r; ; i++ {
				node := nodes[i/2%2]
				total, edited := submitted.Load(), edits.Load()
				var page struct{ Total int64 }
				status, err := api(t.Context(), http.MethodGet, node.base+list, key, nil, &page)
				if err != nil || status != http.StatusOK || page.Total < total {
					t.Errorf("%s: %d, %v: %d proposals, want at least %d", list, status, err, page.Total, total)
				}
				var p struct{ Title string }
				status, err = api(t.Context(), http.MethodGet, node.base+path+"/"+first, key, nil, &p)
				if err != nil || status != http.StatusOK || p.Title < title(int(edited)) {
					t.Errorf("get: %d, %v: %q, want %q or a later one", status, err, p.Title, title(int(edited)))
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	writers.Wait()
	close(done)
	readers.Wait()
}
