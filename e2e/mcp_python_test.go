package e2e

import (
	"os/exec"
	"strings"
	"testing"
)

// TestMCPClientInPython runs the official Python client against the built server, over
// HTTP and over stdio, and the example that docs/mcp.md shows.
func TestMCPClientInPython(t *testing.T) {
	t.Parallel()
	s := serve(t, engine{"sqlite", []string{"--data", t.TempDir()}}, "--rate-limit", "0")
	s.cli(t, "user", "create", "ada", "--org", "main")
	st := &stage{server: s, key: s.newKey(t, "main", "user:ada", "svc:tasks:read", "svc:tasks:write", "svc:a2a:write")}
	interpreter := python(t, "requirements-1.txt")
	cmd := exec.CommandContext(t.Context(), interpreter, "clients/python/mcp_client.py")
	cmd.Env = append(pythonEnv(interpreter), "PARLEY_URL="+s.base, "PARLEY_KEY="+st.key, "PARLEY_PROGRAM="+program)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("mcp_client.py: %v\n%s", err, out)
	}
	if n := strings.Count(string(out), "ok   "); n != 10 {
		t.Errorf("got %d checks, want 10:\n%s", n, out)
	}
	got := st.example(t, "requirements-1.txt", "mcp-python/client.py", s.base+"/mcp")
	if !strings.HasPrefix(got, "prop-") || !strings.HasSuffix(got, " open\n") {
		t.Errorf("the example printed %q, want the id of a proposal and open", got)
	}
}
