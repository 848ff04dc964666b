package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/pgtest"
)

// api calls the REST API.
func api(ctx context.Context, method, url, key string, body, into any) (int, error) {
	var res *http.Response
	var err error
	if method == http.MethodPost {
		res, err = post(ctx, url, key, body)
	} else {
		var reader io.Reader
		if body != nil {
			b, err := json.Marshal(body)
			if err != nil {
				return 0, err
			}
			reader = bytes.NewReader(b)
		}
		var req *http.Request
		if req, err = http.NewRequestWithContext(ctx, method, url, reader); err == nil {
			req.Header.Set("Authorization", "Bearer "+key)
			req.Header.Set("Content-Type", "application/json")
			res, err = taskClient.Do(req)
		}
	}
	if err != nil {
		return 0, err
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err == nil && into != nil {
		err = json.Unmarshal(b, into)
	}
	return res.StatusCode, err
}

// TestRightsEnd revokes keys and disables principals, and expects every node to refuse them soon:
// requests, streams, and calls that wait for work or for a result.
func TestRightsEnd(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		testRightsEnd(t, []*server{serve(t, engine{"sqlite", []string{"--data", t.TempDir()}}, calm...)})
	})
	t.Run("two nodes", func(t *testing.T) {
		t.Parallel()
		e := engine{"postgres", []string{"--database", pgtest.URL(t)}}
		testRightsEnd(t, []*server{serve(t, e, calm...), serve(t, e, calm...)})
	})
}

func testRightsEnd(t *testing.T, nodes []*server) {
	o := newTaskOrg(t, nodes[0], "rights")
	nodes[0].cli(t, "user", "create", "root", "--org", o.org, "--admin")
	const idle = "idle" // an agent without tasks
	nodes[0].cli(t, "agent", "create", idle, "--org", o.org, "--name", "Idle")
	root := nodes[0].newKey(t, o.org, "user:root", "svc:admin:admin")
	org := nodes[0].base + "/api/v1/orgs/" + o.org
	ask := func(method, path string, body any, want int, into any) {
		t.Helper()
		if status, err := api(t.Context(), method, org+path, root, body, into); err != nil || status != want {
			t.Fatalf("%s %s: %d %v; want %d", method, path, status, err, want)
		}
	}
	type key struct{ ID, Secret string }
	newKey := func(principal string, scopes ...string) (k key) {
		t.Helper()
		ask("POST", "/keys", object{"principal": principal, "scopes": scopes}, 201, &k)
		return k
	}
	for round, end := range map[string]func(keys ...key){
		"revoked": func(keys ...key) {
			for _, k := range keys {
				ask("DELETE", "/keys/"+k.ID, nil, 200, nil)
			}
		},
		"disabled": func(...key) {
			for _, ref := range []string{"service:caller-disabled", "service:hands-disabled"} {
				ask("PATCH", "/members/"+ref, object{"disabled": true}, 200, nil)
			}
		},
	} {
		caller, hands := "service:caller-"+round, "service:hands-"+round
		for _, ref := range []string{caller, hands} {
			ask("POST", "/members", object{"kind": "service", "id": ref[len("service:"):]}, 201, nil)
		}
		c := newKey(caller, "svc:tasks:read", "svc:a2a:write")
		h := newKey(hands, "svc:a2a:serve", "agent:"+idle)
		must(peer{nodes[0].base, c.Secret}.send(t.Context(), o.agent, "x", "go"))(t)
		ended := make(chan string, 3*len(nodes))
		for i, n := range nodes {
			p := peer{n.base, c.Secret}
			f := must(p.resubscribe(t.Context(), o.agent, "x", 0))(t)
			go func() {
				for {
					if _, err := f.next(); err != nil {
						ended <- fmt.Sprintf("stream on node %d: %v", i, err)
						return
					}
				}
			}()
			go func() {
				status, err := hand{base: n.base, key: h.Secret, agent: idle}.do(t.Context(), http.MethodPost, "/claim",
					object{"wait_seconds": 60}, nil)
				if err == nil && status != 401 {
					t.Errorf("the claim on node %d gets %d, want 401", i, status)
				}
				ended <- fmt.Sprintf("claim on node %d: %d %v", i, status, err)
			}()
			go func() {
				a, err := p.call(t.Context(), o.agent, "tasks/send", object{"id": fmt.Sprintf("w%d", i), "message": text("quiet")},
					"Prefer: wait=60")
				if err == nil && a.Error == nil {
					err = fmt.Errorf("an answer: %s", a.Result)
					t.Error(err)
				}
				ended <- fmt.Sprintf("send on node %d: %d %v", i, a.status, err)
			}()
		}
		for i, n := range nodes {
			// The metrics request is one more.
			eventually(t, soon, fmt.Sprintf("all three wait on node %d", i), func() bool { return inFlight(t, n) > 3 })
		}
		start := time.Now()
		end(c, h)
		for i, n := range nodes {
			p := peer{n.base, c.Secret}
			eventually(t, soon, fmt.Sprintf("node %d refuses the %s key", i, round), func() bool {
				status, err := api(t.Context(), "GET", n.base+"/api/v1/orgs/"+o.org+"/proposals", c.Secret, nil, nil)
				a, err2 := p.call(t.Context(), o.agent, "tasks/get", object{"id": "x"})
				claim, err3 := hand{base: n.base, key: h.Secret, agent: idle}.do(t.Context(), http.MethodPost, "/claim",
					object{"wait_seconds": 0}, nil)
				if err != nil || err2 != nil || err3 != nil {
					t.Fatal(err, err2, err3)
				}
				return status == 401 && a.status == 401 && claim == 401
			})
		}
		t.Logf("%s: all %d nodes refuse after %v", round, len(nodes), time.Since(start).Round(time.Millisecond))
		deadline := time.After(soon)
		for range 3 * len(nodes) {
			select {
			case what := <-ended:
				t.Logf("%s: %s after %v", round, what, time.Since(start).Round(time.Millisecond))
			case <-deadline:
				t.Fatalf("%s: something still runs after %v", round, soon)
			}
		}
		// Other principals are not affected.
		must(o.peer().send(t.Context(), o.agent, "other-"+round, "go"))(t)
		must(o.hand().claim(t.Context(), 1, 1, 600))(t)
	}
	// Enabled again, a live key works on all nodes at once.
	var k struct{ ID, Secret string }
	ask("PATCH", "/members/service:caller-disabled", object{"disabled": false}, 200, nil)
	ask("POST", "/keys", object{"principal": "service:caller-disabled", "scopes": []string{"svc:tasks:read"}}, 201, &k)
	for _, n := range nodes {
		if status, err := api(t.Context(), "GET", n.base+"/api/v1/orgs/"+o.org+"/proposals", k.Secret, nil,
			nil); err != nil || status != 200 {
			t.Errorf("enabled again: got %d, %v; want 200", status, err)
		}
	}
}
