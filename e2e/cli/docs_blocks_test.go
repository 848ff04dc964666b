package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/parley-dev/parley/internal/servertest"
)

// document is a Markdown file and its fenced blocks.
type document struct {
	name   string // relative to the repository
	lines  []string
	blocks []block
}

type block struct {
	line  int // of the opening fence, from 1
	lang  string
	text  string
	shows int // index of the sh block whose output this block shows, or -1
}

// isFile reports whether the block is a whole program, named in its first line.
func (b block) isFile() bool { return b.lang == "python" && strings.HasPrefix(b.text, "# ") }

// fileName returns the name in the first line of a block that is a file.
func (b block) fileName() string {
	line, _, _ := strings.Cut(b.text, "\n")
	return strings.TrimPrefix(line, "# ")
}

func readDocument(t *testing.T, name string) *document {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("../..", name))
	if err != nil {
		t.Fatal(err)
	}
	d := &document{name: name, lines: strings.Split(string(data), "\n")}
	inside, end := false, 0 // end is the line of the last closing fence
	for i, line := range d.lines {
		lang, fence := strings.CutPrefix(line, "```")
		switch {
		case fence && !inside:
			inside = true
			b := block{line: i + 1, lang: lang, shows: -1}
			last := len(d.blocks) - 1
			if (lang == "text" || lang == "json") && last >= 0 && d.blocks[last].lang == "sh" &&
				strings.TrimSpace(strings.Join(d.lines[end:i], "")) == "" {
				b.shows = last
			}
			d.blocks = append(d.blocks, b)
		case fence:
			inside, end = false, i+1
		case inside:
			d.blocks[len(d.blocks)-1].text += line + "\n"
		case strings.HasPrefix(strings.TrimSpace(line), "```"):
			t.Errorf("%s:%d: an indented block is not run; move it to the margin", name, i+1)
		}
	}
	return d
}

func (d *document) has(lang string) bool {
	return slices.ContainsFunc(d.blocks, func(b block) bool { return b.lang == lang })
}

// replace writes another output into the file. Blocks before b keep their line numbers.
func (d *document) replace(t *testing.T, b block, output string) {
	t.Helper()
	output = regexp.MustCompile(`(?m) +$`).ReplaceAllString(strings.Trim(output, "\n"), "")
	if b.lang == "json" {
		output = spread(json.RawMessage(compact(output)), "", 0)
	}
	n := strings.Count(b.text, "\n")
	d.lines = slices.Replace(d.lines, b.line, b.line+n, strings.Split(output, "\n")...)
	if err := os.WriteFile(filepath.Join("../..", d.name), []byte(strings.Join(d.lines, "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
}

// quoted lists the files that a document quotes programs from, by language.
var quoted = map[string]map[string][]string{
	"README.md":   {"go": {"examples/go/main.go"}, "python": {"examples/python/worker.py"}},
	"docs/a2a.md": {"go": {"e2e/client_push_test.go"}, "js": {"examples/a2a-js/receiver.mjs"}},
	"docs/clients.md": {
		"go": {"examples/client/main.go", "examples/a2a-go/main.go"},
		"js": {"examples/a2a-js/v1.mjs", "examples/a2a-js/v03.mjs"},
		"python": {
			"sdk/python/examples/client.py",
			"examples/a2a-python/v1.py", "examples/a2a-python/v03.py", "examples/a2a-python/adk.py",
		},
		"java": {"examples/a2a-java/src/main/java/Main.java"},
	},
	"docs/events.md": {
		"go":     {"examples/events/main.go", "examples/webhook-go/main.go"},
		"js":     {"examples/webhook-js/receiver.mjs"},
		"python": {"examples/webhook-python/receiver.py"},
	},
	"docs/mcp.md": {
		"go":     {"examples/mcp-go/main.go"},
		"js":     {"e2e/mcp/client.mjs"},
		"python": {"examples/mcp-python/client.py"},
	},
	"docs/architecture.md": {"go": {"internal/proposal/service.go"}},
}

// checkQuotes fails if a quoted program is not in the file that other tests run.
func (d *document) checkQuotes(t *testing.T) {
	t.Helper()
	for _, b := range d.blocks {
		files := quoted[d.name][b.lang]
		if files == nil || b.isFile() {
			continue
		}
		found := slices.ContainsFunc(files, func(file string) bool {
			data, err := os.ReadFile(filepath.Join("../..", file))
			if err != nil {
				t.Fatal(err)
			}
			return strings.Contains(string(data), b.text)
		})
		if !found {
			t.Errorf("%s:%d is in none of %v", d.name, b.line, files)
		}
	}
}

// varying are the parts of an output that differ from run to run.
var varying = []struct {
	pattern *regexp.Regexp
	stand   string
}{
	{regexp.MustCompile(`\b(prop|fup|key|ctx|artifact|t|inv|client|msg|audit|note|tok|session|evt|hook)-[0-9a-z]{26}`), "$1-ID"},
	{regexp.MustCompile(`\bcli-[0-9a-z]{16}`), "cli-ID"},
	{regexp.MustCompile(`\b01[0-9a-z]{24}\b`), "UID"},
	{regexp.MustCompile(`parley_at_[0-9A-Za-z]{36}`), "TOKEN"},
	{servertest.Secret, "KEY"},
	{regexp.MustCompile(`\bparley_[0-9A-Za-z]{4,12}\b`), "PREFIX"},
	{regexp.MustCompile(`/(setup|join|password)/[\w-]{43}`), "/$1/TOKEN"},
	{regexp.MustCompile(`(http://)?127\.0\.0\.1:\d+`), "ADDRESS"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?Z?)?`), "TIME"},
	{regexp.MustCompile(`\b\d\d:\d\d:\d\d\b`), "TIME"},
	{regexp.MustCompile(`(?m)^TIME  \d+  `), "TIME  SEQ  "}, // a line of parley events
	{regexp.MustCompile(`version=\S+`), "version=V"},
	{regexp.MustCompile(`\bschema \d+`), "schema N"},
	{regexp.MustCompile(`\b\d+ rows\b`), "N rows"},
	{regexp.MustCompile(`\b\d+ KiB, in \d+\.\d s\b|\bin \d+\.\d s\b`), "in N s"},
	{regexp.MustCompile(`\bhad \d+ KiB\b`), "had N KiB"},
	{regexp.MustCompile(`\b(key|file: |secrets \()( ?)[0-9a-f]{8}\b`), "$1${2}KEY"}, // of a key file
	{regexp.MustCompile(`(?m) +$`), ""},
	{regexp.MustCompile(`"version":"[^"]*"`), `"version":"V"`},
	{
		regexp.MustCompile(`"(lease|request_id|secret|text_hash|seen|next_cursor|seq|last_seq)":("[^"]*"|\d+)`),
		`"$1":"X"`,
	},
	{regexp.MustCompile(`"last_used_at":null`), `"last_used_at":"TIME"`}, // it is written later
}

// normal replaces what differs from run to run.
func normal(lang, s string) string {
	if lang == "json" {
		s = compact(s)
	}
	for _, v := range varying {
		s = v.pattern.ReplaceAllString(s, v.stand)
	}
	return strings.TrimSpace(s)
}

// compact removes white space between JSON values; what is not JSON stays as it is.
func compact(s string) string {
	var out bytes.Buffer
	if err := json.Compact(&out, []byte(s)); err != nil {
		return s
	}
	return out.String()
}

const lineLength = 100

// spread lays JSON out for reading: what fits stays on one line, and lines are filled.
// The value follows a label of the given length.
func spread(raw json.RawMessage, indent string, label int) string {
	if len(indent)+label+len(raw) < lineLength || raw[0] != '{' && raw[0] != '[' {
		return string(raw)
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	_, _ = dec.Token()
	var out strings.Builder
	line := string(raw[0])
	for first := true; dec.More(); first = false {
		name := ""
		if raw[0] == '{' {
			key, _ := dec.Token()
			name = `"` + key.(string) + `":`
		}
		var member json.RawMessage
		if err := dec.Decode(&member); err != nil {
			return string(raw)
		}
		item := name + spread(member, indent+" ", len(name))
		if !first {
			line += ","
		}
		if last := line[strings.LastIndex(line, "\n")+1:]; !first &&
			(strings.Contains(item, "\n") || strings.Contains(line, "\n") || len(last)+len(item) > lineLength-2) {
			out.WriteString(line + "\n")
			line = indent + " "
		}
		line += item
	}
	out.WriteString(line + string(raw[len(raw)-1]))
	return out.String()
}

// TestMarkdownIsWrapped: lines outside of tables and code have at most 105 columns.
func TestMarkdownIsWrapped(t *testing.T) {
	t.Parallel()
	for _, name := range documents(t) {
		code := false
		for i, line := range readDocument(t, name).lines {
			if strings.HasPrefix(line, "```") {
				code = !code
			}
			if code || strings.HasPrefix(strings.TrimSpace(line), "|") {
				continue
			}
			if n := utf8.RuneCountInString(line); n > 105 {
				t.Errorf("%s:%d has %d columns; wrap it at 100", name, i+1, n)
			}
		}
	}
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`^#+ (.*)`)
	dropped = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// TestDocumentLinks: relative links lead to files and headings that exist.
func TestDocumentLinks(t *testing.T) {
	t.Parallel()
	anchors := map[string][]string{} // by document
	for _, name := range documents(t) {
		for _, line := range readDocument(t, name).lines {
			if m := heading.FindStringSubmatch(line); m != nil {
				text := dropped.ReplaceAllString(strings.ToLower(m[1]), "")
				anchors[name] = append(anchors[name], strings.ReplaceAll(text, " ", "-"))
			}
		}
	}
	for _, name := range documents(t) {
		for i, line := range readDocument(t, name).lines {
			for _, m := range link.FindAllStringSubmatch(line, -1) {
				if strings.Contains(m[1], "://") {
					continue
				}
				path, anchor, _ := strings.Cut(m[1], "#")
				target := name
				if path != "" {
					target = filepath.Join(filepath.Dir(name), path)
				}
				if _, err := os.Stat(filepath.Join("../..", target)); err != nil {
					t.Errorf("%s:%d: %v", name, i+1, err)
				}
				if anchor != "" && !slices.Contains(anchors[target], anchor) {
					t.Errorf("%s:%d: %s has no heading #%s", name, i+1, target, anchor)
				}
			}
		}
	}
}
