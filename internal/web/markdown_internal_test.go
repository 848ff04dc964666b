package web

import (
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestMarkdownIsRendered(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, want string }{
		{"one *two*", `<p dir="auto">one <em>two</em></p>`},
		{"a\nb", "<p dir=\"auto\">a<br>\nb</p>"},
		{"# A\n\n### B\n\n# C", "<h3 dir=\"auto\">A</h3>\n<h4 dir=\"auto\">B</h4>\n<h3 dir=\"auto\">C</h3>"},
		{"- a\n- b", "<ul>\n<li dir=\"auto\">a</li>\n<li dir=\"auto\">b</li>\n</ul>"},
		{
			"see [docs](https://x.test/a?b=1&c=2)",
			`<p dir="auto">see <a href="https://x.test/a?b=1&amp;c=2" rel="nofollow noopener noreferrer">docs</a></p>`,
		},
		{
			"<https://x.test>",
			`<p dir="auto"><a href="https://x.test" rel="nofollow noopener noreferrer">https://x.test</a></p>`,
		},
		{
			"at https://x.test now",
			`<p dir="auto">at <a href="https://x.test" rel="nofollow noopener noreferrer">https://x.test</a> now</p>`,
		},
		{"![a *cat*](https://x.test/cat.png)", `<p dir="auto">a <em>cat</em></p>`},
		{
			"[![cat](https://x.test/c.png)](https://x.test)",
			`<p dir="auto"><a href="https://x.test" rel="nofollow noopener noreferrer">cat</a></p>`,
		},
		{"| a |\n|---|\n| b |", `<td dir="auto">b</td>`},
		{"```go\nx < y\n```", "<pre><code>x &lt; y\n</code></pre>"},
		{"~~no~~", `<del>no</del>`},
		{"a <b>c</b>", `a &lt;b&gt;c&lt;/b&gt;`},
		{"<script>x</script>", `&lt;script&gt;x`},
		{"<javascript:x>", `<p dir="auto">javascript:x</p>`},
		{"[x](javascript:y)", `<p dir="auto">x</p>`},
		{"[x](/logout)", `<p dir="auto">x</p>`},
	} {
		got, err := markdown(c.in)
		if err != nil || !strings.Contains(string(got), c.want) {
			t.Errorf("%q became %q, want %q (%v)", c.in, got, c.want, err)
		}
	}
	if got, _ := markdown("# A", 4); !strings.Contains(string(got), "<h4") {
		t.Errorf("a heading below an h3: got %v, want containing <h4", got)
	}
}

// allowedTags matches the tags that a text may become.
var allowedTags = regexp.MustCompile(
	`^</?(p|h[2-6]|ul|ol|li|blockquote|pre|code|em|strong|del|hr|br|table|thead|tbody|tr|th|td)` +
		`( dir="auto")?( start="[0-9]+")?( class="raw")?/?>$|` +
		`^</a>$|^<a href="(https?:|mailto:)[^"<>]*" rel="nofollow noopener noreferrer">$`)

func TestMarkdownIsHarmless(t *testing.T) {
	t.Parallel()
	for _, in := range hostileTexts {
		got, err := markdown(in)
		if err != nil {
			t.Errorf("%.40q: got %v, want no error", in, err)
			continue
		}
		for _, tag := range regexp.MustCompile(`<[^>]*>`).FindAllString(string(got), -1) {
			if !allowedTags.MatchString(tag) {
				t.Errorf("%.80q became %.300q with %s", in, got, tag)
				break
			}
		}
	}
}

var hostileTexts = []string{
	`<script>alert(1)</script>`, `<img src=x onerror=alert(1)>`, "text <b onclick=x>b</b>", "<!-- x -->", "<?php x ?>",
	"<![CDATA[x]]>",
	`[x](javascript:alert(1))`, `[x](JaVaScRiPt:alert(1))`, "[x](java&#x09;script:alert(1))",
	`[x](&#106;avascript:alert(1))`,
	`[x](data:text/html;base64,PHNjcmlwdD4=)`, `[x](vbscript:x)`, `[x](file:///etc/passwd)`, `<javascript:alert(1)>`,
	`[x](//evil.test)`, `[x](/logout)`, `[x](?a=b)`, `[x](\\evil.test)`, "[x]( javascript:alert(1))",
	"[x](<java\nscript:alert(1)>)",
	`[x](https://a.test "onmouseover=alert(1)")`, `[x](https://a.test" onclick="x)`, "[x]: javascript:alert(1)\n\n[x]",
	`![x](javascript:alert(1))`, `![<img onerror=x>](https://a.test)`, "`<script>`", "    <script>",
	"```\"><script>\nx\n```",
	"| <script> | [x](javascript:x) |\n|---|---|\n| <img> | b |", "# <script>x</script>", "> <iframe src=x>",
	"\u202egnirts \u2066x",
	"a\x00b", "[x](https://a.test){onclick=x}", "## h {#id onclick=x}", strings.Repeat("> ", 10_000) + "deep",
	strings.Repeat(">", 20_000), strings.Repeat("1. ", 6000) + "deep",
	strings.Repeat("* ", 10_000) + "deep", strings.Repeat("- ", 10_000) + "\n" + strings.Repeat("- ", 1000) + "a",
	strings.Repeat("[", 10_000), strings.Repeat("*a_", 6000), strings.Repeat("![", 9000),
	strings.Repeat("a](", 6000), strings.Repeat("`", 20_000), strings.Repeat("<", 20_000),
	strings.Repeat("|a", 9000) + "\n" + strings.Repeat("|-", 9000),
	strings.Repeat("http://a.", 2000), strings.Repeat("- a\n ", 3000), strings.Repeat("~~a", 6000), strings.Repeat("**a** ", 3000),
	strings.Repeat("*a\n", 6000), strings.Repeat("_a*\n\n", 4000), strings.Repeat("&#x41;", 3000),
	strings.Repeat("|a", 1500) + "\n" + strings.Repeat("|-", 1500) + "\n" + strings.Repeat("|b\n", 4000),
	strings.Repeat("> "+strings.Repeat("|a", 100)+"\n> "+strings.Repeat("|-", 100)+"\n"+strings.Repeat("> |\n", 600)+"\n", 5),
	"[x]: https://a.test/" + strings.Repeat("a", 9000) + "\n\n" + strings.Repeat("[x]", 3000),
	"[x]:\n<https://a.test/" + strings.Repeat("&", 9000) + ">\n\n" + strings.Repeat("[x]", 3000),
}

// maxMade limits the HTML of a text of 20,000 characters.
const maxMade = 2 << 20

// Texts have at most 20,000 characters. None of them may cost more than a page.
func TestMarkdownIsFastOnHostileTexts(t *testing.T) {
	t.Parallel()
	took := func(in string) time.Duration {
		best := time.Hour // of three runs, because other tests run in parallel
		for range 3 {
			start := time.Now()
			out, err := markdown(in)
			if err != nil {
				t.Fatal(err)
			}
			if len(out) > maxMade {
				t.Fatalf("%.20q… of %d bytes became %d bytes, want at most %d", in, len(in), len(out), maxMade)
			}
			best = min(best, time.Since(start))
		}
		return best
	}
	plain := strings.Repeat("A line of *plain* text, with `code` and a [link](https://a.test).\n\n", 300)
	for _, in := range hostileTexts {
		// A bounded text takes up to five times as long as a plain one, an unbounded one a
		// hundred times. The plain one is measured beside each, because load changes.
		if usual, hostile := took(plain), took(in); hostile > 50*usual {
			t.Errorf("%.20q… of %d bytes took %s, plain text %s; want at most 50 times as long", in, len(in), hostile, usual)
		}
	}
}

func TestOnlyTextsThatTakeLongAreShownAsWritten(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		strings.Repeat("* ", 100) + "deep": true, strings.Repeat(">", 100): true, strings.Repeat("1. ", 100): true,
		strings.Repeat("*a_", 1000): true, strings.Repeat("*a\n", 1001): true,
		strings.Repeat("|", 300) + strings.Repeat("\n|", 100):                                     true,
		"[a]: " + strings.Repeat("b", 3000) + strings.Repeat("[a]", 100):                          true,
		"| a | b |\n|---|---|\n" + strings.Repeat("| c | d |\n", 1500):                            false,
		strings.Repeat("b", 3000) + strings.Repeat("[a] ", 1000) + "\n\n[a]: https://a.test/docs": false,
		strings.Repeat("-", 200): false, strings.Repeat("*a* b\n\n", 2000): false, strings.Repeat("- *item*\n\n", 500): false,
		"> > > quote\n\n1. - * list": false, strings.Repeat("a > b - c\n", 500): false,
	} {
		if costly(text) != want {
			t.Errorf("%.20q… of %d bytes: got %t, want %t", text, len(text), !want, want)
		}
	}
}
