package e2e

import (
	"net/http"
	"strconv"
	"testing"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestGuessingIsSlow sends bad credentials to every endpoint until the server refuses their IP
// address; good ones from there still work.
func TestGuessingIsSlow(t *testing.T) {
	t.Parallel()
	s := serve(t, engine{"sqlite", []string{"--data", t.TempDir()}})
	list := s.base + "/api/v1/orgs/main/proposals"
	guess := func(method, target, credential string) *http.Response {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, target, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+credential)
		res, err := taskClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		return res
	}
	const secret = "parley_at_0000000000000000000000000000000000" // mistyped, or it would be a token
	n := 0
	for res := guess(http.MethodGet, list, secret); res.StatusCode != http.StatusTooManyRequests; res = guess(http.MethodGet, list, secret) {
		if n++; res.StatusCode != http.StatusUnauthorized || n > 10_000 {
			t.Fatalf("guess %d: status = %s, want 401 until guessing is limited", n, res.Status)
		}
	}
	t.Logf("%d guesses were answered", n)
	// Guesses arrive faster than the budget refills; a single one may find it refilled.
	limited := func(what string, try func() (limited bool)) {
		t.Helper()
		for range 10_000 {
			if try() {
				return
			}
		}
		t.Errorf("%s: got no limit on guessing, want 429", what)
	}
	for what, target := range map[string]string{"MCP": s.base + "/mcp", "A2A": s.base + "/a2a/echo"} {
		limited(what, func() bool {
			res := guess(http.MethodPost, target, "parley_x")
			wait, err := strconv.Atoi(res.Header.Get("Retry-After"))
			return res.StatusCode == http.StatusTooManyRequests && err == nil && wait > 0
		})
	}
	rpc := dialGRPC(t, s)
	limited("gRPC", func() bool {
		_, err := rpc.GetTask(bearing(t.Context(), secret), &a2apb.GetTaskRequest{Tenant: "echo", Id: "x"})
		return status.Code(err) == codes.ResourceExhausted
	})
	request(t, s.key, http.MethodGet, list, "")
}
