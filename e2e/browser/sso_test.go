package browser

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-dev/parley/internal/idptest"
)

// trusting starts a site with sign-in by the identity provider.
func trusting(t *testing.T, op *idptest.Issuer) *site {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"secret": op.Secret + "\n",
		"issuers.json": fmt.Sprintf(`{"issuers": [{"name": "acme", "title": "Acme", "issuer": %q, "org": "main",
			"sign_in": {"client_id": "parley", "client_secret_file": "secret"}}]}`, op.URL),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return newSite(t, "--issuers", filepath.Join(dir, "issuers.json"))
}

// alsoAt allows a tab to visit another site.
func alsoAt(base string) option {
	return func(w *tab) error {
		w.watch.mu.Lock()
		defer w.watch.mu.Unlock()
		w.watch.also = base
		return nil
	}
}

// throughProvider presses the button of the provider, and waits until the tab has returned.
func (w *tab) throughProvider() {
	w.t.Helper()
	w.click(button, "Sign in with Acme")
	err := eventually(func() error {
		away, err := evaluate[bool](w, `location.origin !== '`+w.site.base+`' || document.title.startsWith('On to ')`)
		if err == nil && away {
			err = errors.New("it is not back")
		}
		if err == nil {
			err = w.settled(0)
		}
		return err
	})
	if err != nil {
		w.t.Fatal("sign in with the provider: ", err)
	}
}

// TestSignInWithProvider signs in with an identity provider, and returns to the first page. A
// refused sign-in ends on a page with an explanation.
func TestSignInWithProvider(t *testing.T) {
	begin(t)
	op := idptest.New(t)
	op.Person = idptest.Claims{"sub": "id-bob", "preferred_username": "bob", "name": "Bob Example"}
	s := trusting(t, op)
	s.cli(t, "user", "create", "bob", "--org", org, "--name", "Bob Example")
	w := s.tab(t, nil, alsoAt(op.URL))

	w.open("/login")
	w.throughProvider()
	w.at(s.path("/overview"))
	w.sees("Overview", "Bob Example")
	w.open("/account")
	w.sees("Signed in as", "user:bob", "Acme: Bob")
	w.signOut()

	// After the sign-in the requested page opens.
	w.openPage("/agents")
	w.at("/login?next=" + url.QueryEscape(s.path("/agents")))
	w.throughProvider()
	w.at(s.path("/agents"))
	w.signOut()

	for _, c := range []struct {
		name   string
		change func()
		words  string
	}{
		{"somebody unknown", func() {
			op.Person = idptest.Claims{"sub": "id-eve", "preferred_username": "eve", "name": "Eve"}
		}, "ask an admin"},
		{"the provider refuses", func() {
			op.Answer = func(back url.Values) {
				back.Del("code")
				back.Set("error", "access_denied")
				back.Set("error_description", "Your <b>contract</b> is over")
			}
		}, "Acme did not sign you in; it says: Your <b>contract</b> is over"},
		{"an answer that nobody waits for", func() {
			op.Answer = func(back url.Values) { back.Set("state", "forged") }
		}, "start again"},
		{"the provider is down", func() {
			op.Answer = func(url.Values) { op.Down(true) } // while the person is on the way back
		}, "Acme"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.change()
			mark := w.mark()
			w.open("/login")
			w.throughProvider()
			w.sees("That did not work", c.words, "Back to the start")
			if got := js[string](w, "document.contentType"); got != "text/html" {
				t.Errorf("content type of the refusal = %s, want text/html", got)
			}
			if text := w.text(); strings.Contains(text, "{") {
				t.Errorf("refusal = %s, want a page", text)
			}
			var last request
			for _, r := range w.watch.since(mark) {
				if r.page {
					last = r
				}
			}
			if last.status < 400 {
				t.Errorf("status of the refusal = %d, want 400 or more", last.status)
			}
			w.openPage("/proposals")
			w.sees("Sign in")
			for _, width := range []int64{1280, 380} {
				w.set(viewport(width, 900))
				w.none("too wide", overflow)
			}
		})
	}
}
