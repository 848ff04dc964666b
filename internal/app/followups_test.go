package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/config"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/pgtest"
)

// assigned is a server with the agent scout, and follow-ups for it.
type assigned struct {
	*Server
	t      *testing.T
	worker string // scout's key
}

func eachAssigned(t *testing.T, test func(s assigned)) {
	t.Parallel()
	for _, engine := range []string{"sqlite", "postgres"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			cfg := testConfig(t)
			if engine == "postgres" {
				cfg.Database = pgtest.URL(t)
			}
			test(newAssigned(t, cfg))
		})
	}
}

func newAssigned(t *testing.T, cfg config.Config) assigned {
	t.Helper()
	s := startServer(t, cfg)
	t.Cleanup(func() { _ = s.Shutdown() })
	if _, err := agent.NewOperator(s.agents).Create(t.Context(),
		agent.Agent{ID: "scout", Org: "main", Name: "Scout"}); err != nil {
		t.Fatal(err)
	}
	_, key, err := identity.NewOperator(s.store.IdentityStores(), Now, newIDs(Now).next).CreateKey(t.Context(),
		identity.KeyRequest{
			Principal: identity.Principal{Org: "main", Kind: identity.Agent, ID: "scout"}, Scopes: []string{"svc:a2a:serve"},
		})
	if err != nil {
		t.Fatal(err)
	}
	return assigned{s, t, key}
}

// do sends a request of the first admin, or of the worker if the path is its own.
func (s assigned) do(method, path, body string, headers ...string) (code int, replayed bool, out map[string]any) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.URL()+"/api/v1"+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	key := s.First().Secret
	if strings.HasPrefix(path, "/agents/") {
		key = s.worker
	}
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if err := json.NewDecoder(res.Body).Decode(&out); err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	return res.StatusCode, res.Header.Get("Idempotency-Replayed") == "true", out
}

func (s assigned) tasks() []any {
	s.t.Helper()
	_, _, out := s.do("GET", "/orgs/main/a2a/tasks?limit=100", "")
	return out["tasks"].([]any)
}

// A request that is repeated with its key sends the agent nothing again, whatever became of
// the first task.
func TestARepeatedAssignmentSendsOneTask(t *testing.T) {
	eachAssigned(t, func(s assigned) {
		for i, state := range []string{"failed", "completed"} {
			for j, way := range []string{"a change", "a creation"} {
				before, path, method := len(s.tasks()), "/orgs/main/followups", "POST"
				body := `{"title":"Write it","assignee":"agent:scout"}`
				if way == "a change" {
					_, _, made := s.do("POST", path, `{"title":"Write it"}`)
					method, path, body = "PATCH", path+"/"+made["id"].(string), `{"assignee":"agent:scout"}`
				}
				once := []string{"Idempotency-Key", fmt.Sprintf("k-%d-%d", i, j)}
				code, replayed, first := s.do(method, path, body, once...)
				if code/100 != 2 || replayed {
					s.t.Fatalf("%s: got %d, replayed %v: %v", way, code, replayed, first)
				}
				_, _, claimed := s.do("POST", "/agents/scout/claim", `{}`)
				lease := claimed["tasks"].([]any)[0].(map[string]any)["lease"].(string)
				if code, _, out := s.do("POST", "/agents/scout/leases/"+lease, `{"status":"`+state+`"}`); code != 200 {
					s.t.Fatalf("report: got %d %v", code, out)
				}
				code, replayed, again := s.do(method, path, body, once...)
				if code/100 != 2 || !replayed || again["id"] != first["id"] {
					s.t.Errorf("%s, repeated after its task %s: got %d, replayed %v, %v; want the first response again",
						way, state, code, replayed, again)
				}
				if got := len(s.tasks()) - before; got != 1 {
					s.t.Errorf("%s, repeated after its task %s: got %d tasks, want 1", way, state, got)
				}
			}
		}
	})
}

// However assignments and ends of a follow-up meet, no task stays behind that its follow-up
// does not want.
func TestNoTaskOutlivesItsFollowUp(t *testing.T) {
	eachAssigned(t, func(s assigned) {
		const n = 40
		ids := make([]string, n)
		for i := range ids {
			_, _, made := s.do("POST", "/orgs/main/followups", fmt.Sprintf(`{"title":"Follow-up %d"}`, i))
			ids[i] = made["id"].(string)
		}
		var wg sync.WaitGroup
		for _, id := range ids {
			for _, body := range []string{`{"assignee":"agent:scout"}`, `{"status":"canceled"}`, `{"assignee":"agent:scout"}`} {
				wg.Go(func() {
					if code, _, out := s.do("PATCH", "/orgs/main/followups/"+id, body); code != 200 && code != 409 {
						s.t.Errorf("%s: got %d %v, want 200 or 409", body, code, out)
					}
				})
			}
		}
		wg.Wait()
		wanted := map[any]bool{}
		for _, id := range ids {
			_, _, f := s.do("GET", "/orgs/main/followups/"+id, "")
			if link, ok := f["a2a_task"].(map[string]any); ok && f["status"] != "canceled" {
				wanted[link["uid"]] = true
			}
		}
		for _, x := range s.tasks() {
			if x := x.(map[string]any); x["state"] == "submitted" && !wanted[x["uid"]] {
				s.t.Errorf("the task %v of %v is %v, and no follow-up wants it", x["uid"], x["followup_id"], x["state"])
			}
		}
	})
}
