package app

import (
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path"
	"regexp"
	"strings"
	"testing"
)

// station is an admin with one agent, and a worker of that agent that the test plays.
type station struct {
	*browser
	key string
}

func newStation(t *testing.T, s *Server) *station {
	t.Helper()
	b := s.admin(t)
	b.do("POST", "/orgs/main/agents", url.Values{"id": {"scout"}, "name": {"Scout"}, "skills": {"triage"}})
	_, page := b.do("POST", "/orgs/main/agents/scout/connect", url.Values{"rights": {"tools"}, "expires": {"never"}})
	found := secretShown.FindStringSubmatch(page)
	if found == nil {
		t.Fatal(page)
	}
	return &station{b, found[1]}
}

func (s *station) work(method, path, body string) string {
	s.Helper()
	code, out := s.call(method, "/api/v1/agents/scout/"+path, body, "Authorization", "Bearer "+s.key)
	if code >= 300 {
		s.Fatalf("%s %s: %d %s", method, path, code, out)
	}
	return out
}

// claim claims a task and returns its lease.
func (s *station) claim(worker string) string {
	s.Helper()
	var got struct {
		Tasks []struct{ Lease string }
	}
	text := s.work("POST", "claim", `{"worker":"`+worker+`","wait_seconds":5,"lease_seconds":60}`)
	if err := json.Unmarshal([]byte(text), &got); err != nil || len(got.Tasks) != 1 {
		s.Fatalf("claim = %s, %v, want one task", text, err)
	}
	return got.Tasks[0].Lease
}

// send sends a task from the console and returns its page.
func (s *station) send(message string) string {
	s.Helper()
	res, body := s.do("POST", "/orgs/main/agents/scout/tasks", url.Values{"message": {message}})
	if res.StatusCode != http.StatusOK || !strings.Contains(body, `data-live-task="scout/`) {
		s.Fatal(res.Status, body)
	}
	return res.Request.URL.Path
}

func (s *station) get(path string) string {
	s.Helper()
	res, body := s.do("GET", path, nil)
	if res.StatusCode != http.StatusOK {
		s.Fatalf("GET %s: %s\n%s", path, res.Status, body)
	}
	return body
}

func (s *station) wants(body string, texts ...string) {
	s.Helper()
	for _, text := range texts {
		if !strings.Contains(body, text) {
			s.Errorf("the page lacks %q: %s", text, body)
		}
	}
}

var timelineLink = regexp.MustCompile(`href="(/orgs/main/tasks/[0-9a-z]{26})"`)

// timeline returns the page with the attempts of a task.
func (s *station) timeline(task string) string {
	s.Helper()
	found := timelineLink.FindStringSubmatch(s.get(task))
	if found == nil {
		s.Fatalf("%s has no link to the attempts", task)
	}
	return found[1]
}

// says is a report with a status and a message.
func says(status, text string) string {
	return `{"status":"` + status + `","message":{"role":"agent","parts":[{"type":"text","text":"` + text + `"}]}}`
}

// A task is followed from the console to its end, and every attempt is on its timeline.
func TestConsole(t *testing.T) {
	t.Parallel()
	s := newStation(t, running(t))
	s.wants(s.get("/orgs/main/agents"), `id="agents-live" data-live="agent task" data-live-rows`, `data-key="scout"`, "triage")
	page := s.send("Look at the deploy")
	s.wants(s.get("/orgs/main/agents/scout"), `<dt>Waiting</dt><dd class="num">`+
		`<a class="link" href="/orgs/main/tasks?agent=scout&amp;state=queued">1<`)
	s.work("DELETE", "leases/"+s.claim("first"), "")
	// A task that was handed back waits in another state than a new one.
	waiting := "/orgs/main/tasks?agent=scout&state=queued"
	s.wants(s.get("/orgs/main/agents"), `href="`+html.EscapeString(waiting)+`">1<`)
	s.wants(s.get(waiting), path.Base(page), ">working<", `<option value="queued" selected>`)
	lease := s.claim("second-worker")
	s.work("POST", "leases/"+lease,
		`{"artifacts":[{"artifact_id":"out","parts":[{"type":"text","text":"half "}]}],"extend_seconds":50}`)
	s.wants(s.get(page), "working", "half")
	s.work("POST", "leases/"+lease, says("input-required", "Which one?"))
	s.wants(s.get(page), "Which one?", "Your reply")
	if res, body := s.do("POST", page, url.Values{"message": {"The last one"}}); res.StatusCode != 200 {
		t.Fatal(res.Status, body)
	}
	lease = s.claim("third")
	timeline := s.timeline(page)
	body := s.get(timeline)
	s.wants(body, "first", "released: the worker handed it back", "second-worker", "input-required", "Which one?", "third",
		"running", "Lease ends", `<dt>Reports</dt><dd class="num">1 `, "after waiting",
		`<dt>Heartbeats</dt><dd class="num">1<`, `data-live-task="`+path.Base(timeline)+`"`)
	s.work("POST", "leases/"+lease, says("failed", "No disk left"))
	s.wants(s.get(timeline), "No disk left", "failed")
	s.wants(s.get("/orgs/main/agents/scout"), `id="failures"`, "No disk left", timeline)

	// The same message as a new task: once for each form.
	again := url.Values{"once": {"again-1"}}
	res, body := s.do("POST", page+"/again", again)
	second := res.Request.URL.Path
	if s.wants(body, "Look at the deploy", "submitted"); second == page {
		t.Error("sent again as the same task")
	}
	if res, _ := s.do("POST", page+"/again", again); res.Request.URL.Path != second {
		t.Errorf("a form that is sent twice leads to %s, want %s", res.Request.URL.Path, second)
	}
	if res, body := s.do("POST", second+"/cancel", url.Values{}); res.StatusCode != 200 ||
		!strings.Contains(body, "canceled") {
		t.Error(res.Status, body)
	}
}

var questionShown = regexp.MustCompile(`name="question" value="([0-9]+)"`)

// A form that is sent again, from the history of the browser for example, does not answer a question
// that the agent has asked since.
func TestAnOldFormAnswersNoNewQuestion(t *testing.T) {
	t.Parallel()
	s := newStation(t, running(t))
	asks := func(question string) {
		t.Helper()
		s.work("POST", "leases/"+s.claim("w"), says("input-required", question))
	}
	first := url.Values{"message": {"Count the files"}, "once": {"token-1"}}
	res, _ := s.do("POST", "/orgs/main/agents/scout/tasks", first)
	page := res.Request.URL.Path
	asks("Delete them all?")
	if res, _ := s.do("POST", "/orgs/main/agents/scout/tasks", first); res.Request.URL.Path != page {
		t.Errorf("sent again, the form leads to %s, want %s", res.Request.URL.Path, page)
	}
	body := s.get(page)
	if s.wants(body, "input-required"); strings.Count(body, "Count the files") != 1+1 { // and the curl command
		t.Errorf("the first form was an answer: %s", body)
	}

	reply := func(token, text string) (int, string) {
		t.Helper()
		found := questionShown.FindStringSubmatch(body)
		if found == nil {
			t.Fatalf("no question: %s", body)
		}
		res, body := s.do("POST", page, url.Values{"message": {text}, "once": {token}, "question": {found[1]}})
		return res.StatusCode, body
	}
	if code, body := reply("token-2", "yes, these"); code != http.StatusOK {
		t.Fatal(code, body)
	}
	asks("Wipe the original, too?")
	if code, body := reply("token-2", "yes, these"); code != http.StatusOK || !strings.Contains(body, "input-required") {
		t.Errorf("an old reply sent again: %d, want the question to stay: %s", code, body)
	}
	if code, body := reply("token-3", "another yes"); code != http.StatusConflict ||
		!strings.Contains(body, "has asked something else") || !strings.Contains(body, "another yes</textarea>") {
		t.Errorf("a reply to the old question: %d, want it refused with its text kept: %s", code, body)
	}
	body = s.get(page)
	if code, body := reply("token-4", "no"); code != http.StatusOK || !strings.Contains(body, "Your reply was sent") {
		t.Errorf("a reply to the new question: %d %s", code, body)
	}
}

// A task with more results than a page shows says so.
func TestManyResults(t *testing.T) {
	t.Parallel()
	s := newStation(t, running(t))
	page := s.send("Make many")
	lease := s.claim("w")
	for i := range 3 {
		var list []string
		for j := range 40 {
			list = append(list, fmt.Sprintf(`{"artifact_id":"a%d-%d","parts":[{"type":"text","text":"x"}]}`, i, j))
		}
		s.work("POST", "leases/"+lease, `{"artifacts":[`+strings.Join(list, ",")+`]}`)
	}
	s.wants(s.get(page), "20 more results are not shown")
	s.wants(s.get(s.timeline(page)), "20 more results are not shown")
}

// The raw JSON of a task is JSON that runs nowhere.
func TestRawTask(t *testing.T) {
	t.Parallel()
	s := newStation(t, running(t))
	page := s.send("<script>alert(1)</script>")
	for _, at := range []string{page + "/json", s.timeline(page) + "/json"} {
		res, body := s.do("GET", at, nil)
		var got struct{ ID string }
		if err := json.Unmarshal([]byte(body), &got); err != nil || res.StatusCode != 200 || got.ID != path.Base(page) {
			t.Errorf("GET %s: %s, %v: %s", at, res.Status, err, body)
		}
		for name, want := range map[string]string{
			"Content-Type": "application/json; charset=utf-8", "X-Content-Type-Options": "nosniff",
			"Content-Security-Policy": "sandbox; default-src 'none'; frame-ancestors 'none'",
			"Cache-Control":           "private, no-store",
		} {
			if got := res.Header.Get(name); got != want {
				t.Errorf("%s of %s = %q, want %q", name, at, got, want)
			}
		}
	}
}

var shownCurl = regexp.MustCompile(`(?s)<pre id="curl"[^>]*>(.*?)</pre>`)

// The curl command of a task is one command, whatever the message says, and sends that message.
func TestCurlOfATask(t *testing.T) {
	t.Parallel()
	s := newStation(t, running(t))
	for _, message := range []string{
		"plain", "it's", `"; touch pwned; echo "`, "'; touch pwned; '", "$(touch pwned) `touch pwned` \\", "!! a\nb\\n\t%s",
		"x\u202etxt.exe \u2066a\u2069 \U000e0041 é 👍",
	} {
		command := html.UnescapeString(shownCurl.FindStringSubmatch(s.get(s.send(message)))[1])
		if strings.Contains(command, s.key) || strings.ContainsAny(command, "\u202e\u2066\U000e0041") {
			t.Errorf("command = %s, want no key and no invisible characters", command)
		}
		dir := t.TempDir()
		run := exec.CommandContext(t.Context(), "sh", "-c", command)
		run.Dir, run.Env = dir, append(os.Environ(), "PARLEY_KEY="+s.key)
		out, err := run.CombinedOutput()
		var answer struct {
			Result struct{ ID string }
			Error  any
		}
		if err != nil || json.Unmarshal(out, &answer) != nil || answer.Result.ID == "" {
			t.Fatalf("%s\n%v: %s", command, err, out)
		}
		if files, _ := os.ReadDir(dir); len(files) > 0 {
			t.Errorf("%s made %v, want no file", command, files)
		}
		_, sent := s.call("POST", "/a2a/scout", `{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"id":"`+
			answer.Result.ID+`","historyLength":1}}`, "Authorization", "Bearer "+s.key)
		want, _ := json.Marshal(message)
		if !strings.Contains(compact(t, sent), compact(t, string(want))) {
			t.Errorf("sent %s, want %q", sent, message)
		}
	}
}

// compact decodes and encodes JSON, so that two texts are equal if their values are.
func compact(t *testing.T, text string) string {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err, text)
	}
	out, _ := json.Marshal(v)
	return string(out)
}

var rowKey = regexp.MustCompile(`data-key="([0-9a-z]{26})"`)

// The list of tasks has filters and pages, and says what is wrong with a filter.
func TestTasksOfTheOrg(t *testing.T) {
	t.Parallel()
	s := newStation(t, running(t))
	failed := s.send("one")
	s.work("POST", "leases/"+s.claim("w"), `{"status":"failed"}`)
	for i := range 51 {
		s.send(fmt.Sprint("more ", i))
	}
	rows := func(query string) int {
		s.Helper()
		return len(rowKey.FindAllString(s.get("/orgs/main/tasks"+query), -1))
	}
	for query, want := range map[string]int{
		"": 50, "?agent=scout": 50, "?agent=echo": 0, "?state=failed": 1,
		"?state=failed&agent=scout&sender=user:admin&age=1h": 1,
		"?state=submitted": 50, "?state=queued": 50, "?state=completed": 0, "?sender=user:admin": 50, "?sender=main/user:admin": 50,
		"?sender=user:nobody": 0, "?sender=other/user:admin": 0, "?age=24h": 50, "?age=older-1h": 0,
	} {
		if got := rows(query); got != want {
			t.Errorf("%s: %d rows, want %d", query, got, want)
		}
	}
	body := s.get("/orgs/main/tasks")
	s.wants(body, `<div id="tasks-live" data-live="task agent.presence" data-live-rows>`, `aria-current="page"`)
	next := regexp.MustCompile(`rel="next" href="/orgs/main/tasks([^"]*)"`).FindStringSubmatch(body)
	if next == nil || rows(html.UnescapeString(next[1])) != 2 {
		t.Errorf("the next page is %v, want one with 2 tasks", next)
	}
	s.wants(s.get("/orgs/main/tasks?state=failed"), path.Base(failed), ">failed<")
	for query, want := range map[string]string{
		"?agent=No+Agent": "err-agent", "?state=lost": "err-state", "?sender=ada": "err-sender", "?age=soon": "err-age",
		"?cursor=%3Cscript%3E": "Cursor: is not a cursor of this list",
	} {
		if res, body := s.do("GET", "/orgs/main/tasks"+query, nil); res.StatusCode != 422 || !strings.Contains(body, want) {
			t.Errorf("%s: %s, want 422 and %q: %s", query, res.Status, want, body)
		}
	}
}

// Members read their own tasks only; other orgs read none.
func TestTasksAreForAdmins(t *testing.T) {
	t.Parallel()
	server := running(t)
	s := newStation(t, server)
	page := s.send("secret")
	timeline := s.timeline(page)
	bob := server.member(t, "main", "bob", false)
	eve := server.member(t, "other", "eve", true)
	for _, at := range []string{"/orgs/main/tasks", timeline, timeline + "/json", timeline + "/outputs/0/0"} {
		if res, _ := bob.do("GET", at, nil); res.StatusCode != 403 {
			t.Errorf("GET %s by a member: %s, want 403", at, res.Status)
		}
		if res, _ := eve.do("GET", at, nil); res.StatusCode != 404 {
			t.Errorf("GET %s by another org: %s, want 404", at, res.Status)
		}
		if res, _ := eve.do("GET", strings.Replace(at, "/main/", "/other/", 1), nil); at != "/orgs/main/tasks" &&
			res.StatusCode != 404 {
			t.Errorf("GET %s within another org: %s, want 404", at, res.Status)
		}
	}
	for _, at := range []string{page, page + "/json"} {
		if res, _ := bob.do("GET", at, nil); res.StatusCode != 404 {
			t.Errorf("GET %s of another sender: %s, want 404", at, res.Status)
		}
	}
	if res, _ := bob.do("POST", page+"/again", url.Values{}); res.StatusCode != 404 {
		t.Errorf("another's task sent again: %s, want 404", res.Status)
	}
	if _, body := bob.do("GET", "/orgs/main/agents", nil); strings.Contains(body, "/tasks\"") ||
		strings.Contains(body, ">Workers<") {
		t.Errorf("a member sees tasks or workers: %s", body)
	}
}

// Files of an agent are downloads that no browser renders, and texts stay texts.
func TestHostileTask(t *testing.T) {
	t.Parallel()
	s := newStation(t, running(t))
	const evil = `"><script>alert(1)</script>`
	file := func(name, kind string) any {
		content := map[string]any{"name": name, "mimeType": kind, "bytes": "PHNjcmlwdD4="}
		return map[string]any{"type": "file", "file": content}
	}
	page := s.send(evil)
	lease := s.claim("<b>worker</b>")
	report, err := json.Marshal(map[string]any{
		"status":  "failed",
		"message": map[string]any{"role": "agent", "parts": []any{map[string]any{"type": "text", "text": evil}}},
		"artifacts": []any{map[string]any{"artifact_id": "out", "name": evil, "parts": []any{
			file("a.html", "text/html"), file("a.svg", "image/svg+xml"), file("../a.pdf", "application/pdf"),
		}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.work("POST", "leases/"+lease, string(report))
	timeline := s.timeline(page)
	for _, at := range []string{page, timeline, "/orgs/main/agents/scout", "/orgs/main/tasks"} {
		if body := s.get(at); strings.Contains(body, "<script>alert") || strings.Contains(body, "<b>worker") {
			t.Errorf("%s has a text as HTML: %s", at, body)
		}
	}
	for _, at := range []string{page, timeline} {
		for i, name := range []string{"a.html", "a.svg", "a.pdf"} {
			res, _ := s.do("GET", fmt.Sprint(at, "/outputs/0/", i), nil)
			if got := res.Header.Get("Content-Disposition"); res.StatusCode != 200 || got != "attachment; filename="+name ||
				res.Header.Get("Content-Type") != "application/octet-stream" ||
				res.Header.Get("X-Content-Type-Options") != "nosniff" ||
				!strings.HasPrefix(res.Header.Get("Content-Security-Policy"), "sandbox; default-src 'none'") {
				t.Errorf("%s of %s: %s %v", name, at, res.Status, res.Header)
			}
		}
	}
}

// A refused worker shows on the page of the agent that it asked for.
func TestRefusedWorkers(t *testing.T) {
	t.Parallel()
	s := newStation(t, running(t))
	s.do("POST", "/orgs/main/agents", url.Values{"id": {"other"}, "name": {"Other"}})
	code, body := s.call("POST", "/api/v1/agents/other/claim", `{"worker":"w"}`, "Authorization", "Bearer "+s.key)
	if code != 403 {
		t.Fatal(code, body)
	}
	s.wants(s.get("/orgs/main/agents/other"), `id="refused"`, "The key is for another agent", "scout")
	if body := s.get("/orgs/main/agents/scout"); strings.Contains(body, `id="refused"`) {
		t.Error("the other agent shows the refusal, too")
	}
}
