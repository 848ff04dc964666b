package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// answer runs a command with a text on stdin.
func answer(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = Main(t.Context(), args, strings.NewReader(stdin), &out, &err)
	return code, out.String(), err.String()
}

// An org goes to a file, from it into another store under another id, and is deleted there after a
// person has typed its id.
func TestAnOrgIsMovedAndDeleted(t *testing.T) {
	t.Parallel()
	from, to := filepath.Join(t.TempDir(), "from"), filepath.Join(t.TempDir(), "to")
	folder := filepath.Join(t.TempDir(), "exports") + string(filepath.Separator)
	must := func(args ...string) string {
		t.Helper()
		code, stdout, stderr := run(t, args...)
		if code != exitOK {
			t.Fatalf("%v: %d %s", args, code, stderr)
		}
		return stdout
	}
	must("org", "create", "acme", "--data", from)
	must("user", "create", "ada", "--data", from, "--org", "acme", "--admin")
	var made struct {
		Org, Path string
		Rows      int
	}
	if err := json.Unmarshal([]byte(must("org", "export", "acme", folder, "--data", from, "--json")), &made); err != nil ||
		made.Org != "acme" || !strings.HasPrefix(filepath.Base(made.Path), "org-acme-") || made.Rows == 0 {
		t.Fatalf("exported %+v, %v", made, err)
	}
	if st, err := os.Stat(made.Path); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v, %v", st, err)
	}
	var imported struct {
		Org        struct{ ID string }
		ExportedAs string `json:"exported_as"`
	}
	said := must("org", "import", made.Path, "--as", "copy", "--data", to, "--json")
	if err := json.Unmarshal([]byte(said), &imported); err != nil || imported.Org.ID != "copy" || imported.ExportedAs != "acme" {
		t.Fatalf("imported %+v, %v", imported, err)
	}
	if list := must("user", "list", "--data", to, "--org", "copy"); !strings.Contains(list, "ada") {
		t.Errorf("the users are %s", list)
	}
	for _, c := range []struct {
		args []string
		want string
		code int
	}{
		{[]string{"org", "export", "nope", "-", "--data", from}, `org "nope" not found`, exitFailed},
		{[]string{"org", "export", "acme", "-", "--data", from, "--json"}, "exclude each other", exitUsage},
		{[]string{"org", "import", made.Path, "--as", "copy", "--data", to}, "exists already", exitFailed},
		{[]string{"org", "import", made.Path, "--as", "A b", "--data", to}, "cannot be the id", exitFailed},
		{[]string{"restore", made.Path, "--data", filepath.Join(to, "x")}, "parley org import", exitFailed},
		{[]string{"restore", made.Path, "--dry-run"}, "parley org import", exitFailed},
		{[]string{"org", "delete", "nope", "--yes", "--data", to}, `org "nope" not found`, exitFailed},
	} {
		if code, _, stderr := run(t, c.args...); code != c.code || !strings.Contains(stderr, c.want) {
			t.Errorf("%v: %d %s, want %d and %q", c.args, code, stderr, c.code, c.want)
		}
	}
	for _, text := range []string{"", "\n", "acme\n", "yes\n"} {
		if code, _, stderr := answer(t, text, "org", "delete", "copy", "--data", to); code != exitUsage ||
			!strings.Contains(stderr, "nothing was done") {
			t.Errorf("after %q: %d %s", text, code, stderr)
		}
	}
	if code, stdout, stderr := answer(t, "copy\n", "org", "delete", "copy", "--data", to); code != exitOK ||
		!strings.Contains(stdout, `deleted the org "copy"`) {
		t.Errorf("%d %s %s", code, stdout, stderr)
	}
	if list := must("org", "list", "--data", to, "--json"); strings.Contains(list, "copy") {
		t.Errorf("the orgs are %s", list)
	}
}

// A member is erased on a server and on a store.
func TestAMemberIsErased(t *testing.T) {
	t.Parallel()
	for name, target := range map[string][]string{
		"gone-1": {"--server", site.url, "--key", site.key},
		"gone-2": {"--data", site.data, "--org", "main"},
	} {
		with := func(args ...string) []string { return append(args, target...) }
		if code, _, stderr := run(t, with("user", "create", name)...); code != exitOK {
			t.Fatal(code, stderr)
		}
		if code, _, stderr := answer(t, "no\n", with("member", "erase", "user:"+name)...); code != exitUsage {
			t.Errorf("not confirmed: %d %s", code, stderr)
		}
		code, stdout, stderr := run(t, with("member", "erase", "user:"+name, "--yes", "--json")...)
		var m struct{ Ref string }
		if err := json.Unmarshal([]byte(stdout), &m); err != nil || code != exitOK ||
			!strings.HasPrefix(m.Ref, "user:former-") {
			t.Errorf("%d %s %s", code, stdout, stderr)
		}
		if code, _, stderr := run(t, with("member", "erase", "user:"+name, "--yes")...); code != exitFailed ||
			!strings.Contains(stderr, "not found") {
			t.Errorf("erased again: %d %s", code, stderr)
		}
		if code, _, stderr := run(t, with("member", "erase", "service:"+name, "--yes")...); code != exitFailed ||
			!strings.Contains(stderr, "only users are erased") {
			t.Errorf("a service: %d %s", code, stderr)
		}
	}
}
