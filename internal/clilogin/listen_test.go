package clilogin

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/parley-dev/parley/internal/oauth"
)

// The browser's last page says how the login ended, and that the tab can be closed.
func TestTheLastPageSaysHowTheLoginEnded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  error
		want []string
	}{
		"signed in": {nil, []string{"<h1>Signed in</h1>", "https://parley.example", "go back to the terminal"}},
		"refused":   {errors.New("it was <b>refused</b>"), []string{"<h1>Not signed in</h1>", "it was &lt;b&gt;refused"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := &question{metadata: metadata{Issuer: "https://parley.example"}, state: "right"}
			l, err := q.listen(oauth.CommandLine.RedirectURIs[0])
			if err != nil {
				t.Fatal(err)
			}
			pages := make(chan string, 1)
			go func() {
				if strange := fetch(t, l.redirect+"?state=wrong"); !strings.Contains(strange, "Not signed in") {
					t.Errorf("a strange redirect shows %s", strange)
				}
				pages <- fetch(t, l.redirect+"?state=right&code=c")
			}()
			v, err := l.answer(t.Context())
			if err != nil || v.Get("code") != "c" {
				t.Fatalf("answer = %v, %v, want the code", v, err)
			}
			l.end(c.err)
			body := <-pages
			for _, want := range append(c.want, "You can close this tab") {
				if !strings.Contains(body, want) {
					t.Errorf("the page lacks %q: %s", want, body)
				}
			}
		})
	}
}

func fetch(t *testing.T, address string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Error(err)
		return ""
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Error(err)
		return ""
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Error(err)
	}
	return string(body)
}
