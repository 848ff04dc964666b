package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-dev/parley/internal/clilogin"
	"github.com/parley-dev/parley/internal/config"
)

// The rule for commands that accept a server or a store: where each flag came from.
func TestTheTargetOfACommand(t *testing.T) {
	t.Parallel()
	const none, file, env, flag = config.FromDefault, config.FromFile, config.FromEnv, config.FromFlag
	for _, c := range []struct {
		data, database, server, config config.Source
		store                          bool
		refuses                        string
	}{
		{none, none, none, none, false, ""},
		{none, none, env, none, false, ""},
		{none, none, flag, none, false, ""},

		{flag, none, none, none, true, ""},
		{none, flag, none, none, true, ""},
		{flag, none, env, none, true, ""},
		{none, flag, env, none, true, ""},
		{env, flag, env, none, true, ""},
		{flag, file, none, flag, true, ""},

		// Variables and files are for commands that work on a store only.
		{env, none, none, none, false, ""},
		{none, env, none, none, false, ""},
		{file, none, none, env, false, ""},
		{none, file, none, env, false, ""},
		{env, none, env, none, false, ""},
		{none, env, flag, none, false, ""},
		{file, none, none, flag, false, "--config does not name a store"},
		{none, none, flag, flag, false, "--config does not name a store"},

		{flag, none, flag, none, false, "--data names a store and --server a server"},
		{none, flag, flag, none, false, "--database names a store and --server a server"},
		{env, flag, flag, none, false, "--database names a store and --server a server"},
	} {
		store, err := naming{c.data, c.database, c.server, c.config}.store()
		if store != c.store || (err == nil) != (c.refuses == "") || err != nil && !strings.Contains(err.Error(), c.refuses) {
			t.Errorf("%+v: store %t, error %v", c, store, err)
		}
	}
}

// Which server a command calls: the flag or the variable, the latest login, the default.
// A login does not say where to send a key.
func TestTheServerOfACommand(t *testing.T) {
	file := filepath.Join(t.TempDir(), "credentials.json")
	t.Setenv(clilogin.Variable, file)
	logins := `{"logins":{"https://old.example":{"since":"2026-01-01T00:00:00Z"},"https://new.example":{"since":"2026-02-01T00:00:00Z"}}}`
	for _, c := range []struct {
		server, key string
		signedIn    bool
		want        string
	}{
		{"", "", false, defaultServer},
		{"", "k", false, defaultServer},
		{"https://a.example/", "", false, "https://a.example"},
		{"", "", true, "https://new.example"},
		{"", "k", true, defaultServer},
		{"https://a.example", "", true, "https://a.example"},
	} {
		_ = os.Remove(file)
		if c.signedIn {
			if err := os.WriteFile(file, []byte(logins), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		f := connection{Server: c.server, Key: c.key}
		if got, err := f.resolve(); err != nil || got != c.want {
			t.Errorf("%+v: %q, %v", c, got, err)
		}
	}
}

// A variable that names a server is honoured by every command that can work on one.
func TestCommandsGoToTheServerThatTheEnvironmentNames(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("PARLEY_SERVER", site.url)
	t.Setenv("PARLEY_KEY", site.key)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"agent", "create", "t-scout", "--name", "Scout"}, `created agent "t-scout" in org "main" on ` + site.url},
		{[]string{"user", "create", "t-ada"}, `created user "t-ada" in org "main" on ` + site.url},
		{[]string{"service", "create", "t-crm"}, `created service "t-crm" in org "main" on ` + site.url},
		{[]string{"user", "promote", "t-ada"}, `user "t-ada" is an admin in org "main" on ` + site.url},
		{[]string{"user", "demote", "t-ada"}, `user "t-ada" is not an admin in org "main" on ` + site.url},
		{[]string{"key", "create", "--as", "agent:t-scout", "--scope", "svc:tasks:read", "--expires", "30d"}, `in org "main" on ` + site.url},
		{[]string{"agent", "list"}, "t-scout"},
		{[]string{"user", "list"}, "t-ada"},
		{[]string{"service", "list"}, "t-crm"},
		{[]string{"key", "list"}, "agent:t-scout"},
		{[]string{"member", "disable", "user:t-ada"}, `disabled user:t-ada in org "main" on ` + site.url},
	} {
		code, stdout, stderr := run(t, c.args...)
		if code != exitOK || !strings.Contains(stdout+stderr, c.want) {
			t.Errorf("%v: code %d, want %q in\n%s%s", c.args, code, c.want, stdout, stderr)
		}
	}
	// The same on the store, and its name in the success line.
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"agent", "create", "s-scout", "--name", "Scout"}, `created agent "s-scout" in org "main" in store ` + site.data},
		{[]string{"service", "create", "s-crm"}, `created service "s-crm" in org "main" in store ` + site.data},
		{[]string{"key", "create", "--as", "user:admin", "--scope", "svc:tasks:read"}, `in org "main" in store ` + site.data},
		{[]string{"agent", "list"}, "s-scout"},
		{[]string{"user", "list"}, "t-ada"},
	} {
		code, stdout, stderr := run(t, append(c.args, "--data", site.data)...)
		if code != exitOK || !strings.Contains(stdout+stderr, c.want) {
			t.Errorf("%v: code %d, want %q in\n%s%s", c.args, code, c.want, stdout, stderr)
		}
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 0 {
		t.Error("a command wrote to the current folder:", files, err)
	}
}

// Variables that name a store do not split the commands about agents, users and keys over
// two targets.
func TestAStoreInTheEnvironmentIsForTheOperator(t *testing.T) {
	t.Setenv("PARLEY_DATA", emptyStore(t))
	t.Setenv("PARLEY_SERVER", site.url)
	t.Setenv("PARLEY_KEY", site.key)
	for _, args := range [][]string{{"agent", "create", "env-scout", "--name", "Scout"}, {"agent", "disable", "env-scout"}} {
		if code, _, stderr := run(t, args...); code != exitOK {
			t.Errorf("%v: code %d, %s", args, code, stderr)
		}
	}
	if code, stdout, stderr := run(t, "org", "list", "--json"); code != exitOK || !strings.Contains(stdout, `"main"`) {
		t.Error(code, stdout, stderr)
	}
}

// An empty value, such as that of an unset variable of the shell, never means another target
// or another principal.
func TestEmptyValuesAreRefused(t *testing.T) {
	t.Setenv("PARLEY_SERVER", site.url)
	t.Setenv("PARLEY_KEY", site.key)
	t.Chdir(t.TempDir())
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"proposal", "list", "--server", ""}, "--server must not be empty"},
		{[]string{"agent", "list", "--server="}, "--server must not be empty"},
		{[]string{"login", "--server", ""}, "--server must not be empty"},
		{[]string{"proposal", "list", "--org", ""}, "--org must not be empty"},
		{[]string{"agent", "list", "--data", ""}, "--data must"},
		{[]string{"agent", "list", "--database", ""}, "--database must not be empty"},
		{[]string{"org", "create", "x", "--database", ""}, "--database must not be empty"},
		{[]string{"serve", "--database", ""}, "--database must not be empty"},
		{[]string{"proposal", "show", ""}, "ID must not be empty"},
		{[]string{"proposal", "list", "--key", ""}, "no API key and no login"},
		{[]string{"proposal", "show", "\xff"}, "is not valid UTF-8"},
	} {
		code, stdout, stderr := run(t, c.args...)
		if code != exitUsage || stdout != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("%q: code %d, stdout %q, stderr %q; want %q", c.args, code, stdout, stderr, c.want)
		}
	}
	if files, err := os.ReadDir("."); err != nil || len(files) != 0 {
		t.Error("a command wrote to the current folder:", files, err)
	}
}

// An empty --key is no key, and not that of a login.
func TestAnEmptyKeyIsNotTheLogin(t *testing.T) {
	file := filepath.Join(t.TempDir(), "credentials.json")
	t.Setenv(clilogin.Variable, file)
	stored := `{"logins":{"` + site.url + `":{"org":"main","access_token":"` + site.key + `","expires_at":"2100-01-01T00:00:00Z"}}}`
	if err := os.WriteFile(file, []byte(stored), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := run(t, "proposal", "list"); code != exitOK {
		t.Fatal("the login does not work:", stderr)
	}
	if code, _, stderr := run(t, "proposal", "list", "--key="); code != exitUsage {
		t.Error(code, stderr)
	}
}

// Flags that name the wrong sort of target say so.
func TestWrongTargetsAreExplained(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"agent", "list", "--data", "x", "--server", "http://x"}, "--data names a store and --server a server; give one of them"},
		{[]string{"org", "list", "--server", "http://x"}, "parley org list is for the operator and works on a store"},
		{[]string{"admin", "link", "--user", "x", "--server", "http://x"}, "parley admin link is for the operator"},
		{[]string{"agent", "release", "x", "--server", "http://x"}, "parley agent release is for the operator"},
		{[]string{"proposal", "list", "--data", "x"}, "parley proposal list works on a server (--server), not on a store"},
		{[]string{"key", "rotate", "key-x", "--database", "postgres://x"}, "parley key rotate works on a server (--server)"},
		{[]string{"proposal", "list", "--server", "http://ada:secret@x"}, "--server must have no user, password,"},
		{[]string{"proposal", "list", "--server", "http://ada:secret@x y:z"}, "--server must be a URL without a user"},
		{[]string{"proposal", "list", "--server", "http://x/?q=1"}, "--server must have no user, password, query or fragment"},
		{[]string{"followup", "assign", "fup-x", "bogus", "--key", "k"}, "ASSIGNEE must be user:ID, agent:ID or none"},
		{[]string{"org", "create", "acme"}, `data folder "./parley-data" not found`},
		{[]string{"migrate", "--data", "no/such/folder"}, `data folder "no/such/folder" not found`},
		{[]string{"admin", "link", "--user", "admin", "--data", emptyStore(t)}, "--public-url is needed"},
	} {
		code, stdout, stderr := run(t, c.args...)
		if code == exitOK || stdout != "" || !strings.Contains(stderr, c.want) || strings.Contains(stderr, "secret") {
			t.Errorf("%v: code %d, stdout %q, stderr %q; want %q", c.args, code, stdout, stderr, c.want)
		}
	}
}

// emptyStore makes a store with an org that no server runs on.
func emptyStore(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	if code, _, stderr := run(t, "org", "create", "main", "--data", dir); code != exitOK {
		t.Fatal(stderr)
	}
	if code, _, stderr := run(t, "user", "create", "admin", "--data", dir); code != exitOK {
		t.Fatal(stderr)
	}
	return dir
}

// A link begins with the URL of the server that runs on the store.
func TestAdminLinkNamesTheRunningServer(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := run(t, "admin", "link", "--user", "admin", "--data", site.data)
	if code != exitOK || !strings.HasPrefix(stdout, site.url+"/setup/") {
		t.Error(code, stdout, stderr)
	}
}

// A server that was killed leaves the file with its URL behind; the link must not name the server
// that has taken its port.
func TestAdminLinkIgnoresAServerThatIsGone(t *testing.T) {
	t.Parallel()
	dir := emptyStore(t)
	if err := os.WriteFile(filepath.Join(dir, "server.url"), []byte(site.url+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := run(t, "admin", "link", "--user", "admin", "--data", dir)
	if code != exitUsage || !strings.Contains(stderr, "--public-url is needed") {
		t.Errorf("exit code %d, %q, %q; want a question for --public-url", code, stdout, stderr)
	}
	code, _, stderr = run(t, "admin", "link", "--user", "admin", "--data", dir, "--public-url", "javascript:alert(1)")
	if code != exitUsage || !strings.Contains(stderr, "--public-url must start with http") {
		t.Errorf("exit code %d, %q; want the URL refused", code, stderr)
	}
}
