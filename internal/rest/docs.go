package rest

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"net/http"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"
)

//go:embed docs.html
var docsHTML string

//go:embed docs.css
var docsCSS string

var docsTemplate = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("docs").Funcs(template.FuncMap{
		"prose": prose, "lower": strings.ToLower, "css": func() template.CSS { return template.CSS(docsCSS) },
	}).Parse(docsHTML))
})

// docsPage renders the document once, as a single page. The page needs no script and no network;
// its Content-Security-Policy allows only its own style sheet.
func docsPage(doc *huma.OpenAPI, o Options) http.Handler {
	var page bytes.Buffer
	if err := docsTemplate().Execute(&page, viewOf(doc, cmp.Or(o.Base, o.PublicURL))); err != nil {
		panic("rest: rendering the documentation page failed: " + err.Error()) // a programming error, found by the tests
	}
	sum := sha256.Sum256([]byte(docsCSS))
	policy := "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	body := static("text/html; charset=utf-8", page.Bytes())
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", policy)
		body.ServeHTTP(w, r)
	})
}

// prose converts text to HTML: paragraphs, and code between backticks.
func prose(s string) template.HTML {
	var b strings.Builder
	for para := range strings.SplitSeq(strings.TrimSpace(s), "\n\n") {
		b.WriteString("<p>")
		for i, part := range strings.Split(para, "`") {
			if i%2 == 1 {
				b.WriteString("<code>" + template.HTMLEscapeString(part) + "</code>")
				continue
			}
			b.WriteString(template.HTMLEscapeString(part))
		}
		b.WriteString("</p>")
	}
	return template.HTML(b.String()) // every part was escaped above
}
