package browser

import (
	"strings"
	"testing"
)

// TestDocs reads the documentation page on a phone and on a desktop: its menu is folded only on the
// phone, and its examples name this server.
func TestDocs(t *testing.T) {
	begin(t)
	s := calmReadOnly(t)
	w := s.tab(t, nil)
	shown := `[...document.querySelectorAll('nav li a')].some(a => a.checkVisibility({contentVisibilityAuto: true}) &&
		a.getBoundingClientRect().height > 0)`
	w.set(viewport(380, 800))
	w.open("/docs")
	if js[bool](w, shown) {
		t.Error("the menu is open on a phone, want it folded")
	}
	if top := js[float64](w, "document.querySelector('h1').getBoundingClientRect().top"); top > 400 {
		t.Errorf("the text begins at %.0f px, want it on the first screen", top)
	}
	if wide := js[[]string](w, overflow); len(wide) > 0 {
		t.Errorf("the page is wider than the phone: %s", strings.Join(wide, "\n"))
	}
	w.mustBeAccessible("docs on a phone")
	w.press(summary, "Contents")
	if !js[bool](w, shown) {
		t.Error("the menu stays folded")
	}
	w.set(viewport(1280, 900))
	w.reload()
	if !js[bool](w, shown) {
		t.Error("the menu is folded on a desktop, want it open")
	}
	w.mustBeAccessible("docs on a desktop")
	w.sees(s.base+"/api/v1/me", s.base+"/mcp", "Guides")
	w.misses("$PARLEY_SERVER")
	w.click(link, "Sign in")
	w.sees("Password")
}
