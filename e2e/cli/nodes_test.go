package cli

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-dev/parley/internal/pgtest"
	"github.com/parley-dev/parley/internal/servertest"
)

// TestTwoServersShareAPostgres checks that each server shows what the other accepts, and
// that a revoked key stops working on both.
func TestTwoServersShareAPostgres(t *testing.T) {
	t.Parallel()
	database := pgtest.URL(t)
	one, two := start(t, "--database", database), start(t, "--database", database)
	if one.Key == "" || two.Key != "" {
		t.Fatalf("keys = %q, %q; want one of the first server and none of the second", one.Key, two.Key)
	}
	parley := func(key string, args ...string) (string, error) {
		cmd := exec.Command(filepath.Join(binDir, "parley"), args...)
		cmd.Env = cleanEnv(t.TempDir(), "PARLEY_KEY="+key)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	store := "--database=" + database
	must := func(key string, args ...string) string {
		t.Helper()
		out, err := parley(key, args...)
		if err != nil {
			t.Fatalf("parley %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return out
	}
	secret := servertest.Secret.FindString(must("", "key", "create", "--org", "main", "--as", "user:admin", store,
		"--scope", "svc:tasks:read", "--scope", "svc:tasks:write", "--name", "shared"))
	id := strings.TrimSpace(must(secret, "proposal", "submit", "--server", one.URL, "--quiet",
		"--title", "Shared", "--category", "process", "--problem", "P", "--fix", "F"))
	for _, s := range []*servertest.Process{two, one} {
		if out := must(secret, "proposal", "list", "--server", s.URL); !strings.Contains(out, id) {
			t.Errorf("list of %s lacks %s, want it there:\n%s", s.URL, id, out)
		}
	}

	for line := range strings.Lines(must("", "key", "list", "--org", "main", store)) {
		if strings.Contains(line, "shared") {
			must("", "key", "revoke", strings.Fields(line)[0], "--org", "main", store)
		}
	}
	for _, s := range []*servertest.Process{one, two} {
		if err := eventually(func() error {
			out, err := parley(secret, "proposal", "list", "--server", s.URL)
			if err == nil {
				return errStillWorks
			}
			if !strings.Contains(out, "auth.invalid") {
				return fatal{err}
			}
			return nil
		}); err != nil {
			t.Errorf("the revoked key on %s: %v", s.URL, err)
		}
	}
}
