package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/servertest"
)

// TestBackupWhileServing backs up a store that is written to. The back-up has every proposal that was
// acknowledged before it began, each with its event and its place in the totals, and can be served.
func TestBackupWhileServing(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, e engine) {
		s := serve(t, e, calm...)
		w := &submitting{server: s}
		w.start(t, 4)
		w.until(t, 200)
		before := w.acknowledged()
		file := filepath.Join(t.TempDir(), "parley.backup")
		s.cli(t, "backup", file)
		w.until(t, len(before)+100) // it blocked nobody
		w.stop()
		after := w.tried()

		restored := engine{"sqlite", []string{"--data", filepath.Join(t.TempDir(), "restored")}}
		if _, err := servertest.Run(exec.Command(program, append([]string{"restore", file}, restored.data...)...)); err != nil {
			t.Fatal(err)
		}
		flags := slices.Clone(calm)
		if e.name == "sqlite" { // the back-up does not contain the key of its secrets
			flags = append(flags, "--secret-key-file", filepath.Join(e.data[1], "secret.key"))
		}
		r := serve(t, restored, flags...)
		total, have := allProposals(t, r.base, s.key)
		for title := range before {
			if !have[title] {
				t.Errorf("%q was acknowledged before the back-up, which lacks it", title)
			}
		}
		for title := range have {
			if !after[title] {
				t.Errorf("the back-up has %q, which was not submitted", title)
			}
		}
		if total != len(have) {
			t.Errorf("the total is %d, and there are %d proposals", total, len(have))
		}
		if n := submittedEvents(t, r.base, s.key); n != len(have) {
			t.Errorf("%d events about %d proposals", n, len(have))
		}
		t.Logf("%d proposals before the back-up, %d in it, %d at the end", len(before), len(have), len(w.acknowledged()))
	})
}

// TestRestoreIsKilled: a restore that ends at any moment leaves a store that is empty or whole, and
// the next one completes.
func TestRestoreIsKilled(t *testing.T) {
	t.Parallel()
	source := engine{"sqlite", []string{"--data", t.TempDir()}}
	s := serve(t, source, calm...)
	w := &submitting{server: s}
	w.start(t, 4)
	w.until(t, 500)
	w.stop()
	file := filepath.Join(t.TempDir(), "parley.backup")
	s.cli(t, "backup", file)
	want := len(w.acknowledged())
	eachEngine(t, func(t *testing.T, e engine) {
		restore := func(after time.Duration) (killed bool, out string, err error) {
			cmd := exec.Command(program, append([]string{"restore", file}, e.data...)...)
			var said strings.Builder
			cmd.Stdout, cmd.Stderr = &said, &said
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if after > 0 {
				time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
			}
			err = cmd.Wait()
			return cmd.ProcessState.ExitCode() < 0, said.String(), err
		}
		kills := 0
		for after := 5 * time.Millisecond; ; after = after * 5 / 4 {
			killed, out, err := restore(after)
			if killed {
				kills++
				continue
			}
			if err != nil && !strings.Contains(out, "has an org already") {
				t.Fatalf("after %d kills: %v, %s", kills, err, out)
			}
			break
		}
		if kills == 0 {
			t.Error("no restore was killed, want some")
		}
		r := serve(t, e, append(slices.Clone(calm), "--secret-key-file", filepath.Join(source.data[1], "secret.key"))...)
		if total, have := allProposals(t, r.base, s.key); total != want || len(have) != want {
			t.Errorf("%d proposals and a total of %d after %d kills, want %d", len(have), total, kills, want)
		}
	})
}

// submitting submits proposals with different titles.
type submitting struct {
	server *server
	end    chan struct{}
	work   sync.WaitGroup

	mu    sync.Mutex
	sent  map[string]bool
	acked map[string]bool
	err   error
}

func (w *submitting) start(t *testing.T, n int) {
	w.end, w.sent, w.acked = make(chan struct{}), map[string]bool{}, map[string]bool{}
	for i := range n {
		w.work.Go(func() {
			for j := 0; ; j++ {
				select {
				case <-w.end:
					return
				default:
				}
				if err := w.submit(t, fmt.Sprintf("proposal %d of %d", j, i)); err != nil {
					w.mu.Lock()
					w.err = err
					w.mu.Unlock()
					return
				}
			}
		})
	}
	t.Cleanup(w.stop)
}

func (w *submitting) submit(t *testing.T, title string) error {
	w.mu.Lock()
	w.sent[title] = true
	w.mu.Unlock()
	body := fmt.Sprintf(`{"title":%q,"category":"process","problem":"It fails.","suggested_fix":"Repair it."}`, title)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.server.base+"/api/v1/orgs/main/proposals",
		strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+w.server.key)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusCreated {
		return fmt.Errorf("submit: %s", res.Status)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.acked[title] = true
	return nil
}

// until waits until so many proposals were acknowledged.
func (w *submitting) until(t *testing.T, n int) {
	t.Helper()
	eventually(t, soon, fmt.Sprintf("%d proposals were submitted", n), func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.err != nil {
			t.Fatal(w.err)
		}
		return len(w.acked) >= n
	})
}

func (w *submitting) stop() {
	select {
	case <-w.end:
	default:
		close(w.end)
	}
	w.work.Wait()
}

func (w *submitting) acknowledged() map[string]bool { return w.copyOf(&w.acked) }
func (w *submitting) tried() map[string]bool        { return w.copyOf(&w.sent) }

func (w *submitting) copyOf(m *map[string]bool) map[string]bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make(map[string]bool, len(*m))
	for k := range *m {
		out[k] = true
	}
	return out
}

// allProposals returns the total of the list, and the titles of all pages.
func allProposals(t *testing.T, base, key string) (total int, titles map[string]bool) {
	t.Helper()
	titles = map[string]bool{}
	for cursor, query := "", ""; ; query = "&cursor=" + cursor {
		var page struct {
			Proposals  []struct{ Title string }
			Total      int
			NextCursor string `json:"next_cursor"`
		}
		readPage(t, base+"/api/v1/orgs/main/proposals?limit=100"+query, key, &page)
		for _, p := range page.Proposals {
			titles[p.Title] = true
		}
		if total, cursor = page.Total, page.NextCursor; cursor == "" {
			return total, titles
		}
	}
}

func submittedEvents(t *testing.T, base, key string) (n int) {
	t.Helper()
	for after := int64(0); ; {
		var page struct {
			Events  []json.RawMessage
			LastSeq int64 `json:"last_seq"`
		}
		readPage(t, fmt.Sprintf("%s/api/v1/orgs/main/events?types=proposal.submitted&limit=100&after=%d", base, after), key, &page)
		n += len(page.Events)
		if len(page.Events) == 0 || page.LastSeq == after {
			return n
		}
		after = page.LastSeq
	}
}

func readPage(t *testing.T, url, key string, to any) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if err := json.NewDecoder(res.Body).Decode(to); err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", url, res.Status, err)
	}
}
