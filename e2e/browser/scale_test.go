package browser

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/target"
)

// Sizes of the large org.
const (
	manyAgents    = 200 // that are enabled
	manyServices  = 320
	manyVoters    = 500
	manyProposals = 10_000
	largeOutput   = 10 << 20
)

// large is an org with many objects of every kind.
type large struct {
	*site
	admin    *person
	root     api
	voted    string // id of the proposal that all agents vote on
	followup string // id of the one whose agent made large outputs
	text     string // the large text that the agent made
	file     []byte // and a file
}

// each calls f for every number below n, several at a time, and fails the test if one fails.
func each(t *testing.T, n int, f func(i int) error) {
	t.Helper()
	var wg sync.WaitGroup
	numbers, failed := make(chan int), make(chan error, n)
	for range 8 {
		wg.Go(func() {
			for i := range numbers {
				if err := f(i); err != nil {
					failed <- err
				}
			}
		})
	}
	for i := range n {
		numbers <- i
	}
	close(numbers)
	wg.Wait()
	close(failed)
	if err := <-failed; err != nil {
		t.Fatal(err)
	}
}

// try is call with a refusal as an error.
func (a api) try(line string, body any) (object, error) {
	status, out, err := a.call(line, body)
	if err == nil && status/100 != 2 {
		err = fmt.Errorf("%s: %d %v", line, status, out)
	}
	return out, err
}

func newLarge(t *testing.T) *large {
	t.Helper()
	l := &large{site: newSite(t)}
	l.admin = l.signIn(t, "admin", true)
	var err error
	if l.root, err = l.keyOf("user:admin", read, write, administer, sendTasks); err != nil {
		t.Fatal(err)
	}
	l.vote(t)
	l.propose(t)
	l.work(t)
	return l
}

// vote registers agents, all of whom vote on one proposal. Some are disabled afterwards.
func (l *large) vote(t *testing.T) {
	t.Helper()
	l.voted = l.root.do(t, "POST /proposals", object{
		"title": "Everybody has an opinion on this", "category": "process", "problem": "It is so.",
		"suggested_fix": "Let it be otherwise.",
	})["id"].(string)
	each(t, manyVoters, func(i int) error {
		id := fmt.Sprintf("helper-%03d", i)
		_, err := l.root.try("POST /agents", object{
			"id": id, "name": fmt.Sprintf("Helper number %d", i), "skills": []string{"review", "build"},
		})
		if err != nil {
			return err
		}
		key, err := l.root.try("POST /keys", object{
			"principal": "agent:" + id, "scopes": []string{read, write}, "name": "votes",
		})
		if err != nil {
			return err
		}
		secret, _ := key["secret"].(string)
		_, err = l.api(secret).try("POST /proposals/"+l.voted+"/vote", object{
			"vote":    []string{"for", "against"}[i%2],
			"comment": fmt.Sprintf("Comment %d: %s", i, strings.Repeat("many words ", i%20)),
		})
		if err == nil && i >= manyAgents {
			_, err = l.root.try("PATCH /agents/"+id, object{"disabled": true})
		}
		return err
	})
}

func (l *large) propose(t *testing.T) {
	t.Helper()
	each(t, manyServices, func(i int) error {
		_, err := l.root.try("POST /members", object{"kind": "service", "id": fmt.Sprintf("system-%03d", i)})
		return err
	})
	each(t, manyProposals, func(i int) error {
		s := subjects[i%len(subjects)]
		_, err := l.root.try("POST /proposals", object{
			"title": fmt.Sprintf("%s (number %d)", s[0], i), "category": s[1], "problem": s[2], "suggested_fix": s[3],
		})
		return err
	})
}

// work has an agent produce large outputs for a follow-up.
func (l *large) work(t *testing.T) {
	t.Helper()
	l.followup = l.root.do(t, "POST /followups", object{
		"title": "Write the long report", "description": "All of it.", "assignee": "agent:helper-007",
	})["id"].(string)
	worker, err := l.keyOf("agent:helper-007", serveTasks)
	if err != nil {
		t.Fatal(err)
	}
	const path = "~/api/v1/agents/helper-007"
	claimed := worker.do(t, "POST "+path+"/claim", object{"lease_seconds": 600})["tasks"].([]any)
	lease := claimed[0].(object)["lease"].(string)
	report := func(body object) { worker.do(t, "POST "+path+"/leases/"+lease, body) }

	var b strings.Builder
	for i := 0; b.Len() < largeOutput; i++ {
		sum := sha256.Sum256([]byte{byte(i), byte(i >> 8)})
		fmt.Fprintf(&b, "line %d of the report, <b>as it was written</b> — %x\n", i, sum)
	}
	l.text = b.String()
	const chunk = 3 << 20
	for at := 0; at < len(l.text); at += chunk {
		report(object{"status": "working", "artifacts": []object{{
			"artifact_id": "report", "name": "The long report", "append": at > 0,
			"parts": []object{{"type": "text", "text": l.text[at:min(at+chunk, len(l.text))]}},
		}}})
	}
	l.file = make([]byte, 1<<20)
	random := rand.NewChaCha8([32]byte{1})
	_, _ = random.Read(l.file) // never fails
	report(object{"status": "completed", "artifacts": []object{{
		"artifact_id": "file", "name": "Measurements",
		"parts": []object{{"type": "file", "file": object{
			"name": "../..\\measured\u202e.html", "bytes": base64.StdEncoding.EncodeToString(l.file),
		}}},
	}}})
}

// fits opens a page in a new tab with an empty cache: it has the words, is not too heavy, and is
// no wider than its window.
func (l *large) fits(t *testing.T, path string, words ...string) *tab {
	t.Helper()
	w := l.tab(t, l.admin)
	w.openPage(path)
	w.sees(words...)
	w.mustBeLight()
	for _, width := range []int64{1280, 380} {
		w.set(viewport(width, 900))
		w.none(fmt.Sprintf("too wide at %d px", width), overflow)
	}
	w.set(viewport(1280, 900))
	return w
}

// TestLargeOrg opens the pages of the large org.
func TestLargeOrg(t *testing.T) {
	begin(t)
	l := newLarge(t)
	t.Run("voters", func(t *testing.T) {
		w := l.fits(t, "/proposals/"+l.voted, "250 for 250 against", "1–50 of 500")
		w.click(link, "Next")
		w.sees("51–100 of 500")
		w.none("too wide", overflow)
		l.fits(t, "/proposals/"+l.voted+"?votes=10", "451–500 of 500")
	})
	t.Run("proposals", func(t *testing.T) {
		w := l.fits(t, "/proposals", "10\u202f001")
		w.click(link, "Next")
		w.none("too wide", overflow)
		l.fits(t, "/proposals?sort=oldest", "Everybody has an opinion on this")
		l.fits(t, "/proposals?q=9999", "number 9999")
		l.fits(t, "/proposals?group=submitter", "10\u202f001")
	})
	t.Run("agents", func(t *testing.T) {
		w := l.fits(t, "/agents", "1–50 of 50")
		w.fill("Search agents", "helper-123")
		w.click(button, "Search")
		w.sees("Helper number 123")
		w.misses("Helper number 124")
		for _, path := range []string{"/keys", "/keys/new", "/followups", "/followups/" + l.followup} {
			w := l.fits(t, path)
			picker := `[...document.querySelectorAll('main select')]
				.filter(e => [...e.options].some(o => o.value.startsWith('agent:')))`
			pickers := js[[]int](w, picker+`.map(e => [...e.options].filter(o => o.value.startsWith('agent:')).length)`)
			if len(pickers) == 0 {
				t.Errorf("%s has no picker, want one", path)
			}
			for _, n := range pickers {
				if n < manyAgents {
					t.Errorf("a picker on %s has %d agents; want all %d", path, n, manyAgents)
				}
			}
			for _, ok := range js[[]bool](w, picker+`.map(e => [...e.options].some(o => o.value === 'user:admin'))`) {
				if !ok {
					t.Errorf("a picker on %s lacks people, want all", path)
				}
			}
		}
	})
	t.Run("outputs", func(t *testing.T) { l.downloads(t) })
}

// downloads fetches the agent's output in the browser: complete, and only as a file.
func (l *large) downloads(t *testing.T) {
	w := l.fits(t, "/followups/"+l.followup, "The long report", "10.0 MB", "The text goes on.", "1.0 MB")
	dir := t.TempDir()
	call(w, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{
		Behavior: browser.SetDownloadBehaviorBehaviorAllow, DownloadPath: dir,
		BrowserContextID: call(w, target.GetTargetInfo, target.GetTargetInfoParams{}).TargetInfo.BrowserContextID,
	})
	for name, want := range map[string][]byte{"text.txt": []byte(l.text), "measured.html": l.file} {
		href := js[string](w, fmt.Sprintf(`[...document.querySelectorAll('#work a[download]')]
			.find(a => a.textContent === 'Download %s')?.getAttribute('href') ?? ''`, name))
		if href == "" {
			list, _ := w.controlsIn("#work", link)
			t.Fatalf("links = %q, want one to %s", names(list), name)
		}
		w.press(link, "Download "+name)
		var got []byte
		err := eventually(func() (err error) {
			got, err = os.ReadFile(filepath.Join(dir, name))
			if err == nil && len(got) < len(want) {
				err = fmt.Errorf("%d of %d bytes are there", len(got), len(want))
			}
			return err
		})
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("download of %s: got %d other bytes (%v), want the agent's %d", name, len(got), err, len(want))
		}
		res, body := l.get(t, l.admin, href)
		if body != string(want) {
			t.Errorf("%s has %d bytes; want %d", href, len(body), len(want))
		}
		for header, value := range map[string]string{
			"Content-Type": "application/octet-stream", "Content-Disposition": "attachment; filename=" + name,
			"Content-Length": fmt.Sprint(len(want)), "X-Content-Type-Options": "nosniff", "Cache-Control": "private, no-store",
			"Content-Security-Policy":      "sandbox; default-src 'none'; frame-ancestors 'none'",
			"Cross-Origin-Resource-Policy": "same-origin",
		} {
			if got := res.Header.Get(header); got != value {
				t.Errorf("%s of %s is %q; want %q", header, name, got, value)
			}
		}
	}
	if n := len(w.watch.take()); n > 0 {
		t.Errorf("got %d faults, want 0", n)
	}
	w.at(l.path("/followups/" + l.followup)) // no page was opened
}
