package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// row is one line of the specification as a call and its response.
type row struct {
	rule   string // begins with the section it comes from
	as     string // a member of the cast; "-" sends no key
	call   string // method and path under /api/v1/orgs/{org}; "~" before a path means the bare base
	body   string
	with   []string // headers to send
	status int
	want   string   // pattern of the body, see mismatch; empty: anything
	header []string // patterns of "Name: value" header lines
	absent string   // text that the response must not contain
	save   string   // keeps the response's id under this name, for {name} in later rows
}

// table is one section. Its rows run in order, on an org of their own.
type table struct {
	section string
	rows    []row
}

// TestSpec checks the service against the specification, section by section, over HTTP and on both
// engines. Where a row cites a section that does not cover it, docs/api.md has the decision.
func TestSpec(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, e engine) {
		t.Parallel()
		s := serve(t, e, "--rate-limit", "0")
		// The server outlives the parallel subtests because t.Run waits for them all.
		t.Run("tables", func(t *testing.T) {
			for i, table := range specTables {
				t.Run(table.section, func(t *testing.T) {
					t.Parallel()
					w := newWorld(t, s, fmt.Sprintf("org%d", i))
					for _, r := range table.rows {
						w.check(t, r)
					}
				})
			}
			t.Run("3.1 status table", func(t *testing.T) { t.Parallel(); testStatusPairs(t, s) })
			t.Run("5 tenants", func(t *testing.T) { t.Parallel(); testTenants(t, s) })
			t.Run("5 scopes", func(t *testing.T) { t.Parallel(); testScopes(t, s) })
			t.Run("4.1 paging", func(t *testing.T) { t.Parallel(); testPaging(t, s) })
		})
	})
}

var specTables = []table{
	listTable, listFilterTable, submitTable, malformedTable, voteTable, resolveTable, otherTable,
	taskTable, authTable,
}

// world is one org on a running server, and the ids that rows have saved.
type world struct {
	server *server
	org    string
	keys   map[string]string // by the holder's name in the cast
	names  map[string]string // values of {name}
}

func newWorld(t *testing.T, s *server, org string) *world {
	t.Helper()
	s.newOrg(t, org)
	w := &world{server: s, org: org, keys: map[string]string{"-": ""}, names: map[string]string{
		"org": org, "none": "prop-00000000000000000000000000", "nofollowup": "fup-00000000000000000000000000",
	}}
	for ref, scopes := range cast(org) {
		_, name, _ := strings.Cut(ref, ":")
		name, _, _ = strings.Cut(name, "-") // bot-<org> is called bot
		w.keys[name] = s.newKey(t, org, ref, scopes...)
	}
	return w
}

// answer is a response, read to its end.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func (w *world) fill(s string) string {
	for name, value := range w.names {
		s = strings.ReplaceAll(s, "{"+name+"}", value)
	}
	return s
}

// call makes a request as one of the cast.
func (w *world) call(t *testing.T, as, call, body string, with ...string) answer {
	t.Helper()
	key, ok := w.keys[as]
	if !ok {
		t.Fatalf("there is no %q in the cast", as)
	}
	method, path, _ := strings.Cut(w.fill(call), " ")
	if bare, ok := strings.CutPrefix(path, "~"); ok {
		path = bare
	} else {
		path = "/api/v1/orgs/" + w.org + path
	}
	var r io.Reader
	if body != "" {
		r = strings.NewReader(w.fill(body))
	}
	req, err := http.NewRequestWithContext(t.Context(), method, w.server.base+path, r)
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, h := range with {
		name, value, _ := strings.Cut(w.fill(h), ": ")
		req.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{status: res.StatusCode, header: res.Header, body: b}
}

// must makes a call that must succeed.
func (w *world) must(t *testing.T, as, call, body string) answer {
	t.Helper()
	a := w.call(t, as, call, body)
	if a.status/100 != 2 {
		t.Fatalf("%s as %s: status = %d, want 2xx: %s", w.fill(call), as, a.status, a.body)
	}
	return a
}

// str returns a string member of the response.
func (a answer) str(name string) string {
	var m map[string]any
	_ = json.Unmarshal(a.body, &m)
	s, _ := m[name].(string)
	return s
}

func (w *world) check(t *testing.T, r row) {
	t.Helper()
	a := w.call(t, r.as, r.call, r.body, r.with...)
	fail := func(format string, args ...any) {
		t.Helper()
		t.Errorf("%s\n  %s as %s: %s\n  answer: %d %s", r.rule, w.fill(r.call), r.as, fmt.Sprintf(format, args...), a.status,
			a.body)
	}
	if a.status != r.status {
		fail("got %d, want %d", a.status, r.status)
	}
	if r.want != "" {
		if d := mismatch(w.fill(r.want), a.body); d != "" {
			fail("%s", d)
		}
	}
	for _, pattern := range r.header {
		if !hasHeader(a.header, w.fill(pattern)) {
			fail("no header matches %q in %v", w.fill(pattern), a.header)
		}
	}
	if r.absent != "" && bytes.Contains(a.body, []byte(w.fill(r.absent))) {
		fail("the answer contains %s", w.fill(r.absent))
	}
	if r.save != "" {
		w.names[r.save] = a.str("id")
		w.names[r.save+".etag"] = a.header.Get("ETag")
	}
}

func hasHeader(h http.Header, pattern string) bool {
	re := regexp.MustCompile("^(?:" + pattern + ")$")
	for name, values := range h {
		for _, v := range values {
			if re.MatchString(name + ": " + v) {
				return true
			}
		}
	}
	return false
}

// good is a valid submission.
const good = `{"title":"Retry failed uploads","category":"reliability",
	"problem":"Uploads fail now and then.","suggested_fix":"Try three times."}`

// but returns good with some members replaced or added; a bare name omits that member.
func but(members ...string) string {
	var m map[string]json.RawMessage
	_ = json.Unmarshal([]byte(good), &m)
	for _, member := range members {
		name, value, ok := strings.Cut(member, ":")
		if ok {
			m[name] = json.RawMessage(value)
		} else {
			delete(m, name)
		}
	}
	b, err := json.Marshal(m)
	if err != nil {
		panic(fmt.Sprintf("but(%q): %v", members, err))
	}
	return string(b)
}

// long returns a JSON string of n characters of two bytes each, to detect limits that count bytes.
func long(n int) string { return `"` + strings.Repeat("é", n) + `"` }

// complains returns a problem whose errors name exactly one member of the body.
func complains(pointer string) string {
	return `{"status":422,"code":"request.invalid","errors":[{"pointer":"` + pointer +
		`","in":"body","detail":"<string>"}]}`
}

// refuses returns a problem whose errors name exactly one query parameter.
func refuses(parameter string) string {
	return `{"status":422,"code":"request.invalid","errors":[{"parameter":"` + parameter +
		`","in":"query","detail":"<string>"}]}`
}
