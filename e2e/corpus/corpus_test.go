package corpus

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/pgtest"
)

// topics are the scripts, by the name of their transcript and of their org.
var topics = map[string]func(s *session){
	"limits":    limits,
	"system":    system,
	"oauth":     oauth,
	"push":      push,
	"access":    access,
	"mcp":       mcp,
	"grpc":      overGRPC,
	"spec":      spec,
	"workers":   workers,
	"v1":        v1,
	"v03":       v03,
	"binding":   binding,
	"cards":     cards,
	"proposals": proposals,
	"followups": followups,
	"friction":  friction,
	"keys":      keys,
	"members":   members,
	"clients":   clients,
	"events":    feed,
}

// TestWire runs all topics on both engines and compares them with their transcripts.
func TestWire(t *testing.T) {
	engines := []struct {
		name string
		data func(t *testing.T) []string
	}{
		{"sqlite", func(t *testing.T) []string { return []string{"--data", t.TempDir()} }},
		{"postgres", func(t *testing.T) []string { return []string{"--database", pgtest.URL(t)} }},
	}
	for i, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			seen := newCoverage()
			s := serve(t, e.data(t)...)
			t.Run("topics", func(t *testing.T) {
				for name, script := range topics {
					t.Run(name, func(t *testing.T) {
						t.Parallel()
						run(t, newSession(t, s, name, seen), script, *update && i == 0)
					})
				}
			})
			if seen.ran == len(topics) { // else -run chose some, or one failed
				seen.check(t, s)
			}
		})
	}
}

// TestTranscripts fails if a transcript was left behind by a topic that is gone.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if name := strings.TrimSuffix(filepath.Base(file), ".txt"); topics[name] == nil {
			t.Errorf("got %s, want a topic of that name, or no such file", file)
		}
	}
}

// run runs a script and compares its transcript with the kept one, or keeps it.
func run(t *testing.T, s *session, script func(s *session), keep bool) {
	t.Cleanup(func() {
		if t.Failed() && s.unfinished {
			t.Logf("the transcript so far ends:\n%s", s.out.Bytes()[max(0, s.out.Len()-3000):])
		}
	})
	s.unfinished = true
	script(s)
	s.unfinished = false
	s.seen.finished()
	if len(s.unknown) > 0 {
		t.Errorf("the script uses %v, want only values of earlier responses", s.unknown)
	}
	path := filepath.Join("testdata", s.org+".txt")
	if keep {
		if err := os.WriteFile(path, s.out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), s.out.String()); d != "" {
		t.Errorf("the wire has changed (-%s +got); if that is wanted: go test ./e2e/corpus -update\n%s", path, d)
	}
}
