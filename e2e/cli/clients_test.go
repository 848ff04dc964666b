package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestClientsDocument runs the lines of docs/clients.md in one shell session and
// compares what is printed with what it shows. The examples in JavaScript and Python are
// run elsewhere; here their quotes must be in them.
func TestClientsDocument(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	shims(t, dir)
	srv, err := startServer(dir, cleanEnv(dir), "--push-allow", "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Kill)
	blocks := fenced(t, "docs/clients.md")
	examples := map[string]string{
		"go": sources(t, "client/main.go", "a2a-go/main.go"), "js": sources(t, "a2a-js/v1.mjs", "a2a-js/v03.mjs"),
		"python": sources(t, "a2a-python/v1.py", "a2a-python/v03.py", "a2a-python/adk.py"),
		"java":   sources(t, "a2a-java/src/main/java/Main.java"),
	}
	script := "set -e\nexport PARLEY_KEY=" + srv.Key + "\n"
	ran := map[int]int{} // block → its place in the script's output
	for i, b := range blocks {
		switch b.lang {
		case "sh":
			ran[i] = len(ran)
			script += fmt.Sprintf("%sprintf '%s'\n", b.text, separator)
		case "go", "js", "python", "java":
			if !strings.Contains(examples[b.lang], b.text) {
				t.Errorf("docs/clients.md:%d is not in the example", b.line)
			}
		}
	}
	for _, b := range fenced(t, "docs/mcp.md") {
		if b.lang == "python" && !strings.Contains(sources(t, "mcp-python/client.py"), b.text) {
			t.Errorf("docs/mcp.md:%d is not in the example", b.line)
		}
	}
	outputs := runSession(t, dir, srv, script)
	for i, b := range blocks {
		if b.lang != "text" {
			continue
		}
		if diff := cmp.Diff(normal(b.text), normal(outputs[ran[lastCommand(blocks, i)]])); diff != "" {
			t.Errorf("docs/clients.md:%d shows something else (-document +real):\n%s", b.line, diff)
		}
	}
}

func sources(t *testing.T, names ...string) (all string) {
	t.Helper()
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join("../../examples", name))
		if err != nil {
			t.Fatal(err)
		}
		all += string(data)
	}
	return all
}
