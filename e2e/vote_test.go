package e2e

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// TestOnePersonHoldsOneVote: a person has one vote, by every way of voting.
func TestOnePersonHoldsOneVote(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, e engine) {
		s := serve(t, e, "--rate-limit", "0")
		ada := s.signIn(t, "main", "ada")
		client := s.registered(t, callback)
		scopes := []string{"svc:tasks:read", "svc:tasks:write"}
		key := s.newKey(t, "main", "user:ada", scopes...)
		token := ada.token(t, client, "", scopes...).AccessToken
		tools := ada.token(t, client, s.base+"/mcp", scopes...).AccessToken

		proposals := s.base + "/api/v1/orgs/main/proposals"
		var p struct{ ID string }
		if err := json.Unmarshal(request(t, s.key, http.MethodPost, proposals,
			`{"title":"One vote","category":"process","problem":"Many ways in.","suggested_fix":"One person."}`),
			&p); err != nil {
			t.Fatal(err)
		}
		target := proposals + "/" + p.ID
		vote := func(credential string) func(t *testing.T, way string) {
			return func(t *testing.T, way string) {
				request(t, credential, http.MethodPost, target+"/vote", `{"vote":"`+way+`"}`)
			}
		}
		ways := []struct {
			name string
			vote func(t *testing.T, way string)
		}{
			{"a key", vote(key)},
			{"a token", vote(token)},
			{"MCP", func(t *testing.T, way string) { s.tool(t, tools, "vote_on_proposal", object{"id": p.ID, "vote": way}) }},
			{"MCP with a key", func(t *testing.T, way string) {
				s.tool(t, key, "vote_on_proposal",
					object{"id": p.ID, "vote": way})
			}},
			{"the session", func(t *testing.T, way string) {
				if code, body := ada.call(t, http.MethodPost, target+"/vote", `{"vote":"`+way+`"}`); code/100 != 2 {
					t.Fatalf("vote: status = %d, want 2xx: %s", code, body)
				}
			}},
		}
		// For by each way, then against by each: it stays one vote.
		for _, way := range []string{"for", "against"} {
			for _, w := range ways {
				w.vote(t, way)
				var got struct {
					For     int `json:"votes_for"`
					Against int `json:"votes_against"`
				}
				var list struct {
					Total int
					Votes []struct{ Voter, Vote string }
				}
				for path, into := range map[string]any{"": &got, "/votes": &list} {
					if err := json.Unmarshal(request(t, s.key, http.MethodGet, target+path, ""), into); err != nil {
						t.Fatal(err)
					}
				}
				if got.For+got.Against != 1 || (got.For == 1) != (way == "for") {
					t.Errorf("%s through %s: votes = %+v, want one %s", way, w.name, got, way)
				}
				if list.Total != 1 || len(list.Votes) != 1 || list.Votes[0].Voter != "user:ada" || list.Votes[0].Vote != way {
					t.Errorf("%s through %s: votes = %+v, want one of user:ada", way, w.name, list)
				}
			}
		}
	})
}

// tool calls a tool, which must succeed.
func (s *server) tool(t *testing.T, credential, name string, arguments object) {
	t.Helper()
	res, err := post(t.Context(), s.base+"/mcp", credential,
		envelope("tools/call", object{"name": name, "arguments": arguments}),
		"Accept: application/json, text/event-stream")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	var answer struct {
		Result struct {
			IsError           bool
			StructuredContent json.RawMessage
		}
	}
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil || res.StatusCode != http.StatusOK ||
		answer.Result.IsError ||
		!strings.HasPrefix(string(answer.Result.StructuredContent), "{") {
		t.Fatalf("%s: got %s, %v, %+v; want 200 with structured content", name, res.Status, err, answer)
	}
}
