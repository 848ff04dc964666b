package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestSiegeSearches has one org search its many proposals for words that all of them contain, with
// many concurrent requests. Gets, lists and searches of another org go on.
func TestSiegeSearches(t *testing.T) {
	rows, callers, length := 6000, 32, 4*time.Second
	if soaking() {
		rows, length = 20_000, 20*time.Second
	}
	eachSiege(t, func(t *testing.T, s *siege) {
		s.cli(t, "user", "create", "eve", "--org", "mallory")
		eve := s.newKey(t, "mallory", "user:eve", "svc:tasks:read", "svc:tasks:write")
		s.submitMany(t, "mallory", eve, rows)
		s.submitMany(t, "honest", s.reader, 3)
		var wg sync.WaitGroup
		var mu sync.Mutex
		statuses := map[int]int{}
		end := time.Now().Add(length)
		for i := range callers {
			wg.Go(func() {
				for n := 0; time.Now().Before(end) && !t.Failed(); n++ {
					// No two requests are equal: the server caches responses.
					k := i + n*callers
					res := s.list(t, "mallory", eve, fmt.Sprintf([]string{
						"q=the&sort=votes&limit=%d&page=%d", "q=upload&limit=%d&page=%d", "q=th&sort=oldest&limit=%d&page=%d",
						"q=t&limit=%d&page=%d",
					}[k%4], 1+k%100, 1+k/100%20))
					if res.StatusCode == http.StatusTooManyRequests {
						t.Error("got 429, want none: the rate limit hides the attack")
					}
					mustShed(t, res)
					mu.Lock()
					statuses[res.StatusCode]++
					mu.Unlock()
				}
			})
		}
		for n := 0; time.Now().Before(end); n++ {
			if res := s.list(t, "honest", s.reader, fmt.Sprintf("q=upload&limit=%d", 1+n%100)); res.StatusCode != http.StatusOK {
				t.Errorf("search in another org: status = %s, want 200", res.Status)
			}
			time.Sleep(20 * time.Millisecond)
		}
		wg.Wait()
		t.Logf("the attacker's searches: %v", statuses)
		if statuses[http.StatusOK] == 0 {
			t.Error("got no successful search in the attacker's org, want at least one")
		}
	}, "--rate-limit", "0")
}

// list lists proposals and discards the body.
func (s *siege) list(t *testing.T, org, key, query string) *http.Response {
	res := &http.Response{Status: "no response"}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.base+"/api/v1/orgs/"+org+"/proposals?"+query,
		nil)
	if err == nil {
		req.Header.Set("Authorization", "Bearer "+key)
		if res, err = taskClient.Do(req); err == nil {
			_ = res.Body.Close()
		}
	}
	if err != nil {
		t.Error(err)
		return &http.Response{Status: "no response"}
	}
	return res
}

// submitMany submits n proposals that share most of their words.
func (s *siege) submitMany(t *testing.T, org, key string, n int) {
	t.Helper()
	body := object{
		"title": "The upload fails", "category": "reliability",
		"problem":       strings.Repeat("The upload stops when the link drops. ", 8),
		"suggested_fix": strings.Repeat("Retry the upload with a pause. ", 8),
	}
	var wg sync.WaitGroup
	for part := range 8 {
		wg.Go(func() {
			for i := part; i < n && !t.Failed(); i += 8 {
				res, err := post(t.Context(), s.base+"/api/v1/orgs/"+org+"/proposals", key, body)
				if err != nil {
					t.Error(err)
					return
				}
				_ = res.Body.Close()
				if res.StatusCode != http.StatusCreated {
					t.Errorf("submit: status = %s, want 201", res.Status)
				}
			}
		})
	}
	wg.Wait()
}
