package cli

import (
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
)

func manPages(t *testing.T) map[string][]byte {
	t.Helper()
	pages, err := ManPages("1.2.3", time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	return pages
}

// TestManPagesSayWhatTheHelpSays: every command has a page, with every flag and variable.
func TestManPagesSayWhatTheHelpSays(t *testing.T) {
	t.Parallel()
	pages := manPages(t)
	k, err := newParser(io.Discard, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	_ = kong.Visit(k.Model, func(node kong.Visitable, next kong.Next) error {
		n, _ := node.(*kong.Node)
		if app, ok := node.(*kong.Application); ok {
			n = app.Node
		}
		if n == nil || n.Hidden {
			return next(nil)
		}
		count++
		page := string(pages[strings.ReplaceAll(n.FullPath(), " ", "-")+".1"])
		want := []string{".TH ", `.SH "NAME"`, `.SH "SYNOPSIS"`, `.SH "EXAMPLES"`, "2026\\-01\\-31", "parley 1.2.3"}
		for _, f := range n.Flags {
			if !f.Hidden {
				want = append(want, roff(f.Name)+`\fR`)
			}
		}
		for _, c := range n.Children {
			want = append(want, roff(pageName(c))+`\fR(1)`)
		}
		for _, w := range want {
			if !strings.Contains(page, w) {
				t.Errorf("the page of %s lacks %s", n.FullPath(), w)
			}
		}
		return next(nil)
	})
	if count != len(pages) || count < 50 {
		t.Errorf("%d pages for %d commands", len(pages), count)
	}
}

// TestManPagesAreValid has groff format all of them, with all warnings on.
func TestManPagesAreValid(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pages := manPages(t)
	args := []string{"-man", "-ww", "-z", "-Tutf8"}
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pages[name], 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, path)
	}
	if out, err := exec.Command("groff", args...).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("groff: %v\n%s", err, out)
	}
	out, err := exec.Command("groff", "-man", "-Tascii", "-P-cbou", filepath.Join(dir, "parley-serve.1")).Output()
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(string(out)), " ")
	for _, want := range []string{"--tls-cert FILE", "PARLEY_TLS_CERT", `{"listen": "127.0.0.1:9000"`, "parley serve --demo"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page of serve lacks %q:\n%s", want, out)
		}
	}
}

func TestRoffPrintsTextAsItIs(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		".hidden": `\&.hidden`, "'x'": `\(aqx\(aq`, `a\b`: `a\(rsb`, "--flag": `\-\-flag`, "a…": `a\[u2026]`, "~": `\(ti`,
	} {
		if got := roff(in); got != want {
			t.Errorf("roff(%q) = %q, want %q", in, got, want)
		}
	}
}
