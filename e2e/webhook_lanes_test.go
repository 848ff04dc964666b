package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
)

// hookOrg is an org with webhooks.
type hookOrg struct {
	name, key string
}

// newHookOrg creates an org, and a key that may do everything in it.
func newHookOrg(t *testing.T, s *server, name string) hookOrg {
	t.Helper()
	s.cli(t, "org", "create", name)
	s.cli(t, "user", "create", "boss", "--org", name, "--admin")
	return hookOrg{name, s.newKey(t, name, "user:boss", "svc:tasks:read", "svc:tasks:write", "svc:admin:admin")}
}

// post makes a request below the org's path, which must succeed.
func (o hookOrg) post(ctx context.Context, base, path string, body object) error {
	res, err := post(ctx, base+"/api/v1/orgs/"+o.name+path, o.key, body)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusCreated {
		said, _ := io.ReadAll(res.Body)
		return fmt.Errorf("POST %s: %s %s", path, res.Status, said)
	}
	return nil
}

// hook creates a webhook for submitted proposals.
func (o hookOrg) hook(t *testing.T, base, url string) {
	t.Helper()
	err := o.post(t.Context(), base, "/webhooks", object{"url": url, "types": []string{"proposal.submitted"}})
	if err != nil {
		t.Fatal(err)
	}
}

func (o hookOrg) submit(ctx context.Context, base string) error {
	return o.post(ctx, base, "/proposals", object{
		"title": "A proposal", "category": "reliability", "problem": "It fails.", "suggested_fix": "Repair it.",
	})
}

// submitted returns the ids of the events in the log of the org, in order.
func (o hookOrg) submitted(ctx context.Context, base string) (ids []string, err error) {
	for after := int64(0); ; {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet,
			fmt.Sprintf("%s/api/v1/orgs/%s/events?types=proposal.submitted&limit=100&after=%d", base, o.name, after), nil)
		if err != nil {
			return nil, err
		}
		req.Header.Set("Authorization", "Bearer "+o.key)
		res, err := taskClient.Do(req)
		if err != nil {
			return nil, err
		}
		var page struct {
			Events []struct{ ID string }
			Last   int64 `json:"last_seq"`
		}
		err = json.NewDecoder(res.Body).Decode(&page)
		_ = res.Body.Close()
		if res.StatusCode != http.StatusOK {
			return nil, fmt.Errorf("read events: %s", res.Status)
		}
		if err != nil {
			return nil, fmt.Errorf("read events: %w", err)
		}
		for _, e := range page.Events {
			ids = append(ids, e.ID)
		}
		if page.Last == after {
			return ids, nil
		}
		after = page.Last
	}
}

// TestWebhooksThatStallDelayNoOtherOrg lets more webhooks stall than the fast lane has slots, in
// several orgs. A delivery of another org to the same host arrives while all of them still stall.
func TestWebhooksThatStallDelayNoOtherOrg(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, e engine) {
		const orgs, each, lane = 9, 8, 64
		var held, ended, arrived atomic.Int64
		var beside, endedThen atomic.Int64 // when the last honest delivery arrived
		site := http.NewServeMux()
		site.HandleFunc("/stall/", func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // else the end of the connection is not noticed
			held.Add(1)
			<-r.Context().Done()
			held.Add(-1)
			ended.Add(1)
		})
		site.HandleFunc("/honest", func(http.ResponseWriter, *http.Request) {
			beside.Store(held.Load())
			endedThen.Store(ended.Load())
			arrived.Add(1)
		})
		var hosts []string
		for range 2 { // a host gets four requests of an org at once
			h := httptest.NewServer(site)
			t.Cleanup(h.Close)
			hosts = append(hosts, h.URL)
		}
		s := serve(t, e, append([]string{"--outbound-allow", "127.0.0.1"}, calm...)...)
		honest := newHookOrg(t, s, "honest")
		honest.hook(t, s.base, hosts[0]+"/honest")
		var bad []hookOrg
		for i := range orgs {
			o := newHookOrg(t, s, fmt.Sprint("bad", i))
			for n := range each {
				o.hook(t, s.base, fmt.Sprintf("%s/stall/%s/%d", hosts[n%2], o.name, n))
			}
			bad = append(bad, o)
		}
		for _, o := range bad {
			if err := o.submit(t.Context(), s.base); err != nil {
				t.Fatal(err)
			}
		}
		eventually(t, soon, "all receivers stall at the same time", func() bool { return held.Load() == orgs*each })
		// Stalled requests end after ten seconds and are repeated. If that happens during a delivery, it
		// shows nothing, and the next one is watched.
		eventually(t, soon, "a delivery arrives while all others stall", func() bool {
			before, want := ended.Load(), arrived.Load()+1
			if err := honest.submit(t.Context(), s.base); err != nil {
				t.Fatal(err)
			}
			eventually(t, soon, "the honest delivery arrives", func() bool { return arrived.Load() == want })
			t.Logf("%d requests stalled beside an honest delivery", beside.Load())
			return beside.Load() >= lane && endedThen.Load() == before
		})
	})
}
