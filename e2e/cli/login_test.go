package cli

import (
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/parley-dev/parley/internal/servertest"
)

func TestALoginStandsForAKey(t *testing.T) { onEachEngine(t, testALoginStandsForAKey) }

func testALoginStandsForAKey(t *testing.T, p *person, _ *servertest.Process) {
	if code, _, stderr := p.run("proposal", "list"); code != 2 || !strings.Contains(stderr, "parley login --server "+p.base) {
		t.Error(code, stderr)
	}
	p.signIn()
	for path, want := range map[string]os.FileMode{p.credentials(): 0o600, filepath.Dir(p.credentials()): 0o700 | os.ModeDir} {
		if info, err := os.Stat(path); err != nil || info.Mode() != want {
			t.Error(path, info.Mode(), err)
		}
	}
	// The login may do what the person may: here, everything.
	for _, args := range [][]string{
		{"proposal", "list"},
		{"key", "list"},
		{"agent", "list"},
		{"user", "list"},
		{"member", "list"},
		{"client", "list"},
		{"agent", "card"},
		{"task", "send", "echo", "hi", "--wait"},
	} {
		if code, stdout, stderr := p.run(args...); code != 0 {
			t.Error(args, code, stdout, stderr)
		}
	}
	code, stdout, stderr := p.run("whoami")
	if code != 0 || !strings.Contains(stdout, "user:admin") || !strings.Contains(stdout, p.base) || !strings.Contains(stdout, "login (tok-") {
		t.Error(code, stdout, stderr)
	}
	code, stdout, stderr = p.run("whoami", "--json")
	if code != 0 || !strings.Contains(stdout, `"by": "login"`) || !strings.Contains(stdout, `"org": "main"`) {
		t.Error(code, stdout, stderr)
	}
	// The commands for admins in the documentation work with it.
	for _, b := range readDocument(t, "docs/auth.md").blocks {
		if b.lang != "sh" || !strings.Contains(b.text, "parley client") {
			continue
		}
		sh := exec.Command("sh", "-ec", b.text)
		sh.Dir, sh.Env = p.dir, p.parley().Env
		if out, err := sh.CombinedOutput(); err != nil || !strings.Contains(string(out), `registered client "Reports" in org "main"`) {
			t.Errorf("docs/auth.md:%d: %v %s", b.line, err, out)
		}
	}
	// A key takes precedence, also one that does not work.
	if code, _, stderr := p.run("proposal", "list", "--key", "parley_x"); code != 1 || !strings.Contains(stderr, "auth.invalid") {
		t.Error(code, stderr)
	}
	// The tools for MCP clients work with it, too.
	mcp := p.parley("mcp")
	mcp.Stdin = strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":` +
		`{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}` + `
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"list_proposals","arguments":{}}}
`)
	p.change("access_token", "parley_at_"+strings.Repeat("0", 36)) // refused, and renewed
	out, err := mcp.Output()
	if plain := strings.ReplaceAll(string(out), `\"`, `"`); err != nil || !strings.Contains(plain, `"proposals":[]`) {
		t.Error(plain, err)
	}

	// Another server has no login.
	if code, _, stderr := p.run("proposal", "list", "--server", "http://127.0.0.1:1"); code != 2 || !strings.Contains(stderr, "parley login") {
		t.Error(code, stderr)
	}
	// A file that others can read is refused, with what to do.
	if err := os.Chmod(p.credentials(), 0o644); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := p.run("proposal", "list"); code != 1 || !strings.Contains(stderr, "chmod 600 "+p.credentials()) {
		t.Error(code, stderr)
	}
	if err := os.Chmod(p.credentials(), 0o600); err != nil {
		t.Fatal(err)
	}

	_, login := p.stored()
	if code, stdout, stderr := p.run("logout"); code != 0 || !strings.Contains(stdout, "signed out at "+p.base) {
		t.Error(code, stdout, stderr)
	}
	res, err := http.PostForm(p.base+"/oauth/token", url.Values{
		"grant_type": {"refresh_token"}, "client_id": {"client-parley-cli"}, "refresh_token": {login["refresh_token"].(string)},
	})
	if err != nil || res.StatusCode != 400 {
		t.Error("the login still works:", res, err)
	}
	if data, err := os.ReadFile(p.credentials()); err != nil || strings.Contains(string(data), "token") {
		t.Error(string(data), err)
	}
	if code, stdout, _ := p.run("logout"); code != 0 || !strings.Contains(stdout, "not signed in") {
		t.Error(code, stdout)
	}
}

func TestALoginWithoutABrowser(t *testing.T) { onEachEngine(t, testALoginWithoutABrowser) }

func testALoginWithoutABrowser(t *testing.T, p *person, _ *servertest.Process) {
	ended := func(addr string) *url.URL {
		t.Helper()
		_, body, res := p.allow(addr, "svc:tasks:read")
		at, err := res.Location()
		if err != nil || at.Host != "127.0.0.1" || at.Path != "/callback" {
			t.Fatal(res.Status, body, err)
		}
		return at
	}
	type paste = func(at *url.URL) string
	for name, c := range map[string]struct {
		paste paste
		code  int
		says  string
	}{
		"the URL":               {func(at *url.URL) string { return "  " + at.String() + " " }, 0, ""},
		"the code alone":        {func(at *url.URL) string { return at.Query().Get("code") }, 0, ""},
		"nothing":               {func(*url.URL) string { return "" }, 1, "nothing was pasted"},
		"another URL":           {func(*url.URL) string { return "https://parley.example/" }, 1, "has no code"},
		"a wrong code":          {func(*url.URL) string { return "abc" }, 1, "refused the code"},
		"another login's state": {func(at *url.URL) string { return with(at, "state", "other") }, 1, "another login"},
		"no state":              {func(at *url.URL) string { return with(at, "state", "") }, 1, "another login"},
		"another issuer":        {func(at *url.URL) string { return with(at, "iss", "https://evil.example") }, 1, "does not come from"},
		"no issuer":             {func(at *url.URL) string { return with(at, "iss", "") }, 1, "does not come from"},
		"a refusal":             {func(at *url.URL) string { return with(at, "error", "access_denied") }, 1, "refused in the browser"},
	} {
		code, stdout, stderr := p.login(func(addr string, stdin io.Writer) {
			_, _ = io.WriteString(stdin, c.paste(ended(addr))+"\n")
		}, "--no-browser", "--scope", "svc:tasks:read", "--json")
		if code != c.code || !strings.Contains(stderr, c.says) || code == 0 && !strings.Contains(stdout, `"principal": "user:admin"`) {
			t.Errorf("%s: %d %s%s", name, code, stdout, stderr)
		}
	}
	// The person granted one scope, and the login has no more.
	if code, _, stderr := p.run("member", "list"); code != 1 || !strings.Contains(stderr, "auth.scope_missing") {
		t.Error(code, stderr)
	}
}

// with returns the URL with one parameter changed; "" removes it.
func with(u *url.URL, name, value string) string {
	q := u.Query()
	if q.Set(name, value); value == "" {
		q.Del(name)
	}
	out := *u
	out.RawQuery = q.Encode()
	return out.String()
}

func TestForeignResponsesDoNotEndALogin(t *testing.T) {
	onEachEngine(t, testForeignResponsesDoNotEndALogin)
}

func testForeignResponsesDoNotEndALogin(t *testing.T, p *person, _ *servertest.Process) {
	code, stdout, stderr := p.login(func(addr string, _ io.Writer) {
		u, err := url.Parse(addr)
		if err != nil {
			t.Fatal(err)
		}
		back := u.Query().Get("redirect_uri")
		for _, query := range []string{"", "?code=x", "?code=x&state=wrong&iss=" + url.QueryEscape(p.base), "?error=access_denied"} {
			if status, body, _ := p.open("GET", back+query, nil); status != 400 || !strings.Contains(body, "not the response") {
				t.Error(query, status, body)
			}
		}
		if status, _, _ := p.open("POST", back, url.Values{"code": {"x"}}); status != 405 {
			t.Error(status)
		}
		p.allow(addr)
	})
	if code != 0 {
		t.Error(code, stdout, stderr)
	}
	// A person who refuses is not signed in, and the previous login stays.
	_, before := p.stored()
	code, _, stderr = p.login(func(addr string, _ io.Writer) {
		_, body, _ := p.open("GET", addr, nil)
		p.open("POST", consentForm.FindStringSubmatch(body)[1], url.Values{"decision": {"refuse"}})
	})
	_, after := p.stored()
	if code != 1 || !strings.Contains(stderr, "refused in the browser") || after["refresh_token"] != before["refresh_token"] {
		t.Error(code, stderr)
	}
	// A URL that is not the server's own is refused, with what to do.
	code, _, stderr = p.run("login", "--server", strings.Replace(p.base, "127.0.0.1", "localhost", 1))
	if code != 1 || !strings.Contains(stderr, "parley login --server "+p.base) {
		t.Error(code, stderr)
	}
}

// A refresh token works once, so processes that renew the login take turns.
func TestManyCommandsAtOnceShareOneLogin(t *testing.T) {
	onEachEngine(t, testManyCommandsAtOnceShareOneLogin)
}

func testManyCommandsAtOnceShareOneLogin(t *testing.T, p *person, _ *servertest.Process) {
	p.signIn()
	for name, spoil := range map[string]func(){
		"an access token that ended": func() { p.change("expires_at", "2020-01-01T00:00:00Z") },
		"one that was revoked":       func() { p.change("access_token", "parley_at_"+strings.Repeat("0", 36)) },
	} {
		_, before := p.stored()
		spoil()
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if code, stdout, stderr := p.run("proposal", "list"); code != 0 {
					t.Errorf("%s: %d %s%s", name, code, stdout, stderr)
				}
			})
		}
		wg.Wait()
		if _, after := p.stored(); after["refresh_token"] == before["refresh_token"] || after["access_token"] == before["access_token"] {
			t.Errorf("%s: the login was not renewed", name)
		}
	}
	if code, stdout, stderr := p.run("whoami"); code != 0 {
		t.Error("the login did not survive:", code, stdout, stderr)
	}
}

// A person who lost a machine ends its login from another.
func TestALoginIsEndedOnTheAccountPage(t *testing.T) {
	onEachEngine(t, testALoginIsEndedOnTheAccountPage)
}

func testALoginIsEndedOnTheAccountPage(t *testing.T, p *person, _ *servertest.Process) {
	p.signIn()
	p.signIn() // which ends the first login
	_, body, _ := p.open("GET", "/account", nil)
	end := endForm.FindAllStringSubmatch(body, -1)
	if len(end) != 1 || !strings.Contains(body, "Parley command line") {
		t.Fatal(body)
	}
	if status, body, _ := p.open("POST", end[0][1], url.Values{}); status != 200 || strings.Contains(body, "Parley command line") {
		t.Error(status, body)
	}
	var stderr string
	if err := eventually(func() error {
		code, _, errs := p.run("proposal", "list")
		if stderr = errs; code != 1 {
			return errStillWorks
		}
		return nil
	}); err != nil || !strings.Contains(stderr, "your login at "+p.base+" has ended; sign in again with: parley login") {
		t.Error(err, stderr)
	}
	if data, err := os.ReadFile(p.credentials()); err != nil || strings.Contains(string(data), "token") {
		t.Error("the ended login is kept:", string(data), err)
	}
}

// A login has an org, which commands need not name.
func TestCommandsWorkInTheOrgOfTheLogin(t *testing.T) {
	onEachEngine(t, testCommandsWorkInTheOrgOfTheLogin)
}

func testCommandsWorkInTheOrgOfTheLogin(t *testing.T, p *person, s *servertest.Process) {
	operator := func(args ...string) string {
		t.Helper()
		store := "--data=parley-data"
		for _, kv := range s.Cmd.Env {
			if database, ok := strings.CutPrefix(kv, "PARLEY_DATABASE="); ok {
				store = "--database=" + database
			}
		}
		cmd := exec.Command(filepath.Join(binDir, "parley"), append(args, store)...)
		cmd.Dir, cmd.Env = s.Cmd.Dir, s.Cmd.Env
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatal(args, err, string(out))
		}
		return string(out)
	}
	operator("org", "create", "acme")
	operator("user", "create", "zoe", "--org", "acme")
	p.open("POST", "/logout", url.Values{})
	p.enter(setupLink.FindString(operator("admin", "link", "--org", "acme", "--user", "zoe", "--public-url", p.base)))
	code, stdout, stderr := p.login(func(addr string, _ io.Writer) { p.allow(addr) })
	if code != 0 || !strings.Contains(stdout, "as user:zoe of org acme: svc:tasks:read svc:tasks:write svc:a2a:write\n") {
		t.Fatal(code, stdout, stderr)
	}
	for _, args := range [][]string{{"proposal", "list"}, {"proposal", "list", "--org", "acme"}} {
		if code, stdout, stderr := p.run(args...); code != 0 {
			t.Error(args, code, stdout, stderr)
		}
	}
	if code, _, stderr := p.run("proposal", "list", "--org", "main"); code != 1 || !strings.Contains(stderr, "resource.not_found") {
		t.Error(code, stderr)
	}
	// A user who is not an admin does not get svc:admin:admin.
	if code, _, stderr := p.run("member", "list"); code != 1 || !strings.Contains(stderr, "auth.scope_missing") {
		t.Error(code, stderr)
	}
}
