package e2e

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/servertest"
)

// TestOrgImportAndDeleteAreKilled: an import or a deletion that ends at any moment leaves a store in
// which the next one completes, and other orgs are not harmed.
func TestOrgImportAndDeleteAreKilled(t *testing.T) {
	t.Parallel()
	source := engine{"sqlite", []string{"--data", t.TempDir()}}
	s := serve(t, source, calm...)
	w := &submitting{server: s}
	w.start(t, 4)
	w.until(t, 600)
	w.stop()
	file := filepath.Join(t.TempDir(), "main.backup")
	s.cli(t, "org", "export", "main", file)
	want := len(w.acknowledged())
	eachEngine(t, func(t *testing.T, e engine) {
		parley := func(args ...string) string {
			t.Helper()
			out, err := servertest.Run(exec.Command(program, append(args, e.data...)...))
			if err != nil {
				t.Fatal(err)
			}
			return out
		}
		parley("org", "create", "elsewhere")
		parley("user", "create", "someone", "--org", "elsewhere")
		imports := killedUntil(t, "exists already", append([]string{"org", "import", file}, e.data...)...)
		parley("check")
		r := serve(t, e, calm...)
		if total, have := allProposals(t, r.base, s.key); total != want || len(have) != want {
			t.Errorf("%d proposals and a total of %d after %d kills, want %d", len(have), total, imports, want)
		}
		var found struct{ Total int }
		readPage(t, r.base+"/api/v1/orgs/main/proposals?q=repair&limit=1", s.key, &found)
		if found.Total != want {
			t.Errorf("a search finds %d proposals, want %d", found.Total, want)
		}
		r.stop(t)
		deletions := killedUntil(t, "not found", append([]string{"org", "delete", "main", "--yes"}, e.data...)...)
		parley("check")
		list := parley("org", "list", "--json")
		if strings.Contains(list, `"main"`) || !strings.Contains(list, `"elsewhere"`) {
			t.Errorf("the orgs are %s", list)
		}
		if users := parley("user", "list", "--org", "elsewhere", "--json"); !strings.Contains(users, `"someone"`) {
			t.Errorf("the other org has the users %s", users)
		}
		t.Logf("%d imports and %d deletions were killed", imports, deletions)
	})
}

// killedUntil runs a command again and again, and kills it later each time, until it ends by itself. It
// may fail with the message then, if it was killed behind its last step. It returns how often it was
// killed.
func killedUntil(t *testing.T, done string, args ...string) (kills int) {
	t.Helper()
	for after := 10 * time.Millisecond; ; after = after * 3 / 2 {
		cmd := exec.Command(program, args...)
		var said strings.Builder
		cmd.Stdout, cmd.Stderr = &said, &said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		timer := time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
		err := cmd.Wait()
		timer.Stop()
		if cmd.ProcessState.ExitCode() < 0 {
			kills++
			continue
		}
		if err != nil && !strings.Contains(said.String(), done) {
			t.Fatalf("after %d kills: %v, %s", kills, err, said.String())
		}
		if kills == 0 {
			t.Error("no command was killed, want some")
		}
		return kills
	}
}
