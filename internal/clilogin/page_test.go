package clilogin

import (
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
)

// The page where a login ends looks like the dashboard, and its policy allows only its own
// style sheet.
func TestTheLastPageOfALogin(t *testing.T) {
	t.Parallel()
	base, err := os.ReadFile("../web/static/css/00-base.css")
	if err != nil {
		t.Fatal(err)
	}
	tokens := regexp.MustCompile(`(?m)--[a-z0-9]+: [^;]+;`)
	if n := len(tokens.FindAllString(style, -1)); n < 10 {
		t.Errorf("the style has %d tokens", n)
	}
	for _, token := range tokens.FindAllString(style, -1) {
		if !strings.Contains(string(base), token) {
			t.Errorf("the dashboard does not have the token %s", token)
		}
	}
	w := httptest.NewRecorder()
	page(w, 200, "Title <", "Text &")
	body := w.Body.String()
	for _, want := range []string{"<h1>Title &lt;</h1>", "<p>Text &amp;</p>", "<style>" + style + "</style>"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page does not have %q:\n%s", want, body)
		}
	}
	if got := w.Header().Get("Content-Security-Policy"); !strings.Contains(got, "default-src 'none'; style-src 'sha256-") ||
		strings.Contains(got, "unsafe") {
		t.Error(got)
	}
}
