package cli

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"
)

func run(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = Main(t.Context(), args, strings.NewReader(""), &out, &err)
	return code, out.String(), err.String()
}

// TestEveryCommandHasExamplesAndJSON walks the whole command tree.
func TestEveryCommandHasExamplesAndJSON(t *testing.T) {
	t.Parallel()
	k, err := newParser(io.Discard, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var walk func(n *kong.Node)
	walk = func(n *kong.Node) {
		if !strings.Contains(n.Detail, "Examples:") {
			t.Errorf("%s: the help has no examples", n.FullPath())
		}
		if n.Help == "" {
			t.Errorf("%s: no help", n.FullPath())
		}
		hasJSON := false
		for _, f := range n.Flags {
			hasJSON = hasJSON || f.Name == "json"
		}
		if n.Leaf() && !hasJSON {
			t.Errorf("%s: no --json", n.FullPath())
		}
		for _, c := range n.Children {
			walk(c)
		}
	}
	walk(k.Model.Node)
}

// TestTheTargetOfEveryCommand lists which commands work on a store only, which on both, and
// checks that the help of the former says so. All others work on a server.
func TestTheTargetOfEveryCommand(t *testing.T) {
	t.Parallel()
	k, err := newParser(io.Discard, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var store, both []string
	for _, n := range k.Model.Leaves(true) {
		has := map[string]bool{}
		for _, f := range n.Flags {
			has[f.Name] = true
		}
		switch {
		case has["data"] != has["database"]:
			t.Errorf("%s has one of --data and --database only", n.FullPath())
		case has["data"] && has["server"]:
			both = append(both, n.Path())
			_, help, _ := run(t, append(strings.Fields(n.Path()), "--help")...)
			for _, name := range []string{"PARLEY_DATA", "PARLEY_DATABASE", "--config"} {
				if strings.Contains(help, name) {
					t.Errorf("the help of %s has %s, which names no store there", n.FullPath(), name)
				}
			}
		case has["data"]:
			store = append(store, n.Path())
			if !strings.Contains(n.Detail, "For the operator") {
				t.Errorf("the help of %s does not say that it is for the operator", n.FullPath())
			}
		case !has["server"] && !slices.Contains([]string{"completion", "help", "version"}, n.Name):
			t.Errorf("%s has no target", n.FullPath())
		}
	}
	slices.Sort(store)
	slices.Sort(both)
	_, help, _ := run(t, "--help")
	help = strings.Join(strings.Fields(help), " ")
	if want := "agent create|list, user, service, member erase, and key create|list|revoke."; !strings.Contains(help, want) {
		t.Errorf("the overview does not list the commands on both, %q:\n%s", want, help)
	}
	if diff := cmp.Diff([]string{
		"admin link", "agent release", "backup", "check", "compact", "doctor", "migrate", "org create", "org delete",
		"org export", "org import", "org list", "restore", "secrets add-key", "secrets drop-lost", "secrets rotate",
		"secrets status", "serve",
	}, store); diff != "" {
		t.Errorf("on a store only (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{
		"agent create", "agent list", "key create", "key list", "key revoke", "member erase", "service create",
		"service list", "user create", "user demote", "user list", "user promote",
	}, both); diff != "" {
		t.Errorf("on both (-want +got):\n%s", diff)
	}
}

func TestHelpEndsWell(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--help"}, {}, {"proposal", "--help"}, {"key", "create", "--help"}} {
		code, stdout, stderr := run(t, args...)
		if code != exitOK || !strings.Contains(stdout, "Examples:") || stderr != "" {
			t.Errorf("%v: code %d, stderr %q, stdout:\n%s", args, code, stderr, stdout)
		}
	}
}

func TestWrongCallsAre2AndSayHow(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"nonsense"},
		{"proposal"},
		{"proposal", "show"},
		{"proposal", "list", "--nonsense"},
		{"key", "create", "--org", "main"},
		{"serve", "--rate-limit", "many"},
		{"proposal", "list", "--key", "k", "--server", "x"},
		{"followup", "create", "--key", "k"},
		{"serve", "extra"},
	} {
		code, stdout, stderr := run(t, args...)
		if code != exitUsage || stdout != "" || !strings.HasPrefix(stderr, "parley: ") {
			t.Errorf("%v: code %d, stdout %q, stderr %q", args, code, stdout, stderr)
		}
	}
}

func TestUnknownCommandsAreNamed(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"foo":                   `unknown command "foo"; run "parley help"`,
		"proposal foo":          `unknown command "proposal foo"; run "parley help proposal"`,
		"prposal":               `unknown command "prposal"; did you mean "proposal"?`,
		"proposal lst":          `unknown command "proposal lst"; did you mean "list"?`,
		"proposal resolve p q":  "unexpected argument q\nRun \"parley proposal resolve --help\" to see how it is used.",
		"member create agent:x": "parley member create creates users and services; create the agent with: parley agent create x",
	} {
		code, _, stderr := run(t, strings.Fields(args)...)
		if code != exitUsage || stderr != "parley: "+want+"\n" {
			t.Errorf("%s: code %d, stderr %q; want %q", args, code, stderr, want)
		}
	}
}

func TestStdinIsReadOnce(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"friction", "report", "f", "--title=T", "--category=process", "--problem=@-", "--evidence=@-"},
		{"friction", "report", "f", "--title=T", "--category=process", "--problem=P", "--fix=@-", "--evidence=@-"},
		{"proposal", "submit", "--title=T", "--category=process", "--problem=@-", "--fix=@-"},
		{"proposal", "edit", "prop-x", "--problem=@-", "--fix=@-"},
	} {
		code, _, stderr := run(t, append(args, "--server", site.url, "--key", site.key)...)
		if code != exitUsage || !strings.Contains(stderr, "stdin can be read only once; give one of --") {
			t.Errorf("%v: code %d, stderr %q", args, code, stderr)
		}
	}
}

// A short overlap is not none.
func TestOverlapsAreRoundedUp(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"key", "rotate", "key-x"}, {"client", "rotate", "client-x"}, {"webhook", "rotate", "hook-x"},
	} {
		var body []byte
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				body, _ = io.ReadAll(r.Body)
			}
			w.WriteHeader(http.StatusForbidden)
		}))
		run(t, append(args, "--overlap", "300ms", "--org", "main", "--server", srv.URL, "--key", "k")...)
		srv.Close()
		if want := `{"overlap_seconds":1}`; string(body) != want {
			t.Errorf("%v sent %q; want %q", args, body, want)
		}
	}
}

// The lines of success name what changed.
func TestSuccessLinesNameTheTarget(t *testing.T) {
	t.Parallel()
	at := []string{"--server", site.url, "--key", site.key}
	done := func(args ...string) string {
		code, stdout, stderr := run(t, append(args, at...)...)
		if code != exitOK {
			t.Fatalf("%v: code %d, stderr %q", args, code, stderr)
		}
		return stdout
	}
	id := strings.TrimSpace(done("proposal", "submit", "--title=T", "--category=process", "--problem=P", "--fix=F", "--quiet"))
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"proposal", "vote", id, "for"}, `voted for on proposal "` + id + `"; 1 for, 0 against`},
		{[]string{"proposal", "vote", id, "against"}, `changed your vote to against on proposal "` + id + `"; 0 for, 1 against`},
		{[]string{"proposal", "withdraw", id}, `withdrew your vote on proposal "` + id + `"; 0 for, 0 against`},
		{
			[]string{"friction", "report", "a:b", "--title=T", "--category=process", "--problem=P", "--occurrence=1"},
			`reported friction "a:b": report 1 of the `,
		},
		{
			[]string{"friction", "report", "a:b", "--title=T", "--category=process", "--problem=P", "--occurrence=1"},
			`you had reported this occurrence of friction "a:b" before; it has 1 reports`,
		},
	} {
		if got := done(c.args...); !strings.HasPrefix(got, c.want) {
			t.Errorf("%v printed %q; want %q", c.args, got, c.want)
		}
	}
}

func TestTextArguments(t *testing.T) {
	t.Parallel()
	e := &env{stdin: strings.NewReader("from stdin")}
	for in, want := range map[string]string{"plain": "plain", "": "", "@@at": "@at", "@-": "from stdin"} {
		if got, err := e.readText(in); got != want || err != nil {
			t.Errorf("readText(%q) = %q, %v; want %q", in, got, err, want)
		}
	}
	e.stdin = strings.NewReader(strings.Repeat("x", maxInput+1))
	if _, err := e.readText("@-"); err == nil {
		t.Error("an endless input was read")
	}
}
