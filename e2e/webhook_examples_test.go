package e2e

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/parley-dev/parley/internal/servertest"
)

// hookSecret is the secret of the webhooks in this test.
const hookSecret = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oDazfpGYVfAJk="

// hookEvent is the body of a delivery.
const hookEvent = `{"type":"proposal.submitted","timestamp":"2026-11-16T18:00:00.000000Z","data":{"id":"prop-1"},` +
	`"subject":"proposal:prop-1","actor":"user:ada","seq":7,"version":1}`

// TestWebhookReceivers runs the receivers that docs/events.md shows. They take what is signed, once,
// and refuse the rest.
func TestWebhookReceivers(t *testing.T) {
	t.Parallel()
	node := must(os.MkdirTemp(nodePackages(t, "clients/js"), "webhook"))(t) // where Node.js finds the packages
	if err := os.CopyFS(node, os.DirFS("../examples/webhook-js")); err != nil {
		t.Fatal(err)
	}
	py := python(t, "requirements-1.txt")
	goReceiver := filepath.Join(t.TempDir(), "webhook-go")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", goReceiver, "../examples/webhook-go").
		CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for name, command := range map[string][]string{
		"go":         {goReceiver, "127.0.0.1:0"},
		"javascript": {"node", filepath.Join(node, "receiver.mjs"), "0"},
		"python":     {py, "../examples/webhook-python/receiver.py", "0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
			cmd.Env = append(pythonEnv(py), "WEBHOOK_SECRET="+hookSecret)
			testReceiver(t, cmd)
		})
	}
}

func testReceiver(t *testing.T, cmd *exec.Cmd) {
	said := &servertest.Output{}
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	eventually(t, time.Minute, "the receiver starts", func() bool {
		return strings.Contains(said.String(), "receiving at ")
	})
	address := addressPattern.FindString(said.String())
	signer := must(standard.NewWebhook(hookSecret))(t)
	deliver := func(id, body, signed string, at time.Time) int {
		t.Helper()
		signature := must(signer.Sign(id, at, []byte(signed)))(t)
		req := must(http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(body)))(t)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("webhook-id", id)
		req.Header.Set("webhook-timestamp", strconv.FormatInt(at.Unix(), 10))
		req.Header.Set("webhook-signature", "v1,b2xk v1a,bm90IGNoZWNrZWQ= "+signature) // as during a rotation
		res := must(http.DefaultClient.Do(req))(t)
		_ = res.Body.Close()
		return res.StatusCode
	}
	now, ofBob := time.Now(), strings.Replace(hookEvent, "ada", "bob", 1)
	for i, c := range []struct {
		name, id, body, signed string
		at                     time.Time
		status                 int
	}{
		{"a delivery", "evt-1", hookEvent, hookEvent, now, 204},
		{"a repeat", "evt-1", hookEvent, hookEvent, now, 204},
		{"a changed body", "evt-2", strings.Replace(hookEvent, "ada", "eve", 1), hookEvent, now, 401},
		{"an old one", "evt-3", hookEvent, hookEvent, now.Add(-time.Hour), 401},
		{"the next", "evt-4", ofBob, ofBob, now, 204},
	} {
		if got := deliver(c.id, c.body, c.signed, c.at); got != c.status {
			t.Errorf("%d: status of %s = %d, want %d\n%s", i, c.name, got, c.status, said)
		}
	}
	want := ""
	for _, who := range []string{"ada", "bob"} {
		want += fmt.Sprintf("proposal.submitted proposal:prop-1 user:%s\n", who)
	}
	printed := func() string {
		_, lines, _ := strings.Cut(said.String(), "\n")
		return lines
	}
	// What comes of the repeat would be printed before the last line.
	eventually(t, time.Minute, "the last event is printed", func() bool {
		return strings.Contains(printed(), "user:bob\n")
	})
	if got := printed(); got != want {
		t.Errorf("printed %q, want %q", got, want)
	}
}
