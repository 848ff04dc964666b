package cli

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-dev/parley/internal/pgtest"
)

// TestTwoServersShareAPostgres: what one accepts the other shows, and a key that
// is revoked stops working on both.
func TestTwoServersShareAPostgres(t *testing.T) {
	t.Parallel()
	database := pgtest.URL(t)
	one, two := start(t, "--database", database), start(t, "--database", database)
	if one.key == "" || two.key != "" {
		t.Fatalf("the first server must print a key and the second none: %q, %q", one.key, two.key)
	}
	parley := func(key string, args ...string) (string, error) {
		cmd := exec.Command(filepath.Join(binDir, "parley"), args...)
		cmd.Env = cleanEnv(t.TempDir(), "PARLEY_KEY="+key, "PARLEY_DATABASE="+database)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	must := func(key string, args ...string) string {
		t.Helper()
		out, err := parley(key, args...)
		if err != nil {
			t.Fatalf("parley %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return out
	}
	secret := keyShape.FindString(must("", "key", "create", "--org", "main", "--as", "user:admin",
		"--scope", "svc:tasks:read", "--scope", "svc:tasks:write", "--name", "shared"))
	id := strings.TrimSpace(must(secret, "proposal", "submit", "--server", one.url, "--quiet",
		"--title", "Shared", "--category", "process", "--problem", "P", "--fix", "F"))
	for _, s := range []*server{two, one} {
		if out := must(secret, "proposal", "list", "--server", s.url); !strings.Contains(out, id) {
			t.Errorf("%s is not in the list of %s:\n%s", id, s.url, out)
		}
	}

	for line := range strings.Lines(must("", "key", "list", "--org", "main")) {
		if strings.Contains(line, "shared") {
			must("", "key", "revoke", strings.Fields(line)[0], "--org", "main")
		}
	}
	for _, s := range []*server{one, two} {
		if err := eventually(func() error {
			out, err := parley(secret, "proposal", "list", "--server", s.url)
			if err == nil {
				return errStillWorks
			}
			if !strings.Contains(out, "auth.invalid") {
				return fatal{err}
			}
			return nil
		}); err != nil {
			t.Errorf("the revoked key on %s: %v", s.url, err)
		}
	}
}
