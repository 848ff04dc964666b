package cli

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
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
