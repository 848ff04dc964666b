package browser

import (
	"html"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"
)

// A pageCase is a page in a state: its path, and its viewer (admin, member or signed out).
type pageCase struct {
	name string
	path string
	who  string
}

// fixedPages are the pages that no link of the dashboard leads to, and states of others.
func fixedPages(s *shared) []pageCase {
	in := s.path
	return []pageCase{
		{"login", "/login", ""},
		{"setup-used", "/setup/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", ""},
		{"join-used", "/join/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", ""},
		{"account", "/account", "admin"},
		{"not-found", in("/proposals/prop-00000000000000000000000000"), "admin"},
		{"proposals", in("/proposals"), "admin"},
		{"proposal", in("/proposals/" + s.open), "admin"},
		{"proposal-approved", in("/proposals/" + s.approved), "admin"},
		{"proposal-rejected", in("/proposals/" + s.rejected), "admin"},
		{"proposal-resolved", in("/proposals/" + s.resolved), "admin"},
		{"proposal-hostile", in("/proposals/" + s.hostile), "admin"},
		{"proposal-long", in("/proposals/" + s.long), "admin"},
		{"proposal-member", in("/proposals/" + s.open), "member"},
		{"proposals-member", in("/proposals"), "member"},
		{"proposals-groups", in("/proposals?group=submitter"), "admin"},
		{"proposals-none", in("/proposals?q=zzzzqqqq"), "admin"},
		{"proposals-rejected", in("/proposals?status=rejected"), "admin"},
		{"proposals-wrong", in("/proposals?category=nonsense"), "admin"},
		{"bulk-approve", in("/proposals/decide?status=approved&pick=" + s.mine + ".1&pick=" + s.long + ".1"), "admin"},
		{"bulk-reject", in("/proposals/decide?status=rejected&pick=" + s.mine + ".1&pick=" + s.open + ".1"), "admin"},
		{"forbidden", in("/keys"), "member"},
		{"keys-ends-soon", in("/keys?view=ends"), "admin"},
		{"start-member", in("/start"), "member"},
		{"agent-member", in("/agents/scout"), "member"},
		{"overview", in("/overview"), "admin"},
		{"overview-member", in("/overview"), "member"},
		{"webhooks", in("/webhooks"), "admin"},
		{"webhook", in("/webhooks/" + s.hook), "admin"},
		{"webhook-new", in("/webhooks/new"), "admin"},
		{"events", in("/events"), "admin"},
		{"events-member", in("/events?type=proposal.*"), "member"},
		{"events-none", in("/events?type=client.deleted"), "admin"},
		{"events-wrong", in("/events?subject=nonsense"), "admin"},
		{"agents", in("/agents"), "admin"},
		{"agent-console", in("/agents/" + runner), "admin"},
		{"agent-refused", in("/agents/scout"), "admin"},
		{"agent-task", in("/agents/" + runner + "/tasks/job-1"), "admin"},
		{"agent-task-question", in("/agents/" + runner + "/tasks/job-4"), "admin"},
		{"agent-relay", in("/agents/" + relayed), "admin"},
		{"agent-relay-member", in("/agents/" + relayed), "member"},
		{"agent-new", in("/agents/new"), "admin"},
		{"agent-new-relay", in("/agents/new?kind=relay"), "admin"},
		{"catalogue", in("/catalogue"), "member"},
		{"catalogue-none", in("/catalogue?q=zzzzqqqq"), "member"},
		{"catalogue-wrong", in("/catalogue?presence=asleep"), "member"},
		{"tasks", in("/tasks"), "admin"},
		{"tasks-failed", in("/tasks?state=failed"), "admin"},
		{"tasks-none", in("/tasks?state=rejected&sender=user:bob"), "admin"},
		{"tasks-wrong", in("/tasks?age=soon"), "admin"},
		{"tasks-member", in("/tasks"), "member"},
		{"task", in("/tasks/" + s.taskUID), "admin"},
		{"followups", in("/followups"), "admin"},
		{"followups-mine", in("/followups?assignee=user:admin"), "admin"},
	}
}

// refused lists the pages that return an error on purpose.
var refused = map[string]bool{
	"not-found": true, "forbidden": true, "proposals-wrong": true, "start-member": true,
	"events-wrong": true, "tasks-wrong": true, "catalogue-wrong": true, "tasks-member": true,
}

// who returns the viewer of a page.
func (s *shared) who(c pageCase) *person {
	switch c.who {
	case "admin":
		return s.admin
	case "member":
		return s.member
	default:
		return nil
	}
}

// allPages returns the fixed pages and all that links lead to, one of each kind.
func allPages(t testing.TB, s *shared) []pageCase {
	t.Helper()
	cases := fixedPages(s)
	known := map[string]bool{}
	for _, c := range cases {
		known[c.who+pattern(c.path)] = true
	}
	for _, path := range crawled(t, s) {
		bare, _, _ := strings.Cut(path, "?")
		if p := pattern(bare); !known["admin"+p] {
			known["admin"+p] = true
			cases = append(cases, pageCase{name(p), bare, "admin"})
		}
	}
	return cases
}

// eachPage opens all pages, one after the other, in one tab for each viewer: a tab for each page
// would start a process of the browser each time.
func eachPage(t *testing.T, s *shared, test func(t *testing.T, w *tab, c pageCase)) {
	t.Helper()
	tabs := map[*person]*tab{}
	for _, c := range allPages(t, s) {
		p := s.who(c)
		if tabs[p] == nil {
			tabs[p] = s.tab(t, p)
		}
		t.Run(c.name, func(t *testing.T) {
			w := tabs[p].lend(t)
			w.set(viewport(1280, 900), mouse, media())
			w.open(c.path)
			test(t, w, c)
		})
	}
}

var (
	crawlOnce  sync.Once
	crawlPaths []string
)

// crawled follows the links of an admin's pages, from the start page on, and returns one path of
// each pattern.
func crawled(t testing.TB, s *shared) []string {
	t.Helper()
	crawlOnce.Do(func() { crawlPaths = crawl(t, s, s.admin) })
	return crawlPaths
}

var (
	href     = regexp.MustCompile(`href="([^"]+)"`)
	someID   = regexp.MustCompile(`\b(prop|fup|key|client|inv|audit|hook)-[0-9a-z]{20,}`)
	someName = regexp.MustCompile(`/(agents|members|friction|tasks)/[^/?]+`)
	cursors  = regexp.MustCompile(`^(cursor|page|at|before|after|from|q|pos|seen|p)$`)
)

func crawl(t testing.TB, s *shared, p *person) []string {
	t.Helper()
	seen := map[string]bool{}
	var found []string
	queue := []string{s.path(""), s.path("/proposals"), s.path("/followups"), s.path("/agents"), "/account"}
	for _, c := range fixedPages(s) {
		if s.who(c) == p && !refused[c.name] && !strings.HasSuffix(c.path, "/") {
			queue = append(queue, c.path)
		}
	}
	const most = 300
	for len(queue) > 0 && len(found) < most {
		path := queue[0]
		queue = queue[1:]
		if seen[pattern(path)] {
			continue
		}
		seen[pattern(path)] = true
		res, body := s.get(t, p, path)
		if res.StatusCode >= 400 {
			t.Errorf("link to %s: status = %s, want below 400", path, res.Status)
			continue
		}
		if !strings.HasPrefix(res.Header.Get("Content-Type"), "text/html") {
			continue
		}
		found = append(found, path)
		base, err := url.Parse(s.base + path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range href.FindAllStringSubmatch(body, -1) {
			to, err := base.Parse(html.UnescapeString(m[1]))
			if err == nil && to.Host == base.Host && !strings.HasPrefix(to.Path, "/static/") &&
				!strings.HasPrefix(to.Path, "/docs") &&
				!strings.HasPrefix(to.Path, "/api/") &&
				!strings.HasPrefix(to.Path, "/a2a/") {
				to.Fragment = ""
				queue = append(queue, to.RequestURI())
			}
		}
	}
	sort.Strings(found)
	return found
}

// pattern returns a path without its ids; two pages with the same pattern are of one kind.
func pattern(path string) string {
	bare, query, _ := strings.Cut(path, "?")
	bare = someID.ReplaceAllString(bare, "{id}")
	bare = someName.ReplaceAllStringFunc(bare, func(part string) string {
		list, name, _ := strings.Cut(part[1:], "/")
		if name == "new" || name == "invitations" {
			return part
		}
		return "/" + list + "/{name}"
	})
	values, err := url.ParseQuery(query)
	if err != nil || len(values) == 0 {
		return bare
	}
	var names []string
	for n := range values {
		if !cursors.MatchString(n) {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	return bare + "?" + strings.Join(names, "&")
}

func name(pattern string) string {
	pattern = strings.TrimPrefix(pattern, "/orgs/"+org)
	s := strings.Trim(regexp.MustCompile(`[^a-z]+`).ReplaceAllString(pattern, "-"), "-")
	if s == "" {
		return "start"
	}
	return s
}

var routeText = regexp.MustCompile(`"(GET|POST) (/[^"]*)"`)

// routes returns the route patterns with the method, read from the source.
func routes(t testing.TB, method string) []string {
	t.Helper()
	files, err := filepath.Glob("../../internal/web/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("got %d source files of the pages, %v; want some", len(files), err)
	}
	var out []string
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range routeText.FindAllStringSubmatch(string(text), -1) {
			if m[1] == method {
				out = append(out, m[2])
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
