package cli

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-dev/parley/internal/pgtest"
	"github.com/parley-dev/parley/internal/servertest"
)

// TestTwoServersShareAPostgres: what one accepts the other shows, and a key that
// is revoked stops working on both.
func TestTwoServersShareAPostgres(t *testing.T) {
	t.Parallel()
	database := pgtest.URL(t)
	one, two := start(t, "--database", database), start(t, "--database", database)
	if one.Key == "" || two.Key != "" {
		t.Fatalf("the first server must print a key and the second none: %q, %q", one.Key, two.Key)
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
	secret := servertest.Secret.FindString(must("", "key", "create", "--org", "main", "--as", "user:admin",
		"--scope", "svc:tasks:read", "--scope", "svc:tasks:write", "--name", "shared"))
	id := strings.TrimSpace(must(secret, "proposal", "submit", "--server", one.URL, "--quiet",
		"--title", "Shared", "--category", "process", "--problem", "P", "--fix", "F"))
	for _, s := range []*servertest.Process{two, one} {
		if out := must(secret, "proposal", "list", "--server", s.URL); !strings.Contains(out, id) {
			t.Errorf("%s is not in the list of %s:\n%s", id, s.URL, out)
		}
	}

	for line := range strings.Lines(must("", "key", "list", "--org", "main")) {
		if strings.Contains(line, "shared") {
			must("", "key", "revoke", strings.Fields(line)[0], "--org", "main")
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
