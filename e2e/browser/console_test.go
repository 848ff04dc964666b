package browser

import (
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/parley-dev/parley/internal/servertest"
)

// languages are those with an SDK: the snippet of the page, the file that it goes into, and the
// program that runs it.
var languages = []struct {
	id, file string
	run      []string
}{
	{"go", "main.go", []string{"go", "run"}},
	{"python", "worker.py", []string{"python3"}},
	{"typescript", "worker.mjs", []string{"node"}},
}

// TestConnectByTheSnippet registers an agent for each language through the pages, connects its
// worker with the snippet as the page shows it, and follows a task from the console to its end.
func TestConnectByTheSnippet(t *testing.T) {
	begin(t)
	s := newSite(t)
	ada := s.tab(t, s.signIn(t, "admin", true))
	for _, l := range languages {
		t.Run(l.id, func(t *testing.T) {
			w := ada.lend(t)
			w.openPage("/agents/new")
			w.fill("Name", "Agent in "+l.id)
			w.fill("Id", "in-"+l.id)
			w.click(button, "Register")
			w.sees("No key yet")
			w.click(button, "Make a key")
			key := w.secret()
			w.sees("Waiting for the first worker")
			code := js[string](w, "document.getElementById('code-"+l.id+"').textContent")
			file := filepath.Join(t.TempDir(), l.file)
			if err := os.WriteFile(file, []byte(code+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			startWorker(t, key, append(l.run, file)...)
			w.sees("1 worker is connected")
			w.click(link, "Send it a task")
			w.fill("Message", "Hello from the console")
			w.click(button, "Send")
			w.sees("completed", "You said: Hello from the console")
			w.click(link, "Attempts")
			w.sees("Attempt 1", "completed")
			w.openPage("/agents")
			w.sees("available", "Agent in "+l.id)
		})
	}
}

// startWorker runs a program in the module's directory until the test ends.
func startWorker(t *testing.T, key string, command ...string) {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	var said servertest.Output
	cmd.Dir, cmd.Stdout, cmd.Stderr = root, &said, &said
	cmd.Env = append(os.Environ(), "PARLEY_KEY="+key)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // and what it started
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("the worker said:\n%s", said.String())
		}
	})
}

// TestConsole follows a task live: the artifact grows, a question is answered in place, and the
// task ends without a reload. Then it is sent again and canceled.
func TestConsole(t *testing.T) {
	begin(t)
	s := newFilled(t, newSite(t))
	d := &seeding{seeded: s.seeded, s: s.site}
	w := s.tab(t, s.admin)
	d.claim(s.worker, runner, "old") // the one that waits
	w.openPage("/agents/" + runner)
	w.fill("Message", "Count the files")
	w.click(button, "Send")
	w.sees("submitted")
	js[any](w, "window.stays = true, null")
	lease := d.claim(s.worker, runner, "hand")
	report := func(body object) {
		t.Helper()
		s.worker.do(t, "POST "+lease, body)
	}
	out := func(text string, more bool) object {
		return object{"artifacts": []object{{
			"artifact_id": "out", "append": more, "parts": []object{textPart(text)},
		}}}
	}
	w.sees("working")
	report(out("One file", false))
	w.sees("One file")
	report(out(", two files", true))
	w.sees("One file, two files")
	question := object{"role": "agent", "parts": []object{textPart("In which folder?")}}
	report(object{"status": "input-required", "message": question})
	w.sees("input-required", "In which folder?")
	if !js[bool](w, "window.stays === true") {
		t.Error("the page was loaded again, want it to follow the task in place")
	}
	w.fill("Your reply", "In the last one")
	w.click(button, "Send")
	w.sees("In the last one")
	lease = d.claim(s.worker, runner, "hand")
	report(object{"status": "completed", "artifacts": out(" and none", true)["artifacts"]})
	w.sees("completed", "One file, two files and none")
	if d.err != nil {
		t.Fatal(d.err)
	}
	first := w.path()
	w.click(button, "Send again")
	w.sees("submitted", "Count the files")
	if w.path() == first {
		t.Error("got the same task, want a new one")
	}
	w.click(button, "Cancel the task")
	w.sees("canceled")
	w.click(link, "Raw JSON")
	if text := js[string](w, "document.body.textContent"); !strings.Contains(text, `"Count the files"`) {
		t.Errorf("raw JSON = %s, want the message", text)
	}
}

// TestConsoleWithoutScripts does the same by loading pages.
func TestConsoleWithoutScripts(t *testing.T) {
	begin(t)
	s := newFilled(t, newSite(t))
	w := s.tab(t, s.admin, noScripts)
	w.openPage("/agents/" + runner + "/tasks/job-4")
	w.sees("input-required")
	w.fill("Your reply", "Yes")
	w.click(button, "Send")
	w.sees("working", "Yes")
	w.click(button, "Cancel the task")
	w.sees("canceled")
	w.click(button, "Send again")
	w.sees("submitted")
	w.openPage("/tasks")
	w.fill("Sender", "user:admin")
	w.click(button, "Show")
	w.sees("job-4")
	w.click(link, "job-1")
	w.sees("runner-a", "released", "runner-b", "failed", "It is failed.")
}

// TestFilesOfAgentsDownload opens the files of a hostile task in a tab: each is a download, and none
// renders.
func TestFilesOfAgentsDownload(t *testing.T) {
	begin(t)
	s := readOnly(t)
	page := s.path("/agents/" + runner + "/tasks/" + url.PathEscape(s.hostileTask))
	w := s.tab(t, s.admin)
	w.open(page)
	links := js[[]string](w, "[...document.querySelectorAll('a[download]')].map(a => a.getAttribute('href'))")
	if len(links) != 3 {
		t.Fatalf("downloads = %q, want three files", links)
	}
	for _, href := range links {
		res, _ := s.get(t, s.admin, href)
		if got := res.Header.Get("Content-Disposition"); !strings.HasPrefix(got, "attachment;") {
			t.Errorf("%s: disposition = %q, want an attachment", href, got)
		}
		if got := res.Header.Get("Content-Type"); got != "application/octet-stream" {
			t.Errorf("%s: type = %q, want bytes", href, got)
		}
		// The navigation becomes a download, so the page stays.
		js[any](w, "void (location.href = "+quoteJS(href)+")")
		w.waitFor("document.querySelector('main h1') !== null")
		if at := w.path(); at != page {
			t.Errorf("%s opened a page at %s, want a download", href, at)
		}
		if js[bool](w, "'pwned' in window") {
			t.Errorf("%s ran a script", href)
		}
	}
}

func quoteJS(s string) string { return "'" + strings.ReplaceAll(s, "'", "%27") + "'" }
