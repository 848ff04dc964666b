//go:build sdkcheck

package sdkcheck

import (
	"bytes"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/parley-dev/parley/internal/pgtest"
)

// TestTheContractSaysWhatTheServerDoes runs schemathesis on the document that the server serves:
// examples, every rule at and beyond its limits, random data, and sequences of calls along the
// document's links. The seed is fixed, so that a run can be repeated.
func TestTheContractSaysWhatTheServerDoes(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) { holdToContract(t, []string{"--data", t.TempDir()}) })
	t.Run("postgres", func(t *testing.T) { holdToContract(t, []string{"--database", pgtest.URL(t)}) })
}

func holdToContract(t *testing.T, data []string) {
	s := serve(t, data)
	s.cli(t, "service", "create", "crm", "--org", "main")
	s.cli(t, "user", "create", "tester", "--org", "main")
	s.cli(t, "agent", "create", "worker", "--org", "main", "--name", "Worker")
	key := s.newKey(t, "user:tester", "svc:tasks:read", "svc:tasks:write", "svc:admin:admin", "svc:a2a:write",
		"svc:a2a:serve", "agent:*")
	for i := range 100 { // for claims
		s.send(t, key, i)
	}
	dir := t.TempDir()
	for _, name := range []string{"schemathesis.toml", "hooks.py"} {
		copyFile(t, name, filepath.Join(dir, name))
	}
	document := s.document(t, dir)
	check := func(args ...string) string {
		t.Helper()
		line := append([]string{"--no-color", "--config-file", "schemathesis.toml", "run", "--url", s.base, "--seed", "1"},
			args...)
		said, err := try(t, dir, []string{"PARLEY_KEY=" + key, "COLUMNS=160"}, python(t, "st"), append(line, document)...)
		if err != nil {
			t.Errorf("schemathesis %s: %v\n%s", strings.Join(args, " "), err, said[:min(len(said), 100_000)])
		}
		return said
	}
	check("--phases", "examples,coverage,fuzzing")
	// Separately, because a random walk through everything gets nowhere.
	for _, tags := range [][]string{
		{"Proposals", "Votes"},
		{"Tasks", "Friction"},
		{"Agents", "A2A", "A2A tasks"},
		{"Workers"},
		{"Keys"},
		{"Own keys"},
		{"Members"},
		{"Clients", "Audit"},
	} {
		args := []string{"--phases", "stateful"}
		for _, tag := range tags {
			args = append(args, "--include-tag", tag)
		}
		said := check(args...)
		m := linksPattern.FindStringSubmatch(said)
		if m == nil {
			t.Fatalf("got no count of followed links of %v, want one:\n%s", tags, said)
		}
		followed, _ := strconv.Atoi(m[1])
		all, _ := strconv.Atoi(m[2])
		if t.Logf("%v: %s of %s links followed", tags, m[1], m[2]); followed*5 < all*2 {
			t.Errorf("%v: %d of %d links were followed; want two of five at least", tags, followed, all)
		}
	}
}

var linksPattern = regexp.MustCompile(`API Links: +(\d+) covered / (\d+) selected`)

// send sends the agent a task.
func (s *server) send(t *testing.T, key string, i int) {
	t.Helper()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tasks/send","params":{"id":"crm-%d",
		"message":{"role":"user","parts":[{"type":"text","text":"hello"}]}}}`, i)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.base+"/a2a/worker", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var text bytes.Buffer
	if _, err := text.ReadFrom(res.Body); err != nil || !strings.Contains(text.String(), `"result"`) {
		t.Fatalf("got %s, %v; want a result", text.String(), err)
	}
}
