package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"
)

var votedOn = regexp.MustCompile(`(?m)^proposal (prop-\w+)$`)

// TestMCPClient runs the official TypeScript client against the built server, over
// HTTP and over stdio, and then votes over REST as the same person.
func TestMCPClient(t *testing.T) {
	t.Parallel()
	dir := nodePackages(t, "mcp")
	eachEngine(t, func(t *testing.T, e engine) {
		s := serve(t, e, "--rate-limit", "0")
		s.cli(t, "user", "create", "ada", "--org", "main")
		keys := make([]string, 2) // two keys of one person
		for i := range keys {
			keys[i] = s.newKey(t, "main", "user:ada", "svc:tasks:read", "svc:tasks:write", "svc:a2a:write")
		}
		cmd := exec.CommandContext(t.Context(), "node", "client.mjs")
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "NO_PROXY=127.0.0.1", "PARLEY_URL="+s.base, "PARLEY_KEY="+keys[0],
			"PARLEY_PROGRAM="+program)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("client.mjs: %v\n%s", err, out)
		}
		if n := strings.Count(string(out), "ok   "); n != 16 {
			t.Errorf("got %d checks, want 16:\n%s", n, out)
		}
		m := votedOn.FindSubmatch(out)
		if m == nil {
			t.Fatalf("got no proposal id, want one:\n%s", out)
		}
		// MCP voted against; the REST vote replaces it.
		target := s.base + "/api/v1/orgs/main/proposals/" + string(m[1])
		request(t, keys[1], http.MethodPost, target+"/vote", `{"vote":"for"}`)
		var p struct {
			VotesFor     int    `json:"votes_for"`
			VotesAgainst int    `json:"votes_against"`
			MyVote       string `json:"my_vote"`
		}
		if err := json.Unmarshal(request(t, keys[0], http.MethodGet, target, ""), &p); err != nil {
			t.Fatal(err)
		}
		if p.VotesFor != 1 || p.VotesAgainst != 0 || p.MyVote != "for" {
			t.Errorf("votes = %+v, want one vote for, held by one person", p)
		}
	})
}

// request makes a request that must succeed, and returns the response body.
func request(t *testing.T, key, method, target, body string) []byte {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	res, err := (&http.Client{Timeout: 30 * time.Second}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode/100 != 2 {
		t.Fatalf("%s %s: got %d, %v; want 2xx: %s", method, target, res.StatusCode, err, text)
	}
	return text
}
