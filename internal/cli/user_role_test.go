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

	// A key with svc:admin:admin is announced, most of all for somebody who is no admin.
	_, stderr := ok("key", "create", "--org", "main", "--as", "user:ada", "--scope", "svc:admin:admin")
	if !strings.Contains(stderr, "with this key user:ada can administer org main") {
		t.Error(stderr)
	}
	_, stderr = ok("key", "create", "--org", "main", "--as", "user:bob", "--scope", "svc:admin:admin")
	if !strings.Contains(stderr, "user:bob is not an admin of org main") || !strings.Contains(stderr, "parley key revoke key-") {
		t.Error(stderr)
	}
	if _, stderr := ok("key", "create", "--org", "main", "--as", "user:bob", "--scope", "svc:tasks:read"); strings.Contains(stderr, "administer") {
		t.Error(stderr)
	}

	if code, _, stderr := do("user", "demote", "ada", "--org", "main"); code == exitOK || !strings.Contains(stderr, "last enabled admin") {
		t.Error(code, stderr)
	}
	if stdout, _ := ok("user", "promote", "bob", "--org", "main"); stdout != "user:bob is an admin of org main\n" {
		t.Error(stdout)
	}
	stdout, _ := ok("user", "demote", "ada", "--org", "main")
	if !strings.HasPrefix(stdout, "user:ada is not an admin of org main\nrevoked key-") || strings.Count(stdout, "revoked") != 1 {
		t.Error(stdout)
	}
	if code, _, stderr := do("user", "demote", "nobody", "--org", "main"); code == exitOK || !strings.Contains(stderr, "there is no user:nobody") {
		t.Error(code, stderr)
	}
	if stdout, _ := ok("key", "list", "--org", "main", "--as", "user:ada", "--state", "live", "--json"); strings.Contains(stdout, "key-") {
		t.Error("a key of the demoted admin is live:", stdout)
	}
	if stdout, _ := ok("user", "demote", "ada", "--org", "main", "--json"); !strings.Contains(stdout, `"revoked_keys": []`) {
		t.Error(stdout) // to repeat it changes nothing
	}
}
