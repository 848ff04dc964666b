package cli

import (
	"bytes"
	"context"
	"io"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"
)

// TestTheParserOfOneCommandIsThatOfAll: Main builds the parser of the named command only. Its commands
// have the flags and texts that they have in the parser of all commands.
func TestTheParserOfOneCommandIsThatOfAll(t *testing.T) {
	t.Parallel()
	all, err := newParser(io.Discard, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range all.Model.Children {
		one, err := newParser(io.Discard, io.Discard, only(want.Name))
		if err != nil {
			t.Fatal(err)
		}
		if n := len(one.Model.Children); n != 1 {
			t.Fatalf("%s: %d commands; want one", want.Name, n)
		}
		got := one.Model.Children[0]
		if diff := cmp.Diff(described(want), described(got)); diff != "" {
			t.Errorf("%s (-all +one):\n%s", want.Name, diff)
		}
	}
}

// described returns the manual pages of a command and its subcommands, and what completion offers.
func described(n *kong.Node) []string {
	var words bytes.Buffer
	_ = complete(n, []string{"--"}, &words)
	out := []string{string(manPage(n, "1.2.3", time.Time{})), words.String()}
	for _, c := range n.Children {
		out = append(out, described(c)...)
	}
	return out
}

func TestTheParserOfOneCommandFailsLikeThatOfAll(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"key"},
		{"key", "crate"},
		{"key", "nope"},
		{"key", "list", "--orgg", "x"},
		{"key", "--nope"},
		{"key", "proposal"},
		{"key", "create"},
		{"proposal", "submit", "--title"},
		{"proposal", "show"},
		{"proposal", "vote"},
		{"task", "list", "--limit", "many"},
		{"serve", "extra"},
		{"serve", "--rate-limit", "many"},
		{"version", "key"},
		{"completion", "tcsh"},
		{"mcp", "--nope"},
		{"help", "--nope"},
		{"explain"},
		{"Key"},
		{""},
		{"--", "version", "x"},
		{"--json", "key", "list"},
		{"ky", "list"},
		{"key", "list", "--help", "--nope"},
	} {
		var want, got bytes.Buffer
		wantCode, gotCode := failWith(&want, args), failWith(&got, args, only(args[0]))
		if diff := cmp.Diff(want.String(), got.String()); diff != "" || wantCode != gotCode {
			t.Errorf("%q: code %d, want %d (-all +one):\n%s", args, gotCode, wantCode, diff)
		}
		var out, stderr bytes.Buffer
		if Main(context.Background(), args, nil, &out, &stderr); out.String()+stderr.String() != want.String() {
			t.Errorf("%q prints %q; want %q", args, out.String()+stderr.String(), want.String())
		}
	}
}

func failWith(w io.Writer, args []string, options ...kong.Option) (code int) {
	defer func() {
		if end, ok := recover().(exit); ok {
			code = int(end)
		}
	}()
	k, err := newParser(w, w, options...)
	if err == nil {
		_, err = k.Parse(args)
	}
	return report(w, err)
}
