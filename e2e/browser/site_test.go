package browser

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/parley-dev/parley/internal/pgtest"
	"github.com/parley-dev/parley/internal/servertest"
)

const (
	org      = "main"
	password = "four words of mine"
)

var setupLink = regexp.MustCompile(`http://127\.0\.0\.1:\d+/setup/\S+`)

// site is a server with a fresh store.
type site struct {
	*servertest.Process
	base  string   // http://127.0.0.1:port
	setup string   // the link that the first start printed
	key   string   // the first key, of user:admin
	store []string // flags that select the store
}

// newSite starts a server for one test, on SQLite.
func newSite(t *testing.T, flags ...string) *site {
	t.Helper()
	data := filepath.Join(t.TempDir(), "data") // created by the server with its own permissions
	return newSiteOn(t, []string{"--data", data}, flags...)
}

// onPostgres returns the flags of a fresh PostgreSQL database.
func onPostgres(t *testing.T) []string {
	t.Helper()
	return []string{"--database", pgtest.URL(t)}
}

func newSiteOn(t *testing.T, store []string, flags ...string) *site {
	t.Helper()
	s, err := startSite(store, flags...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Kill()
		if t.Failed() {
			t.Logf("the server said:\n%s", warnings(s.Said.String()))
		}
	})
	return s
}

func startSite(store []string, flags ...string) (*site, error) {
	if !slices.Contains(flags, "--rate-limit") {
		flags = append(flags, "--rate-limit", "0")
	}
	if !slices.Contains(flags, "--outbound-allow") {
		flags = append(flags, "--outbound-allow", "127.0.0.1")
	}
	cmd := exec.Command(program, slices.Concat([]string{"serve", "--listen", "127.0.0.1:0"}, store, flags)...)
	cmd.Env = servertest.Environ()
	p, err := servertest.Start(cmd, "/readyz")
	if err != nil {
		return nil, err
	}
	return &site{Process: p, base: p.URL, setup: setupLink.FindString(p.Stdout.String()), key: p.Key, store: store}, nil
}

// cli runs an operator's command on the store of the site, while it serves.
func (s *site) cli(t testing.TB, args ...string) string {
	t.Helper()
	out, err := s.operator(args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (s *site) operator(args ...string) (string, error) {
	return servertest.Run(exec.Command(program, slices.Concat(args, s.store)...))
}

// path returns the path of a page of the org.
func (s *site) path(page string) string { return "/orgs/" + org + page }

// object is a JSON object.
type object = map[string]any

// api is a REST client.
type api struct {
	s   *site
	key string
}

func (s *site) api(key string) api { return api{s, key} }

// keyOf creates a key for a principal with the command line.
func (s *site) keyOf(principal string, scopes ...string) (api, error) {
	return s.keyIn(org, principal, scopes...)
}

func (s *site) keyIn(org, principal string, scopes ...string) (api, error) {
	args := []string{"key", "create", "--org", org, "--as", principal}
	for _, scope := range scopes {
		args = append(args, "--scope", scope)
	}
	out, err := s.operator(args...)
	return api{s, servertest.Secret.FindString(out)}, err
}

// call makes a call below the org, such as "POST /proposals".
func (a api) call(line string, body any, headers ...string) (int, object, error) {
	method, path, _ := strings.Cut(line, " ")
	if strings.HasPrefix(path, "~") {
		path = path[1:]
	} else {
		path = "/api/v1/orgs/" + org + path
	}
	var r io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return 0, nil, err
		}
		r = bytes.NewReader(b)
	}
	req, err := http.NewRequest(method, a.s.base+path, r)
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+a.key)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = res.Body.Close() }()
	var out object
	b, err := io.ReadAll(res.Body)
	if len(b) > 0 {
		_ = json.Unmarshal(b, &out) // the status reports a body that is no object
	}
	return res.StatusCode, out, err
}

// do is call with any refusal as a failure.
func (a api) do(t testing.TB, line string, body any, headers ...string) object {
	t.Helper()
	status, out, err := a.call(line, body, headers...)
	if err != nil || status/100 != 2 {
		t.Fatalf("%s: got %d, %v, %v; want 2xx", line, status, out, err)
	}
	return out
}

// person is a user with a session.
type person struct {
	user   string
	http   *http.Client
	cookie *http.Cookie
}

// signIn creates the user if needed, and a session.
func (s *site) signIn(t testing.TB, user string, admin bool) *person {
	t.Helper()
	p, err := s.enter(user, admin)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (s *site) enter(user string, admin bool) (*person, error) {
	return s.enterIn(org, user, password, admin)
}

// enterIn is enter for any org and password.
func (s *site) enterIn(org, user, password string, admin bool) (*person, error) {
	args := []string{"user", "create", user, "--org", org}
	if admin {
		args = append(args, "--admin")
	}
	if user != "admin" {
		if _, err := s.operator(args...); err != nil && !strings.Contains(err.Error(), "already") {
			return nil, err
		}
	}
	link, err := s.operator("admin", "link", "--org", org, "--user", user, "--public-url", s.base)
	if err != nil {
		return nil, err
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	p := &person{user: user, http: &http.Client{Jar: jar}}
	res, err := p.http.PostForm(setupLink.FindString(link), url.Values{"password": {password}, "repeat": {password}})
	if err != nil {
		return nil, err
	}
	_ = res.Body.Close()
	base, err := url.Parse(s.base)
	if err != nil {
		return nil, err
	}
	for _, c := range jar.Cookies(base) {
		p.cookie = c
	}
	if p.cookie == nil {
		return nil, fmt.Errorf("%s has no session: %s", user, res.Status)
	}
	return p, nil
}

// get fetches a page without a browser.
func (s *site) get(t testing.TB, p *person, path string, headers ...string) (*http.Response, string) {
	t.Helper()
	return s.send(t, p, http.MethodGet, path, nil, headers...)
}

// send sends a request of a person without a browser.
func (s *site) send(
	t testing.TB,
	p *person,
	method, path string,
	form url.Values,
	headers ...string,
) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.base+path, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	client := http.DefaultClient
	if p != nil {
		client = p.http
	}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(b)
}

// shared is a filled site with two people.
type shared struct {
	*site
	*seeded
	admin, member *person
}

// Sites that tests share: one with hostile texts, and one without.
var (
	openShared = sharing("shared", (*seeding).attack)
	openCalm   = sharing("calm")
)

// sharing starts a site on first use; it lives as long as the tests.
func sharing(name string, more ...func(*seeding)) func() (*shared, error) {
	return sync.OnceValues(func() (*shared, error) {
		s, err := startSite([]string{"--data", filepath.Join(scratch, name)})
		if err != nil {
			return nil, err
		}
		atEnd(s.Kill)
		return s.filled(more...)
	})
}

// filled fills a new site like a busy org, and more.
func (s *site) filled(more ...func(*seeding)) (*shared, error) {
	out := &shared{site: s}
	var err error
	if out.admin, err = s.enter("admin", true); err != nil {
		return nil, err
	}
	if out.seeded, err = s.seed(more...); err != nil {
		return nil, err
	}
	out.member, err = s.enter("bob", false)
	return out, err
}

// newFilled is filled for the use of one test.
func newFilled(t *testing.T, s *site, more ...func(*seeding)) *shared {
	t.Helper()
	out, err := s.filled(more...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// readOnly returns the site with hostile texts. Changing it breaks other tests.
func readOnly(t testing.TB) *shared { t.Helper(); return opened(t, openShared) }

// calmReadOnly returns the site without them.
func calmReadOnly(t testing.TB) *shared { t.Helper(); return opened(t, openCalm) }

func opened(t testing.TB, open func() (*shared, error)) *shared {
	t.Helper()
	s, err := open()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// warnings returns the log lines of level WARN and above.
func warnings(log string) string {
	var b strings.Builder
	for line := range strings.Lines(log) {
		if strings.Contains(line, "level=WARN") || strings.Contains(line, "level=ERROR") || strings.Contains(line, "panic") {
			b.WriteString(line)
		}
	}
	return b.String()
}
