package web_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/orgtest"
)

// office is the dashboard with the orgs acme (ada, an admin, bob and the agent scout) and globex
// (eve, an admin).
type office struct {
	*dashboard

	ada, bob, eve *visitor
}

// visitor is a browser with a session.
type visitor struct {
	tb     testing.TB
	site   *office
	cookie *http.Cookie
	last   string // token of the last form
}

// seen is a response.
type seen struct {
	tb     testing.TB
	code   int
	header http.Header
	body   string
}

func newOffice(tb testing.TB, edit ...func(*httpx.Options)) *office {
	tb.Helper()
	o := &office{dashboard: newDashboard(tb, edit...)}
	o.Agent(agent.Agent{ID: "scout", Org: "acme", Name: "Scout"})
	person := func(org, id string, admin bool) *visitor {
		return &visitor{tb: tb, site: o, cookie: o.signIn(org, id, strings.ToUpper(id[:1])+id[1:], admin)}
	}
	o.ada, o.bob, o.eve = person("acme", "ada", true), person("acme", "bob", false), person("globex", "eve", true)
	return o
}

func (v *visitor) send(method, path string, form url.Values) *seen {
	v.tb.Helper()
	w := v.site.visit(v.cookie, method, path, form)
	out := &seen{tb: v.tb, code: w.Code, header: w.Result().Header, body: w.Body.String()}
	if out.code != http.StatusSeeOther && strings.HasPrefix(path, "/orgs/") {
		out.sound(path)
	}
	return out
}

// get opens a page of acme.
func (v *visitor) get(path string) *seen {
	v.tb.Helper()
	return v.send(http.MethodGet, "/orgs/acme"+path, nil)
}

// post sends a form of acme with a new token; pairs are its fields.
func (v *visitor) post(path string, pairs ...string) *seen {
	v.tb.Helper()
	v.last = orgtest.NewID("t")
	return v.again(path, pairs...)
}

// again sends a form with the previous token.
func (v *visitor) again(path string, pairs ...string) *seen {
	v.tb.Helper()
	form := url.Values{"once": {v.last}}
	for i := 0; i < len(pairs); i += 2 {
		form.Add(pairs[i], pairs[i+1])
	}
	return v.send(http.MethodPost, "/orgs/acme"+path, form)
}

func (s *seen) want(code int, texts ...string) *seen {
	s.tb.Helper()
	if s.code != code {
		s.tb.Fatalf("status %d, want %d: %s", s.code, code, s.main())
	}
	for _, t := range texts {
		if !strings.Contains(s.body, t) {
			s.tb.Errorf("the page lacks %q: %s", t, s.main())
		}
	}
	return s
}

func (s *seen) lacks(texts ...string) *seen {
	s.tb.Helper()
	for _, t := range texts {
		if strings.Contains(s.body, t) {
			s.tb.Errorf("the page has %q: %s", t, s.main())
		}
	}
	return s
}

// leads follows the redirect after a form.
func (s *seen) leads(v *visitor, texts ...string) *seen {
	s.tb.Helper()
	s.want(http.StatusSeeOther)
	to, _, _ := strings.Cut(s.header.Get("Location"), "#")
	return v.send(http.MethodGet, to, nil).want(http.StatusOK, texts...)
}

// main returns the page without its menu.
func (s *seen) main() string {
	if _, rest, ok := strings.Cut(s.body, "<main"); ok {
		return "<main" + rest
	}
	return s.body
}

var (
	quoted       = regexp.MustCompile(`"[^"]*"`)
	inlineScript = regexp.MustCompile(`<script>|<[^>]*\son[a-z]+=`)
	inlineStyle  = regexp.MustCompile(`<[^>]*\sstyle=`)
	foreignLink  = regexp.MustCompile(`(href|src|action)="(https?:)?//`)
	idOf         = regexp.MustCompile(`<[^>]*\sid="([^"]*)"`)
	formTag      = regexp.MustCompile(`(?s)<form[^>]*method="post".*?</form>`)
	secretText   = regexp.MustCompile(identity.SecretPattern)
)

// sound checks the rules for all pages.
func (s *seen) sound(path string) {
	s.tb.Helper()
	for name, bad := range map[string]*regexp.Regexp{"inline style": inlineStyle, "foreign link": foreignLink} {
		if at := bad.FindString(s.body); at != "" {
			s.tb.Errorf("%s: %s: %s", path, name, at)
		}
	}
	if at := inlineScript.FindString(quoted.ReplaceAllString(s.body, `""`)); at != "" {
		s.tb.Errorf("%s: inline script: %s, want empty", path, at)
	}
	ids := map[string]bool{}
	for _, m := range idOf.FindAllStringSubmatch(s.body, -1) {
		if ids[m[1]] {
			s.tb.Errorf("%s: duplicate id %q", path, m[1])
		}
		ids[m[1]] = true
	}
	for _, ref := range regexp.MustCompile(`(?:aria-describedby|aria-labelledby|for)="([^"]*)"`).
		FindAllStringSubmatch(s.body, -1) {
		for id := range strings.FieldsSeq(ref[1]) {
			if !ids[id] {
				s.tb.Errorf("%s: nothing has the id %q, want ids[id] true", path, id)
			}
		}
	}
	for _, f := range formTag.FindAllString(s.body, -1) {
		if !strings.Contains(f, `name="once"`) {
			s.tb.Errorf("%s: a form without a token: %s, want containing name=\"once\"", path, f)
		}
	}
	if csp := s.header.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") ||
		strings.Contains(csp, "unsafe") {
		s.tb.Errorf("%s: policy %q, want containing default-src 'none', without unsafe", path, csp)
	}
}

// key creates a key of a principal of acme.
func (o *office) key(ref string, scopes ...identity.Scope) identity.Key {
	o.Helper()
	_, id := o.Key("acme", ref, scopes...)
	k, err := o.Store.Identity().Key(o.Context(), "acme", id)
	if err != nil {
		o.Fatal(err)
	}
	return k
}

func newForm(path string, form url.Values) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/orgs/acme"+path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return r
}

func serve(o *office, r *http.Request) int {
	w := httptest.NewRecorder()
	o.handler.ServeHTTP(w, r)
	return w.Code
}

// accessOf authorizes a principal of acme for the action.
func accessOf(t *testing.T, o *office, ref string, action identity.Action, scopes ...identity.Scope) identity.Access {
	t.Helper()
	value, _ := o.Key("acme", ref, scopes...)
	c, err := o.Auth.Authenticate(t.Context(), value)
	if err != nil {
		t.Fatal(err)
	}
	a, err := identity.Authorize(c, "acme", action)
	if err != nil {
		t.Fatal(err)
	}
	return a
}
