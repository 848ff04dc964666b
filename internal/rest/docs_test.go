package rest

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestTheDocumentationIsOnePageThatLoadsNothing(t *testing.T) {
	t.Parallel()
	rec := newWorld(t).do("", "GET", "/docs", "").want(200)
	page := strings.ReplaceAll(rec.Body, "https://crm.example/hooks/parley", "") // in an example, as text
	page = strings.ReplaceAll(page, `href="`+guides, `href="`)                   // links load nothing
	for _, foreign := range []string{
		"<script", "http://", "https://", "//cdn", "url(", "@import", "style=", "onclick",
		"ZgotmplZ",
	} {
		if strings.Contains(page, foreign) {
			t.Errorf("the page contains %q", foreign)
		}
	}
	_, rest, _ := strings.Cut(rec.Body, "<style>")
	css, _, _ := strings.Cut(rest, "</style>")
	sum := sha256.Sum256([]byte(css))
	want := "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "';"
	if policy := rec.Header.Get("Content-Security-Policy"); !strings.HasPrefix(policy, want) {
		t.Errorf("the policy %q does not let the style sheet in, which needs %q", policy, want)
	}
}

// Examples can be copied: they have the URL of this server. The menu is folded without a script.
func TestTheDocumentationNamesThisServer(t *testing.T) {
	t.Parallel()
	rec := httptest.NewRecorder()
	docsPage(document(Options{}), Options{Base: "https://parley.example"}).
		ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/docs", nil))
	page := rec.Body.String()
	for _, want := range []string{
		`curl &#34;https://parley.example/api/v1/me&#34;`, "https://parley.example/mcp", `<a href="/">Sign in</a>`,
		guides + "/mcp.md", "<summary>Contents</summary>",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(page, "$PARLEY_SERVER") {
		t.Error("an example does not name the server")
	}
}

func TestTheDocumentationHasEveryOperationFieldAndError(t *testing.T) {
	t.Parallel()
	page := newWorld(t).do("", "GET", "/docs", "").want(200).Body
	doc := document(Options{})
	for path, item := range doc.Paths {
		for method, op := range operationsOf(item) {
			_, article, ok := strings.Cut(page, `<article id="`+op.OperationID+`">`)
			article, _, _ = strings.Cut(article, "</article>")
			if !ok || !strings.Contains(article, path) || !strings.Contains(article, "curl") {
				t.Errorf("%s %s is not on the page", method, path)
			}
			for _, p := range op.Parameters {
				if !strings.Contains(article, "<code>"+p.Name+"</code>") {
					t.Errorf("%s %s lacks its parameter %s", method, path, p.Name)
				}
			}
			for code := range op.Responses {
				if !strings.Contains(article, ">"+code+"</span>") {
					t.Errorf("%s %s lacks its response %s", method, path, code)
				}
			}
		}
	}
	for name, s := range doc.Components.Schemas.Map() {
		_, article, ok := strings.Cut(page, `<article id="schema-`+name+`">`)
		article, _, _ = strings.Cut(article, "</article>")
		for field := range s.Properties {
			if !ok || !strings.Contains(article, "<code>"+field+"</code>") {
				t.Errorf("%s.%s is not on the page", name, field)
			}
		}
	}
}
