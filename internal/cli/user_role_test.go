package cli

import (
	"strings"
	"testing"
)

func TestTheOperatorDemotes(t *testing.T) {
	t.Parallel()
	store := []string{"--data", t.TempDir()}
	do := func(args ...string) (code int, stdout, stderr string) {
		t.Helper()
		return run(t, append(args, store...)...)
	}
	ok := func(args ...string) (stdout, stderr string) {
		t.Helper()
		code, stdout, stderr := do(args...)
		if code != exitOK {
			t.Fatalf("%v: code %d, stderr %q", args, code, stderr)
		}
		return stdout, stderr
	}
	ok("org", "create", "main")
	ok("user", "create", "ada", "--org", "main", "--admin")
	ok("user", "create", "bob", "--org", "main")

	// A key with svc:admin:admin is announced, above all for a user who is not an admin.
	_, stderr := ok("key", "create", "--org", "main", "--as", "user:ada", "--scope", "svc:admin:admin")
	if !strings.Contains(stderr, "with this key user:ada can administer org main") {
		t.Error(stderr)
	}
	_, stderr = ok("key", "create", "--org", "main", "--as", "user:bob", "--scope", "svc:admin:admin")
	if !strings.Contains(stderr, "user:bob is not an admin of org main") ||
		!strings.Contains(stderr, "parley key revoke key-") {
		t.Error(stderr)
	}
	_, stderr = ok("key", "create", "--org", "main", "--as", "user:bob", "--scope", "svc:tasks:read")
	if strings.Contains(stderr, "administer") {
		t.Error(stderr)
	}

	code, _, stderr := do("user", "demote", "ada", "--org", "main")
	if code == exitOK || !strings.Contains(stderr, "last enabled admin") {
		t.Error(code, stderr)
	}
	place := ` in org "main" in store ` + store[1] + "\n"
	if stdout, _ := ok("user", "promote", "bob", "--org", "main"); stdout != `user "bob" is an admin`+place {
		t.Error(stdout)
	}
	stdout, _ := ok("user", "demote", "ada", "--org", "main")
	if !strings.HasPrefix(stdout, `user "ada" is not an admin`+place+"revoked key-") || strings.Count(stdout, "revoked") != 1 {
		t.Error(stdout)
	}
	code, _, stderr = do("user", "demote", "eve", "--org", "main")
	if code == exitOK || !strings.Contains(stderr, `user "eve" not found`+strings.TrimSuffix(place, "\n")) {
		t.Error(code, stderr)
	}
	stdout, _ = ok("key", "list", "--org", "main", "--as", "user:ada", "--state", "live", "--json")
	if strings.Contains(stdout, "key-") {
		t.Error("a key of the demoted admin is live:", stdout)
	}
	if stdout, _ := ok("user", "demote", "ada", "--org", "main", "--json"); !strings.Contains(stdout, `"revoked_keys": []`) {
		t.Error(stdout) // to repeat it changes nothing
	}
}
