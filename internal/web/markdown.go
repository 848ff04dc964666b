package web

import (
	"bytes"
	"html/template"
	"net/url"
	"regexp"
	"strings"
	"sync"

	"github.com/microcosm-cc/bluemonday"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// User text is Markdown. Two layers make it safe: the parser does not support HTML, so tags are
// text, and the sanitizer passes only the elements below.

// markdownLevel is the level of the first heading in a text, below the h2 "Problem".
const markdownLevel = 3

// maxMarkdownDepth limits the nesting of quotes and lists. Text that nests deeper is shown
// verbatim.
const maxMarkdownDepth = 20

// linkRel is the rel attribute of all links in user text, because they lead to other sites.
const linkRel = "nofollow noopener noreferrer"

// markdown renders a text as safe HTML. Headings start at level 3, or at the given level.
func markdown(source string, level ...int) (template.HTML, error) {
	top := markdownLevel
	if len(level) > 0 {
		top = level[0]
	}
	if costly(source) {
		return verbatim(source), nil
	}
	src := []byte(source)
	doc := markdownParser.Parser().Parse(text.NewReader(src))
	if tooDeep(doc) {
		return verbatim(source), nil
	}
	tame(doc, src, top)
	var b bytes.Buffer
	if err := markdownParser.Renderer().Render(&b, src, doc); err != nil {
		return "", err
	}
	return template.HTML(markdownPolicy().SanitizeBytes(b.Bytes())), nil // sanitized
}

// markdownParser parses CommonMark with tables, strikethrough and bare URLs, without HTML.
var markdownParser = goldmark.New(
	goldmark.WithParser(parser.NewParser(
		parser.WithBlockParsers(without(parser.DefaultBlockParsers(), 900)...),   // HTML blocks
		parser.WithInlineParsers(without(parser.DefaultInlineParsers(), 400)...), // HTML tags
		parser.WithParagraphTransformers(parser.DefaultParagraphTransformers()...),
	)),
	goldmark.WithExtensions(
		extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignNone)),
		extension.Strikethrough,
		extension.Linkify,
	),
	// A line break in a form is meant as one.
	goldmark.WithRendererOptions(html.WithHardWraps()),
)

// without removes the parser with the given priority. A test fails if the library changes the
// priorities.
func without(parsers []util.PrioritizedValue, priority int) []util.PrioritizedValue {
	var out []util.PrioritizedValue
	for _, p := range parsers {
		if p.Priority != priority {
			out = append(out, p)
		}
	}
	return out
}

// verbatim shows a text without formatting.
func verbatim(source string) template.HTML {
	return template.HTML(`<p dir="auto" class="raw">` + template.HTMLEscapeString(source) + `</p>`) // escaped
}

// maxEmphasis limits the emphasis marks in a block, because the parser compares each with all
// before it.
const maxEmphasis = 1000

// maxCells limits the cells of a table, because every row is padded to the widest one.
const maxCells = 20_000

// maxReferred limits the bytes of link destinations that references repeat.
const maxReferred = 1 << 18

// costly reports whether rendering would take too long or produce too much. The time for list and
// quote marks at the beginning of a line, and for emphasis marks, grows with the square of their
// number. So does the size of tables and of references to long URLs.
func costly(source string) bool {
	return manyMarks(source) || manyCells(source) || manyReferences(source)
}

// manyCells reports whether the text may contain a table with too many cells.
func manyCells(source string) bool {
	lines, widest := 0, 0
	for line := range strings.Lines(source) {
		lines++
		widest = max(widest, strings.Count(line, "|"))
	}
	return lines*widest > maxCells
}

// manyReferences reports whether references, which are as short as [a], repeat long destinations
// too often. A definition is "[a]: destination", on one line or on two.
func manyReferences(source string) bool {
	longest, next := 0, false
	for line := range strings.Lines(source) {
		if _, rest, ok := strings.Cut(line, "]:"); ok {
			longest = max(longest, len(rest))
			next = strings.TrimSpace(rest) == ""
		} else if next {
			longest = max(longest, len(line))
			next = false
		}
	}
	return longest*strings.Count(source, "]") > maxReferred
}

// manyMarks reports whether a block or the beginning of a line has too many marks.
func manyMarks(source string) bool {
	marks := 0
	for line := range strings.Lines(source) {
		start, blocks := true, 0
		last := ' '
		for _, r := range line {
			switch {
			case r == '*' || r == '_' || r == '~':
				if r != last {
					marks++
				}
				fallthrough
			case r == '>' || r == '-' || r == '+' || r == '.' || r == ')':
				if start {
					blocks++
				}
			case r != ' ' && r != '\t' && (r < '0' || r > '9'):
				start = false
			}
			last = r
		}
		if strings.TrimSpace(line) == "" {
			marks = 0
		}
		rule := strings.Trim(line, "-*_\r\n") == "" // of any length
		if marks > maxEmphasis || blocks > 2*maxMarkdownDepth && !rule {
			return true
		}
	}
	return false
}

// tooDeep reports whether blocks nest too deeply.
func tooDeep(doc ast.Node) bool {
	depth, deep := 0, false
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // never returns an error
		if entering {
			depth++
		} else {
			depth--
		}
		if depth > 2*maxMarkdownDepth {
			deep = true
			return ast.WalkStop, nil
		}
		return ast.WalkContinue, nil
	})
	return deep
}

// tame moves headings below those of the page, sets the direction of every block, and marks links.
// Images, and links that may not be followed, are replaced by their text.
func tame(doc ast.Node, src []byte, top int) {
	var drop []ast.Node
	last := top - 1
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // never returns an error
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			// Skip no level, so that the outline for screen readers has no gaps.
			n.Level = min(n.Level+top-1, last+1, 6)
			last = n.Level
			n.SetAttributeString("dir", []byte("auto"))
		case *ast.Paragraph, *ast.ListItem, *ast.Blockquote, *extast.TableCell:
			n.SetAttributeString("dir", []byte("auto"))
		case *ast.Link:
			n.Title = nil
			n.SetAttributeString("rel", []byte(linkRel))
			if !leadsAway(n.Destination) {
				drop = append(drop, n)
			}
		case *ast.AutoLink:
			n.SetAttributeString("rel", []byte(linkRel))
			if n.AutoLinkType != ast.AutoLinkEmail && !leadsAway(n.URL(src)) {
				drop = append(drop, n)
			}
		case *ast.Image:
			drop = append(drop, n)
		}
		return ast.WalkContinue, nil
	})
	for _, n := range drop {
		parent := n.Parent()
		if auto, ok := n.(*ast.AutoLink); ok {
			label := ast.NewString(auto.Label(src))
			label.SetRaw(true) // it is escaped above
			parent.InsertBefore(parent, n, label)
		}
		for c := n.FirstChild(); c != nil; c = n.FirstChild() {
			parent.InsertBefore(parent, n, c)
		}
		parent.RemoveChild(parent, n)
	}
}

// leadsAway reports whether a link may be followed: to another site, or to a mail address. Links
// into this site could be mistaken for links of the page.
func leadsAway(dest []byte) bool {
	u, err := url.Parse(string(util.URLEscape(dest, true)))
	if err != nil {
		return false
	}
	switch u.Scheme {
	case "http", "https":
		return u.Host != ""
	case "mailto":
		return u.Opaque != ""
	default:
		return false
	}
}

// markdownPolicy lists what the sanitizer passes.
var markdownPolicy = sync.OnceValue(func() *bluemonday.Policy {
	p := bluemonday.NewPolicy()
	p.AllowElements("p", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "pre", "code",
		"em", "strong", "del", "hr", "br", "table", "thead", "tbody", "tr", "th", "td")
	p.AllowAttrs("dir").Matching(regexp.MustCompile(`^auto$`)).
		OnElements("p", "h2", "h3", "h4", "h5", "h6", "li", "blockquote", "th", "td")
	p.AllowAttrs("start").Matching(regexp.MustCompile(`^[0-9]{1,9}$`)).OnElements("ol")
	p.AllowAttrs("href").OnElements("a")
	p.AllowAttrs("rel").Matching(regexp.MustCompile("^" + linkRel + "$")).OnElements("a")
	p.AllowURLSchemes("http", "https", "mailto")
	p.AllowRelativeURLs(false)
	p.RequireParseableURLs(true)
	p.RequireNoFollowOnLinks(true)
	p.RequireNoReferrerOnLinks(true)
	return p
})
