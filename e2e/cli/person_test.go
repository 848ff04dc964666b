package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/pgtest"
	"github.com/parley-dev/parley/internal/servertest"
)

// person is a user with a browser that keeps cookies. It follows redirects, except to URLs
// that are there to be copied.
type person struct {
	*testing.T
	http *http.Client
	base string
	dir  string // home of the person's own machine
}

var (
	endForm      = regexp.MustCompile(`action="(/account/programs/[^"]+/end[^"]*)"`)
	setupLink    = regexp.MustCompile(`http://\S+/setup/[-_0-9A-Za-z]{43}`)
	consentForm  = regexp.MustCompile(`action="(/oauth/authorize/[0-9a-z]+)"`)
	authorizeURL = regexp.MustCompile(`https?://\S+/oauth/authorize\?\S+`)
)

const password = "four words of mine"

// onEachEngine runs the test with a server on a fresh store of each engine, whose
// first admin is signed in.
func onEachEngine(t *testing.T, test func(t *testing.T, p *person, s *servertest.Process)) {
	t.Parallel()
	for engine, settings := range map[string]func(t *testing.T) []string{
		"sqlite":   func(*testing.T) []string { return nil },
		"postgres": func(t *testing.T) []string { return []string{"PARLEY_DATABASE=" + pgtest.URL(t)} },
	} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			p, s := newPerson(t, settings(t)...)
			test(t, p, s)
		})
	}
}

// newPerson starts a server with the settings and signs its first admin in.
func newPerson(t *testing.T, settings ...string) (*person, *servertest.Process) {
	t.Helper()
	dir := t.TempDir()
	s, err := startServer(dir, cleanEnv(dir, settings...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &person{t, &http.Client{Jar: jar, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if r.URL.Host == "127.0.0.1" { // without a port: no server listens there
			return http.ErrUseLastResponse
		}
		return nil
	}}, s.URL, t.TempDir()}
	// The machine's browser only notes the URL that it was given; the person has another.
	script := "printf %s \"$1\" > opened.new && mv opened.new opened\n"
	if err := os.WriteFile(filepath.Join(p.dir, "open.sh"), []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	p.enter(setupLink.FindString(s.Stdout.String()))
	return p, s
}

// enter chooses a password.
func (p *person) enter(link string) {
	p.Helper()
	if status, body, _ := p.open("POST", link, url.Values{"password": {password}, "repeat": {password}}); status != 200 {
		p.Fatal(status, body)
	}
}

// open fetches a page and returns the response at which the browser ended.
func (p *person) open(method, addr string, form url.Values) (int, string, *http.Response) {
	p.Helper()
	if strings.HasPrefix(addr, "/") {
		addr = p.base + addr
	}
	r, err := http.NewRequestWithContext(p.Context(), method, addr, strings.NewReader(form.Encode()))
	if err != nil {
		p.Fatal(err)
	}
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	res, err := p.http.Do(r)
	if err != nil {
		p.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		p.Fatal(err)
	}
	return res.StatusCode, string(body), res
}

// allow grants what the consent page asks for: all scopes, unless some are given.
func (p *person) allow(addr string, scopes ...string) (int, string, *http.Response) {
	p.Helper()
	status, body, _ := p.open("GET", addr, nil)
	m := consentForm.FindStringSubmatch(body)
	if m == nil {
		p.Fatal(status, body)
	}
	if len(scopes) == 0 {
		for _, s := range regexp.MustCompile(`name="scope" value="([^"]+)"`).FindAllStringSubmatch(body, -1) {
			scopes = append(scopes, s[1])
		}
	}
	return p.open("POST", m[1], url.Values{"decision": {"allow"}, "scope": scopes})
}

func (p *person) credentials() string { return filepath.Join(p.dir, "logins", "credentials.json") }

// parley prepares a command on the person's own machine.
func (p *person) parley(args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(binDir, "parley"), args...)
	cmd.Dir = p.dir
	cmd.Env = cleanEnv(p.dir, "PARLEY_SERVER="+p.base, "PARLEY_CREDENTIALS="+p.credentials(), "PARLEY_BROWSER=sh open.sh")
	return cmd
}

// run runs a command to its end.
func (p *person) run(args ...string) (code int, stdout, stderr string) {
	p.Helper()
	cmd := p.parley(args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		p.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// login runs parley login. The function gets the URL to open, and stdin.
func (p *person) login(decide func(addr string, stdin io.Writer), args ...string) (code int, stdout, stderr string) {
	p.Helper()
	cmd := p.parley(append([]string{"login"}, args...)...)
	var out bytes.Buffer
	cmd.Stdout = &out
	stdin, err := cmd.StdinPipe()
	if err != nil {
		p.Fatal(err)
	}
	pipe, err := cmd.StderrPipe()
	if err != nil {
		p.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		p.Fatal(err)
	}
	timer := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	var errs strings.Builder
	asked := false
	for lines := bufio.NewScanner(pipe); lines.Scan(); {
		errs.WriteString(lines.Text() + "\n")
		if addr := authorizeURL.FindString(lines.Text()); addr != "" && !asked {
			asked = true
			decide(addr, stdin)
		}
	}
	_ = cmd.Wait()
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// signIn logs in through the port on the person's own machine.
func (p *person) signIn() {
	p.Helper()
	code, stdout, stderr := p.login(func(addr string, _ io.Writer) {
		if err := eventually(func() error {
			opened, err := os.ReadFile(filepath.Join(p.dir, "opened"))
			if err == nil && string(opened) != addr {
				err = fmt.Errorf("the browser was sent to %s, not to %s", opened, addr)
			}
			return err
		}); err != nil {
			p.Error(err)
		}
		if status, body, _ := p.allow(addr); status != 200 || !strings.Contains(body, "<h1>Signed in</h1>") ||
			!strings.Contains(body, "You can close this tab") {
			p.Error(status, body)
		}
	})
	if code != 0 || !strings.Contains(stdout, "as user:admin of org main: svc:tasks:read svc:tasks:write svc:a2a:write svc:admin:admin") {
		p.Fatal(code, stdout, stderr)
	}
}

// stored returns the only login in the file.
func (p *person) stored() (all map[string]map[string]map[string]any, login map[string]any) {
	p.Helper()
	data, err := os.ReadFile(p.credentials())
	if err != nil {
		p.Fatal(err)
	}
	if err := json.Unmarshal(data, &all); err != nil || len(all["logins"]) != 1 {
		p.Fatal(err, string(data))
	}
	return all, all["logins"][p.base]
}

// change edits the only login in the file.
func (p *person) change(name string, value any) {
	p.Helper()
	all, login := p.stored()
	login[name] = value
	data, err := json.Marshal(all)
	if err == nil {
		err = os.WriteFile(p.credentials(), data, 0o600)
	}
	if err != nil {
		p.Fatal(err)
	}
}
