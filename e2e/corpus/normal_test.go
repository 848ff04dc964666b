package corpus

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// names assigns placeholders to the values that differ from run to run, and returns the value of a
// placeholder that a script uses.
type names struct {
	values map[string]string // by placeholder, without its brackets
	names  map[string]string // placeholder by value
	count  map[string]int    // of each kind

	request string   // id of the exchange that is being recorded
	unknown []string // placeholders that scripts used before any response had them
}

func newNames() *names {
	return &names{values: map[string]string{}, names: map[string]string{}, count: map[string]int{}}
}

// set gives a value a name that the script chooses.
func (n *names) set(name, value string) {
	n.values[name], n.names[value] = value, name
}

func (n *names) add(kind, value string) {
	if value == "" || strings.HasPrefix(value, "<") || n.names[value] != "" {
		return
	}
	n.count[kind]++
	n.set(kind+"-"+strconv.Itoa(n.count[kind]), value)
}

var placeholder = regexp.MustCompile(`<([a-z][a-z0-9_-]*)(?::(\d+))?>`)

// expand replaces placeholders by their values. <pad:N> is N letters.
func (n *names) expand(s string) string {
	return placeholder.ReplaceAllStringFunc(s, func(p string) string {
		m := placeholder.FindStringSubmatch(p)
		if m[1] == "pad" {
			size, _ := strconv.Atoi(m[2])
			return strings.Repeat("x", size)
		}
		if v, ok := n.values[m[1]]; ok {
			return v
		}
		n.unknown = append(n.unknown, p)
		return p
	})
}

const ulid = `[0-9a-hjkmnp-tv-z]{26}`

// finders match values that differ, most specific first. The first group with a match is the
// value; an empty kind means that the prefix of the value is its kind.
var finders = []struct {
	kind string
	*regexp.Regexp
}{
	{"access", regexp.MustCompile(`\bparley_at_[0-9A-Za-z]{36}\b`)},
	{"secret", regexp.MustCompile(`\bparley_[0-9A-Za-z]{36}\b`)},
	{"secret", regexp.MustCompile(`"(?:client_)?secret": ?"([^"]+)"`)},
	{"former", regexp.MustCompile(`\bformer-([0-9a-f]{8})\b`)},
	{"session", regexp.MustCompile(`\bsession-[0-9a-f]{12}\b`)},
	{"refresh", regexp.MustCompile(`"refresh_token": ?"([^"]+)"`)},
	{"code", regexp.MustCompile(`[?&]code=([^&\s"]+)`)},
	{"prefix", regexp.MustCompile(`"prefix": ?"([^"]+)"`)},
	{"link", regexp.MustCompile(`/(?:setup|join)/([0-9A-Za-z_-]{16,})`)},
	{"cursor", regexp.MustCompile(`"(?:next_cursor|nextPageToken|next_page_token|next)": ?"([0-9A-Za-z_=.~-]{16,})"`)},
	{"cursor", regexp.MustCompile(`[?&]cursor=([0-9A-Za-z_=.~-]{16,})`)},
	{"lease", regexp.MustCompile(`\blease-` + ulid + `-` + ulid)},
	// ETags of records are versions and the same in every run; those of cards are hashes.
	{"etag", regexp.MustCompile(`Etag: (?:W/)?"([^"]{16,})"`)},
	{"hash", regexp.MustCompile(`"text_hash": ?"([^"]+)"`)},
	{"kid", regexp.MustCompile(`"kid": ?"([^"]+)"`)},
	{"", regexp.MustCompile(`\b[a-z]+-[0-9a-z]{26}\b`)},
	{"id", regexp.MustCompile(`\b` + ulid + `\b`)},
	{"uuid", regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`)},
}

// plainID is an id; some lists use those of their entries as cursors.
var plainID = regexp.MustCompile(`^(?:[a-z]+-)?[0-9a-z]{26}$`)

// requestID matches ids made by the server. They are counted, so one can begin with another.
var requestID = regexp.MustCompile(`\b[0-9A-Z]{12}-[0-9a-z]{1,8}\b`)

// rules replace values that need no name.
var rules = []struct {
	*regexp.Regexp
	with string
}{
	// Times chosen by a script are in 2099 or 2001 and stay unchanged.
	{regexp.MustCompile(`\b20[2-8]\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z`), "<time>"},
	{regexp.MustCompile(`\b20[2-8]\d-\d\d-\d\dT\d\d:\d\d:\d\dZ`), "<time in seconds>"},
	{regexp.MustCompile(`\b20[2-8]\d-\d\d-\d\d \d\d:\d\d UTC`), "<time to the minute>"},
	{regexp.MustCompile(`\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} 20[2-8]\d \d\d:\d\d:\d\d GMT`), "<http-date>"},
	{regexp.MustCompile(`"(exp|iat|nbf|auth_time|client_id_issued_at)": ?\d{10}\b`), `"$1": "<seconds>"`},
	// A key's last use is stored within a minute, so it may be there or not.
	{regexp.MustCompile(`"(last_used_at)": ?(?:null|"<time>")`), `"$1": "<time or null>"`},
	{regexp.MustCompile(`(Set-Cookie: [^=]+=)[^;\s]+`), "$1<cookie>"},
	{regexp.MustCompile(`'sha256-[^']+'`), "'sha256-<hash>'"},
	{regexp.MustCompile(`"(pending|last_seq|latency_ms)": ?\d+`), `"$1": "<n>"`},
	{regexp.MustCompile(`\bwhpk_[0-9A-Za-z+/=]+`), "whpk_<key>"},
	{regexp.MustCompile(`"(signature|x|y)": ?"[0-9A-Za-z_-]{40,}"`), `"$1": "<$1>"`},
}

var protected = regexp.MustCompile(`"protected": ?"([0-9A-Za-z_-]+)"`)

// normalize replaces the values that differ from run to run.
func (n *names) normalize(s string) string {
	// The header of a JSON Web Signature is base64; the transcript shows its JSON.
	s = protected.ReplaceAllStringFunc(s, func(p string) string {
		b, err := base64.RawURLEncoding.DecodeString(protected.FindStringSubmatch(p)[1])
		if err != nil {
			return p
		}
		return `"protected": ` + string(b)
	})
	type found struct {
		at, end     int
		kind, value string
	}
	var all []found
	taken := func(at, end int) bool { // by a more specific finder
		return slices.ContainsFunc(all, func(f found) bool { return at < f.end && f.at < end })
	}
	for _, f := range finders {
		for _, m := range f.FindAllStringSubmatchIndex(s, -1) {
			g := len(m) - 2
			value, kind := s[m[g]:m[g+1]], f.kind
			switch {
			case taken(m[g], m[g+1]), kind == "cursor" && plainID.MatchString(value):
				continue
			case kind == "":
				kind, _, _ = strings.Cut(value, "-")
			}
			all = append(all, found{m[g], m[g+1], kind, value})
		}
	}
	slices.SortStableFunc(all, func(a, b found) int { return cmp.Compare(a.at, b.at) })
	for _, f := range all {
		n.add(f.kind, f.value)
	}
	s = n.replacer().Replace(s)
	s = requestID.ReplaceAllStringFunc(s, func(id string) string {
		if id == n.request {
			return "<request>"
		}
		return "<another request>"
	})
	for _, r := range rules {
		s = r.ReplaceAllString(s, r.with)
	}
	return s
}

func (n *names) replacer() *strings.Replacer {
	values := make([]string, 0, len(n.names))
	for v := range n.names {
		values = append(values, v)
	}
	slices.SortFunc(values, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
	})
	pairs := make([]string, 0, 2*len(values))
	for _, v := range values {
		pairs = append(pairs, v, "<"+n.names[v]+">")
	}
	return strings.NewReplacer(pairs...)
}

// pretty indents JSON; anything else stays as it is.
func pretty(s string) string {
	var b bytes.Buffer
	if json.Indent(&b, []byte(s), "", "  ") != nil {
		return strings.TrimRight(s, "\n")
	}
	return strings.TrimRight(b.String(), "\n")
}

// prefixed puts a mark before each line.
func prefixed(mark, s string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(s, "\n") {
		fmt.Fprintln(&b, strings.TrimRight(mark+line, " "))
	}
	return b.String()
}
