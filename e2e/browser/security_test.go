package browser

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestPolicy checks the headers and the HTML of every page: a strict policy, and nothing that
// would need a weaker one.
func TestPolicy(t *testing.T) {
	begin(t)
	s := readOnly(t)
	for _, c := range allPages(t, s) {
		t.Run(c.name, func(t *testing.T) {
			res, body := s.get(t, s.who(c), c.path)
			policy := res.Header.Get("Content-Security-Policy")
			for _, part := range []string{
				"default-src 'none'", "script-src 'self'", "style-src 'self'", "base-uri 'none'", "frame-ancestors 'none'",
				"form-action 'self'",
			} {
				if !strings.Contains(policy, part) {
					t.Errorf("policy = %s, want it to have %s", policy, part)
				}
			}
			if strings.Contains(policy, "unsafe") || strings.Contains(policy, "*") || strings.Contains(policy, "http") {
				t.Errorf("policy = %s, want no unsafe, wildcard or foreign source", policy)
			}
			if res.Header.Get("X-Content-Type-Options") != "nosniff" {
				t.Error("got no X-Content-Type-Options: nosniff, want it")
			}
			for _, m := range inlineScript.FindAllString(body, -1) {
				t.Errorf("%s has %s, want no inline script", c.path, cut(m, 200))
			}
			for _, m := range inlineAttribute.FindAllString(quoted.ReplaceAllString(body, `=""`), -1) {
				t.Errorf("%s has %s, want no inline attribute", c.path, cut(m, 200))
			}
		})
	}
}

// The policy forbids inline scripts and styles, JSON blocks included, and the htmx attributes that
// need eval.
var (
	inlineScript = regexp.MustCompile(
		`(?i)<script(?:\s+(?:src="/static/[^"]+"|defer|async|type="module"))*\s*>[^<]|<script>|` +
			`<script [^>]*type="(?:application|importmap|text)[^>]*>|<style|hx-vals="js:|hx-trigger="[^"]*\[`,
	)
	inlineAttribute = regexp.MustCompile(`(?i)<[a-z][^<>]*\s(?:style|on[a-z]+|hx-on[^=<>]*)\s*=`)
	quoted          = regexp.MustCompile(`="[^"]*"`)
)

// TestNoForeignLinks checks that pages link to no other site, in an org whose texts contain no
// links.
func TestNoForeignLinks(t *testing.T) {
	begin(t)
	s := calmReadOnly(t)
	foreign := regexp.MustCompile(
		`(?i)\s(href|src|action|formaction|hx-[a-z]+|poster|cite|data)\s*=\s*"(https?:)?//[^"]*"`,
	)
	for _, path := range append(crawl(t, s, s.admin), "/login", "/account") {
		_, body := s.get(t, s.admin, path)
		for _, m := range foreign.FindAllString(body, -1) {
			if strings.Contains(m, s.base) {
				m = "its own address, which a proxy may have changed:" + m
			}
			t.Errorf("%s has %s, want no absolute URL", path, m)
		}
	}
}

// TestHostileText opens every page of an org in which every text is an attack. Nothing runs,
// nothing is fetched (the tab watches), and the text is shown as text.
func TestHostileText(t *testing.T) {
	begin(t)
	s := readOnly(t)
	paths := append(
		slices.Clone(crawled(t, s)),
		s.path("/agents/hostile"),
		s.path("/tasks/"+s.hostileUID),
		s.path("/agents/"+runner+"/tasks/"+url.PathEscape(s.hostileTask)),
		s.path("/proposals/"+s.decided),
		s.path("/proposals/"+s.hostile+"/edit"),
	)
	for _, c := range allPages(t, s) {
		if c.who == "admin" {
			paths = append(paths, c.path)
		}
	}
	slices.Sort(paths)
	shown := map[string]bool{}
	w := s.tab(t, s.admin)
	for _, path := range slices.Compact(paths) {
		w.open(path)
		if js[bool](w, "'pwned' in window") {
			t.Errorf("a text ran as a script on %s, want it shown", path)
		}
		w.waitFor("getComputedStyle(document.body).display !== 'none'")
		if n := js[int](w, `document.querySelectorAll(
			'main script, main style, main base, main meta, main iframe, main object, main embed').length`); n > 0 {
			t.Errorf("%s has %d elements made by a text, want 0", path, n)
		}
		for _, found := range js[[]string](w, `[...document.querySelectorAll('main *')]
			.flatMap(e => [...e.attributes].map(a => a.name + '=' + a.value)
			.filter(a => /^on|^(href|src|action|formaction)=\s*(javascript|data|vbscript):|^(src|action)=\/\//i.test(a)))`) {
			t.Errorf("%s has %s, want no such attribute", path, found)
		}
		for _, found := range js[[]string](w, `[...document.querySelectorAll('main a[href]')].filter(a => a.origin !== location.origin)
			.filter(a => !/noopener/.test(a.rel) || !/nofollow/.test(a.rel)).map(a => a.outerHTML)`) {
			t.Errorf("%s has %s, want noopener and nofollow", path, found)
		}
		text := js[string](
			w,
			`document.documentElement.textContent + [...document.querySelectorAll('input, textarea, [title], [aria-label]')]
			.map(e => [e.value, e.title, e.ariaLabel].join(' ')).join(' ')`,
		)
		for _, mark := range s.marks {
			shown[mark] = shown[mark] || strings.Contains(text, mark)
		}
	}
	for _, mark := range s.marks {
		if !shown[mark] {
			t.Errorf("no page shows the text with %s, want at least one", mark)
		}
	}
}

// TestBidi checks that a text cannot reorder its surroundings: user texts are isolated.
func TestBidi(t *testing.T) {
	begin(t)
	s := readOnly(t)
	w := s.tab(t, s.admin)
	for _, c := range allPages(t, s) {
		if c.who != "admin" {
			continue
		}
		w.open(c.path)
		for _, found := range js[[]string](w, `(() => { const out = [];
			const walk = document.createTreeWalker(document.querySelector('main') ?? document.body, NodeFilter.SHOW_TEXT);
			for (let n; n = walk.nextNode();) {
				if (!/[\u202a-\u202e\u2066-\u2069]/.test(n.data)) continue;
				const e = n.parentElement;
				if (e.closest('bdi, [dir], textarea, option, title, pre, svg')) continue;
				const isolated = (() => { for (let p = e; p && p.tagName !== 'MAIN'; p = p.parentElement) {
					const s = getComputedStyle(p);
					if (/isolate|plaintext/.test(s.unicodeBidi) &&
						(s.display !== 'block' || p.textContent.trim() === n.data.trim())) return true } return false })();
				if (!isolated) out.push(e.outerHTML.slice(0, 160));
			}
			return out })()`) {
			t.Errorf("%s: %s is not isolated, want it to be", c.path, found)
		}
	}
}

// TestGetChangesNothing requests every page, and every POST route by GET: neither the data nor the
// audit log change.
func TestGetChangesNothing(t *testing.T) {
	begin(t)
	s := newFilled(t, newSite(t), (*seeding).attack)
	state := func() string {
		var b strings.Builder
		for _, line := range []string{
			"GET /audit?limit=5", "GET /proposals?limit=100", "GET /proposals?status=approved", "GET /followups?limit=100",
			"GET /keys?limit=100",
			"GET /clients?limit=100", "GET /members?limit=100", "GET /invitations?limit=100", "GET /settings/friction",
			"GET /agents",
		} {
			status, out, err := s.root.call(line, nil)
			if err != nil || status != http.StatusOK {
				t.Fatalf("%s: got %d, %v, %v; want 200", line, status, out, err)
			}
			fmt.Fprintln(&b, line, lastUse(out))
		}
		return b.String()
	}
	state() // the key's own last use
	before := state()
	paths := crawl(t, s, s.admin)
	for _, c := range fixedPages(s) {
		paths = append(paths, c.path)
	}
	for _, path := range paths {
		s.get(t, s.admin, path)
		s.get(t, s.admin, path, "HX-Request: true")
	}
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		for _, route := range append(routes(t, "POST"), routes(t, "GET")...) {
			path := s.sample(route)
			if strings.HasPrefix(path, "/logout") || strings.Contains(path, "/sso") {
				continue
			}
			res, _ := s.send(t, s.admin, method, path+"?status=rejected&vote=for&confirm=yes&decision=approved&note=x", nil)
			if res.StatusCode >= 500 {
				t.Errorf("%s %s: status = %s, want below 500", method, path, res.Status)
			}
		}
	}
	if after := state(); after != before {
		t.Errorf("state after GETs = %s\nwant %s", after, before)
	}
}

// lastUse removes the times when keys were last used and workers last seen, and the status of
// agents, which follows their workers a moment later.
func lastUse(v any) any {
	switch v := v.(type) {
	case object:
		delete(v, "last_used_at")
		delete(v, "last_seen_at")
		if _, agent := v["pinned_status"]; agent {
			delete(v, "status")
		}
		for _, member := range v {
			lastUse(member)
		}
	case []any:
		for _, member := range v {
			lastUse(member)
		}
	}
	return v
}

// sample fills the wildcards of a route.
func (s *shared) sample(route string) string {
	if !regexp.MustCompile(`^/(login|logout|account|setup|join|static|\{\$\})`).MatchString(route) {
		route = s.path(route)
	}
	id := s.open
	for part, known := range map[string]string{
		"/followups/": s.followup, "/keys/": s.keyID, "/clients/": s.client,
		"/invitations/": s.invited,
	} {
		if strings.Contains(route, part) {
			id = known
		}
	}
	return strings.NewReplacer("{id}", id, "{agent}", "scout", "{ref}", "user:carol", "{user}", "carol", "{token}",
		strings.Repeat("A", 43),
		"{$}", "", "{file}", "app.css", "{name}", "x", "{fingerprint}", "registry:timeout", "{uid}", "x", "{member}",
		"user:carol").
		Replace(route)
}

// TestOtherSites submits every form as another site would: all are refused without effect.
func TestOtherSites(t *testing.T) {
	begin(t)
	s := calmReadOnly(t)
	before := s.root.do(t, "GET /audit?limit=5", nil)
	for _, route := range routes(t, "POST") {
		path := s.sample(route)
		if strings.Contains(path, "/sso") {
			continue // returns 404 without providers
		}
		for _, headers := range [][]string{
			{"Sec-Fetch-Site: cross-site", "Origin: http://evil.example"},
			{"Origin: http://evil.example"},
			{"Sec-Fetch-Site: same-site", "Origin: " + s.base + "1"},
			{"Origin: null"},
		} {
			res, body := s.send(
				t,
				s.admin,
				http.MethodPost,
				path,
				url.Values{"status": {"approved"}, "vote": {"for"}, "name": {"x"}},
				headers...)
			if res.StatusCode != http.StatusForbidden || !strings.Contains(body, "another site") {
				t.Errorf("POST %s with %v: status = %s, want 403", path, headers, res.Status)
			}
		}
	}
	if after := s.root.do(t, "GET /audit?limit=5", nil); fmt.Sprint(lastUse(after)) != fmt.Sprint(lastUse(before)) {
		t.Errorf("audit log after forms of another site = %v, want %v", after, before)
	}
}
