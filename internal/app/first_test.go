package app

import (
	"context"
	"html"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

var (
	secretShown = regexp.MustCompile(`<output class="mono" id="secret">(parley_[0-9A-Za-z]{36})</output>`)
	stepDone    = regexp.MustCompile(`<li id="step-(\w+)" class="done">`)
)

// stepsDone are the steps of the checklist that are ticked.
func stepsDone(page string) string {
	var out []string
	for _, m := range stepDone.FindAllStringSubmatch(page, -1) {
		out = append(out, m[1])
	}
	return strings.Join(out, " ")
}

// snippetOf is a program as the page prints it.
func snippetOf(t *testing.T, page, id string) string {
	t.Helper()
	_, rest, _ := strings.Cut(page, `<pre id="code-`+id+`"`)
	_, rest, ok := strings.Cut(rest, "<code>")
	if !ok {
		t.Fatalf("no snippet %q in %s", id, page)
	}
	code, _, _ := strings.Cut(rest, "</code>")
	return html.UnescapeString(code)
}

// until opens a page again and again, until it shows the text.
func (b *browser) until(path, text string) string {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		res, body := b.do("GET", path, nil)
		if res.StatusCode == http.StatusOK && strings.Contains(body, text) {
			return body
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			b.Fatalf("%s never showed %q: %s\n%s", path, text, res.Status, body)
		}
	}
}

// start runs a program until the test ends.
func startProgram(t *testing.T, dir, key, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, os.Stderr, os.Stderr
	cmd.Env = append(os.Environ(), "PARLEY_KEY="+key)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // and what it started
		_ = cmd.Wait()
	})
}

// The first minutes of an admin: each step ticks itself, and the worker runs as it is printed.
func TestFirstMinutes(t *testing.T) {
	t.Parallel()
	s := running(t)
	b := s.admin(t)
	res, body := b.do("GET", "/", nil)
	if res.Request.URL.Path != "/orgs/main/start" || stepsDone(body) != "" || !strings.Contains(body, "0 of 5 done") {
		t.Fatal(res.Request.URL, body)
	}
	// What is wrong with a form is said beside its fields, and what was typed stays.
	res, body = b.do("POST", "/orgs/main/agents", url.Values{
		"id": {"No Slug"}, "name": {""},
		"description": {"Finds <b>"}, "skills": {"ok"},
	})
	for _, want := range []string{`id="err-id"`, `id="err-name"`, "Finds &lt;b&gt;", `value="No Slug"`} {
		if res.StatusCode != 422 || !strings.Contains(body, want) {
			t.Errorf("%s: the page lacks %s: %s", res.Status, want, body)
		}
	}
	if _, body := b.do("POST", "/orgs/main/agents", url.Values{
		"id": {"scout"}, "name": {"Scout"},
		"skills": {"ok, !"},
	}); !strings.Contains(body, `id="err-skills"`) {
		t.Error(body)
	}
	agentForm := url.Values{
		"id": {"scout"}, "name": {"Scout"}, "description": {"Finds what is slow."}, "skills": {"triage, deploys"},
		"visibility": {"private"}, "once": {"form-1"},
	}
	for range 2 { // a double click registers one agent
		res, body = b.do("POST", "/orgs/main/agents", agentForm)
		if res.StatusCode != 200 || res.Request.URL.Path != "/orgs/main/agents/scout/connect" ||
			!strings.Contains(body, `data-state="no_key"`) {
			t.Fatal(res.Status, res.Request.URL, body)
		}
	}
	if res, body := b.do("POST", "/orgs/main/agents", url.Values{
		"id": {"scout"}, "name": {"Another"},
		"once": {"form-2"},
	}); res.StatusCode != 409 {
		t.Error(res.Status, body)
	}
	if _, body := b.do("GET", "/orgs/main/start", nil); stepsDone(body) != "agent" {
		t.Error(stepsDone(body))
	}

	const connect = "/orgs/main/agents/scout/connect"
	if res, body := b.do("POST", connect, url.Values{"rights": {"all"}, "expires": {"soon"}}); res.StatusCode != 422 ||
		!strings.Contains(body, `id="err-rights"`) || !strings.Contains(body, `id="err-expires"`) {
		t.Error(res.Status, body)
	}
	ask := url.Values{"rights": {"worker"}, "expires": {"90"}, "once": {"form-3"}}
	res, body = b.do("POST", connect, ask)
	found := secretShown.FindStringSubmatch(body)
	if res.StatusCode != 200 || res.Header.Get("Cache-Control") != "no-store" || found == nil {
		t.Fatal(res.Status, res.Header, body)
	}
	if res, again := b.do("POST", connect, ask); res.StatusCode != 200 || strings.Contains(again, found[1]) ||
		!strings.Contains(again, "was already shown") {
		t.Error("a form sent again shows the secret:", res.Status, again)
	}
	if _, keys := b.call("GET", "/api/v1/orgs/main/keys?principal=agent:scout", ""); strings.Count(keys, `"id"`) != 1 ||
		!strings.Contains(keys, `"scopes":["svc:a2a:serve"]`) {
		t.Error(keys)
	}
	if _, body := b.do("GET", connect+"/state", nil); !strings.Contains(body, `data-state="key_never_used"`) ||
		strings.Contains(body, "<html") {
		t.Error(body)
	}

	file := filepath.Join(t.TempDir(), "worker.sh")
	if err := os.WriteFile(file, []byte(snippetOf(t, body, "curl")), 0o600); err != nil {
		t.Fatal(err)
	}
	startProgram(t, filepath.Dir(file), found[1], "sh", file)
	if part := b.until(connect+"/state", "Connected"); strings.Contains(part, "data-poll") {
		t.Error("it waits on:", part)
	}
	send := url.Values{"message": {"Look at the failed deploy"}, "once": {"form-4"}}
	res, _ = b.do("POST", "/orgs/main/agents/scout/tasks", send)
	task := res.Request.URL.Path
	if !strings.HasPrefix(task, "/orgs/main/agents/scout/tasks/web-") {
		t.Fatal(res.Status, task)
	}
	if res, _ := b.do("POST", "/orgs/main/agents/scout/tasks", send); res.Request.URL.Path != task {
		t.Error("a double click sent two tasks:", res.Request.URL)
	}
	body = b.until(task, "Hello from curl")
	if !strings.Contains(body, "completed") || !strings.Contains(body, "Look at the failed deploy") ||
		strings.Contains(body, "Check again") {
		t.Error(body)
	}
	if _, body := b.do("GET", "/orgs/main/start", nil); stepsDone(body) != "agent connect task" {
		t.Error(stepsDone(body))
	}
	if code, body := b.call("POST", list,
		`{"title":"One","category":"process","problem":"A.","suggested_fix":"B."}`); code != 201 {
		t.Fatal(code, body)
	}
	if code, body := b.call("POST", "/api/v1/orgs/main/invitations", `{"user":"ada"}`); code != 201 {
		t.Fatal(code, body)
	}
	if _, body := b.do("GET", "/orgs/main/start", nil); !strings.Contains(body, "5 of 5 done") ||
		!strings.Contains(body, "All done.") {
		t.Error(body)
	}
	if res, _ := b.do("GET", "/", nil); res.Request.URL.Path != "/orgs/main/overview" {
		t.Error(res.Request.URL)
	}
}

// Who does not want the checklist is not led to it, but finds it again.
func TestTheFirstStepsAreHidden(t *testing.T) {
	t.Parallel()
	b := running(t).admin(t)
	b.do("POST", "/orgs/main/start/hide", url.Values{})
	if res, _ := b.do("GET", "/", nil); res.Request.URL.Path != "/orgs/main/overview" {
		t.Error(res.Request.URL)
	}
	if _, body := b.do("GET", "/orgs/main/agents", nil); strings.Contains(body, "First steps") {
		t.Error("the menu has it still")
	}
	if _, body := b.do("GET", "/orgs/main/start", nil); !strings.Contains(body, "Show at sign-in") {
		t.Error(body)
	}
	b.do("POST", "/orgs/main/start/hide", url.Values{"show": {"1"}})
	if res, _ := b.do("GET", "/", nil); res.Request.URL.Path != "/orgs/main/start" {
		t.Error(res.Request.URL)
	}
}

// Every program that the page prints works as it is printed.
func TestPrintedWorkersRun(t *testing.T) {
	t.Parallel()
	s := running(t)
	b := s.admin(t)
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for id, c := range map[string]struct {
		file string
		run  []string
	}{
		"go":         {"main.go", []string{"go", "run"}},
		"python":     {"worker.py", []string{"python3"}},
		"typescript": {"worker.mjs", []string{"node"}}, // which is also what Node before 22.18 runs
	} {
		agent := "of-" + id
		b.do("POST", "/orgs/main/agents", url.Values{"id": {agent}, "name": {agent}})
		_, page := b.do("POST", "/orgs/main/agents/"+agent+"/connect", url.Values{
			"rights":  {"worker"},
			"expires": {"never"},
		})
		found := secretShown.FindStringSubmatch(page)
		if found == nil {
			t.Fatal(page)
		}
		file := filepath.Join(dir, id, c.file)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(snippetOf(t, page, id)), 0o600); err != nil {
			t.Fatal(err)
		}
		startProgram(t, root, found[1], c.run[0], append(c.run[1:], file)...)
		res, _ := b.do("POST", "/orgs/main/agents/"+agent+"/tasks", url.Values{"message": {"Hello from " + id}})
		b.until(res.Request.URL.Path, "You said: Hello from "+id)
	}
}

// Nothing that was stored is more than text on a page.
func TestPagesOfAgentsEscape(t *testing.T) {
	t.Parallel()
	b := running(t).admin(t)
	const evil = `"><script>alert(1)</script>`
	b.do("POST", "/orgs/main/agents", url.Values{"id": {"evil"}, "name": {evil}, "description": {evil}})
	res, _ := b.do("POST", "/orgs/main/agents/echo/tasks", url.Values{"message": {evil}})
	task := res.Request.URL.Path
	b.until(task, "completed")
	for _, path := range []string{
		"/orgs/main/agents", "/orgs/main/agents/evil", "/orgs/main/agents/evil/connect", task,
		"/orgs/main/start", "/account",
	} {
		res, body := b.do("GET", path, nil)
		if res.StatusCode != 200 || strings.Contains(body, "<script>alert") || strings.Contains(body, " style=") {
			t.Error(path, res.Status, body)
		}
		if path != "/orgs/main/start" && path != "/account" && !strings.Contains(body, "&lt;script&gt;alert(1)") {
			t.Error(path, "does not show the text:", body)
		}
	}
}

// A member sees and does what REST would allow, and no more.
func TestMembersAndAgents(t *testing.T) {
	t.Parallel()
	s := running(t)
	s.admin(t).do("POST", "/orgs/main/agents", url.Values{"id": {"scout"}, "name": {"Scout"}})
	bob := s.member(t, "main", "bob", false)
	for path, code := range map[string]int{
		"/orgs/main/start": 403, "/orgs/main/agents/new": 403, "/orgs/main/agents": 200, "/orgs/main/agents/scout": 200,
		"/orgs/main/agents/scout/connect": 200, "/orgs/main/agents/none": 404,
		"/orgs/main/agents/scout/tasks/none": 404, "/orgs/other/agents": 404,
	} {
		res, body := bob.do("GET", path, nil)
		if res.StatusCode != code {
			t.Errorf("%s: %s; want %d", path, res.Status, code)
		}
		for _, hidden := range []string{
			"First steps", "Register an agent", "Make a key</button>", "Disable",
			"Edit the entry",
		} {
			if code == 200 && strings.Contains(body, hidden) {
				t.Errorf("%s shows %q", path, hidden)
			}
		}
	}
	for path, form := range map[string]url.Values{
		"/orgs/main/agents":               {"id": {"mine"}, "name": {"Mine"}},
		"/orgs/main/agents/scout":         {"name": {"Mine"}},
		"/orgs/main/agents/scout/state":   {"disabled": {"true"}},
		"/orgs/main/agents/scout/status":  {"status": {"busy"}},
		"/orgs/main/agents/scout/connect": {"rights": {"worker"}, "expires": {"90"}},
		"/orgs/main/start/hide":           {},
	} {
		if res, _ := bob.do("POST", path, form); res.StatusCode != 403 {
			t.Error("POST", path, res.Status)
		}
	}
	if res, body := bob.do("POST", "/orgs/main/agents/scout/tasks",
		url.Values{"message": {"  "}}); res.StatusCode != 422 || !strings.Contains(body, `id="err-message"`) {
		t.Error(res.Status, body)
	}
	res, body := bob.do("POST", "/orgs/main/agents/scout/tasks", url.Values{"message": {"Hello"}})
	task := res.Request.URL.Path
	if res.StatusCode != 200 || !strings.Contains(body, "submitted") ||
		!strings.Contains(body, "No worker is connected to this agent") ||
		!strings.Contains(body, `data-live-task="scout/web-`) || strings.Contains(body, "data-poll") {
		t.Error(res.Status, body)
	}
	// A task is its sender's.
	if res, _ := signIn(newBrowser(t, s), "main", "admin", adminPassword); res.StatusCode != 200 {
		t.Fatal(res.Status)
	}
	other := newBrowser(t, s)
	signIn(other, "main", "admin", adminPassword)
	if res, _ := other.do("GET", task, nil); res.StatusCode != 404 {
		t.Error("another's task:", res.Status)
	}
	for _, want := range []string{"was canceled", "over already"} {
		if res, body := bob.do("POST", task+"/cancel", url.Values{}); res.StatusCode != 200 ||
			!strings.Contains(body, want) {
			t.Error(res.Status, body)
		}
	}
	if res, body := bob.do("POST", task, url.Values{"message": {"More"}}); res.StatusCode != 409 ||
		!strings.Contains(body, "no further messages") {
		t.Error(res.Status, body)
	}
}

// An admin changes, pins and disables an agent.
func TestAnAgentIsChanged(t *testing.T) {
	t.Parallel()
	b := running(t).admin(t)
	const scout = "/orgs/main/agents/scout"
	b.do("POST", "/orgs/main/agents", url.Values{"id": {"scout"}, "name": {"Scout"}, "skills": {"triage"}})
	if res, body := b.do("POST", scout, url.Values{
		"name": {""}, "description": {"Kept"},
		"skills": {"a"},
	}); res.StatusCode != 422 ||
		!strings.Contains(body, `id="err-name"`) || !strings.Contains(body, "Kept</textarea>") ||
		!strings.Contains(body, `id="edit" open`) {
		t.Error(res.Status, body)
	}
	_, body := b.do("POST", scout, url.Values{
		"name": {"Ranger"}, "description": {"Walks."}, "skills": {"a, b"},
		"visibility": {"public"},
	})
	for _, want := range []string{"was changed", "<bdi>Ranger</bdi>", "Walks.", "<bdi>b</bdi>", "public, every org"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %q: %s", want, body)
		}
	}
	if res, _ := b.do("POST", scout+"/status", url.Values{"status": {"asleep"}}); res.StatusCode != 422 {
		t.Error(res.Status)
	}
	if _, body := b.do("POST", scout+"/status", url.Values{"status": {"busy"}}); !strings.Contains(body,
		"pinned</span>") {
		t.Error(body)
	}
	if _, body := b.do("GET", scout+"/connect", nil); !strings.Contains(body, "Release the status") {
		t.Error(body)
	}
	if _, body := b.do("POST", scout+"/status", url.Values{
		"status": {""},
		"back":   {scout + "/connect"},
	}); !strings.Contains(body, "follows the workers again") ||
		!strings.Contains(body, `data-state="no_key"`) {
		t.Error(body)
	}
	if _, body := b.do("POST", scout+"/state", url.Values{"disabled": {"true"}}); !strings.Contains(body,
		">disabled</span>") || strings.Contains(body, `name="message"`) {
		t.Error(body)
	}
	if _, body := b.do("GET", scout+"/connect", nil); !strings.Contains(body, `data-state="agent_disabled"`) {
		t.Error(body)
	}
	if res, _ := b.do("POST", scout+"/tasks", url.Values{"message": {"x"}}); res.StatusCode != 404 {
		t.Error(res.Status)
	}
	if _, body := b.do("POST", scout+"/state", url.Values{"disabled": {"false"}}); !strings.Contains(body,
		"is enabled") {
		t.Error(body)
	}
}

// The form to sign in remembers the org.
func TestTheOrgIsRemembered(t *testing.T) {
	t.Parallel()
	s := running(t)
	b := newBrowser(t, s)
	field := func(path, org string) {
		t.Helper()
		if _, body := b.do("GET", path, nil); !strings.Contains(body, `name="org" value="`+org+`"`) {
			t.Errorf("%s: want %q in %s", path, org, body)
		}
	}
	field("/login", "main")
	field("/login?org=acme", "acme")
	field("/login?org=%3Cb%3E", "")
	field("/login?next=/orgs/acme/proposals", "acme")
	field("/orgs/acme/agents?q=x", "acme")
	eve := s.member(t, "acme", "eve", false)
	eve.do("GET", "/", nil)
	eve.do("POST", "/logout", url.Values{})
	b = eve
	field("/login", "acme")
	// Too many guesses: the page says how long to wait.
	for range 40 {
		if res, body := signIn(b, "acme", "eve", "not the password"); res.StatusCode == 429 {
			if !regexp.MustCompile(`Try again in \d+ s\.`).MatchString(body) || res.Header.Get("Retry-After") == "" {
				t.Error(res.Header, body)
			}
			return
		}
	}
	t.Error("no limit")
}
