package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/servertest"
)

// block is one fenced part of a document.
type block struct {
	line int
	lang string
	text string
}

func fenced(t *testing.T, document string) []block {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("../..", document))
	if err != nil {
		t.Fatal(err)
	}
	var out []block
	inside := false
	for i, line := range strings.Split(string(data), "\n") {
		lang, fence := strings.CutPrefix(line, "```")
		switch {
		case fence && !inside:
			inside = true
			out = append(out, block{line: i + 1, lang: lang})
		case fence:
			inside = false
		case inside:
			out[len(out)-1].text += line + "\n"
		}
	}
	return out
}

// TestReadme runs what the README tells people to type, in one shell session, and
// compares what is printed with what the README shows.
func TestReadme(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	shims(t, dir)
	blocks := fenced(t, "README.md")
	var srv *servertest.Process
	var script strings.Builder
	script.WriteString("set -e\n")
	ran := map[int]int{} // block → its place in the script's output
	for i, b := range blocks {
		switch {
		case b.lang == "sh" && strings.HasSuffix(b.text, " serve\n"):
			s, err := startServer(dir, cleanEnv(dir))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(s.Kill)
			srv = s
		case b.lang == "sh" && !runnable(b):
			t.Logf("README.md:%d is not run: there is no python3 here", b.line)
		case b.lang == "sh":
			ran[i] = len(ran)
			fmt.Fprintf(&script, "%sprintf '%s'\n", b.text, separator)
		case b.lang == "go":
			// It is a part of an example, which a script runs.
			whole, err := os.ReadFile("../../examples/go/main.go")
			if err != nil || !strings.Contains(string(whole), b.text) {
				t.Errorf("README.md:%d is not in examples/go/main.go (%v)", b.line, err)
			}
		case b.lang == "python":
			name, _, _ := strings.Cut(strings.TrimPrefix(b.text, "# "), "\n")
			if err := os.WriteFile(filepath.Join(dir, name), []byte(b.text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	outputs := runSession(t, dir, srv, script.String())
	for i, b := range blocks {
		if b.lang != "text" || !runnable(blocks[lastCommand(blocks, i)]) {
			continue
		}
		got := srv.Stdout.String() + srv.Stderr.String()
		if at, ok := ran[lastCommand(blocks, i)]; ok {
			got = outputs[at]
		}
		if diff := cmp.Diff(normal(b.text), normal(got)); diff != "" {
			t.Errorf("README.md:%d shows something else (-README +real):\n%s", b.line, diff)
		}
	}
}

// runnable reports whether this machine has what a block needs: the README asks
// for Go alone, and Python is one agent's choice.
func runnable(b block) bool {
	_, err := exec.LookPath("python3")
	return err == nil || !strings.Contains(b.text, "python3")
}

const separator = `\036` // cannot occur in what the commands print

// lastCommand is the command whose output block i shows.
func lastCommand(blocks []block, i int) int {
	for ; blocks[i].lang != "sh"; i-- {
	}
	return i
}

func runSession(t *testing.T, dir string, srv *servertest.Process, script string) []string {
	t.Helper()
	// The reader pastes the key and the address of their own server.
	script = servertest.Secret.ReplaceAllString(script, srv.Key)
	script = strings.ReplaceAll(script, "http://127.0.0.1:8080", srv.URL)
	sh := exec.Command("sh", "-c", script)
	sh.Dir = dir
	sh.Env = cleanEnv(dir, "PARLEY_SERVER="+srv.URL)
	sh.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // what it leaves in the background ends with the test
	t.Cleanup(func() { _ = syscall.Kill(-sh.Process.Pid, syscall.SIGTERM) })
	sh.Env[0] = "PATH=" + filepath.Join(dir, "shims") + string(os.PathListSeparator) + strings.TrimPrefix(sh.Env[0], "PATH=")
	out, err := sh.CombinedOutput()
	if err != nil {
		t.Fatalf("the document's commands failed: %v\n%s", err, out)
	}
	return strings.Split(string(out), "\x1e")
}

// shims stand in for what this test has done already (building) or must not do
// (running all tests inside a test).
func shims(t *testing.T, dir string) {
	t.Helper()
	if err := os.Mkdir(filepath.Join(dir, "shims"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"go": "case $* in 'install ./cmd/parley') ;; 'run ./examples/go') exec go-worker ;; " +
			"'run ./examples/a2a-go '*) shift 2; exec go-client \"$@\" ;; 'run ./examples/client '*) shift 2; exec own-client \"$@\" ;; *) exit 1 ;; esac",
		"make": "test \"$*\" = test",
	} {
		text = "#!/bin/sh\n" + text + "\n"
		if err := os.WriteFile(filepath.Join(dir, "shims", name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
}

// what differs from one run to the next
var varying = []struct {
	pattern *regexp.Regexp
	stand   string
}{
	{regexp.MustCompile(`\b(prop|fup|key|ctx|artifact|t)-[0-9a-z]{26}`), "$1-ID"},
	{regexp.MustCompile(`\bcli-[0-9a-z]{16}`), "cli-ID"},
	{servertest.Secret, "KEY"},
	{regexp.MustCompile(`/setup/[\w-]{43}`), "/setup/TOKEN"},
	{regexp.MustCompile(`http://127\.0\.0\.1:\d+`), "ADDRESS"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?Z)?`), "TIME"},
	{regexp.MustCompile(`\b\d\d:\d\d:\d\d\b`), "TIME"},
	{regexp.MustCompile(`version=\S+`), "version=V"},
	{regexp.MustCompile(`"version":"[^"]*"`), `"version":"V"`},
}

func normal(s string) string {
	for _, v := range varying {
		s = v.pattern.ReplaceAllString(s, v.stand)
	}
	return strings.TrimSpace(s)
}
