package browser

import (
	"strings"
	"testing"
)

// TestHarness checks that the watch of a tab notices each kind of fault.
func TestHarness(t *testing.T) {
	begin(t)
	s := readOnly(t)
	w := s.tab(t, s.admin)
	w.open("/account")
	if faults := w.watch.take(); len(faults) > 0 {
		t.Fatalf("faults of a good page = %q, want none", faults)
	}
	for _, c := range [][2]string{
		{"content policy", `void document.body.append(Object.assign(document.createElement('script'), {textContent: 'window.x = 1'}))`},
		{"script: ", `void setTimeout(() => { throw new Error('on purpose') }, 0)`},
		{"console: ", `void console.error('on purpose')`},
		{"a dialog opened:", `void setTimeout(() => alert('on purpose'), 0)`},
		{"leaves the site", `void (location.href = 'http://127.0.0.1:1/x')`},
	} {
		what := c[0]
		if _, err := evaluate[any](w, c[1]); err != nil {
			t.Fatal(what, err)
		}
		var seen []string
		err := eventually(func() error {
			seen = append(seen, w.watch.take()...)
			if !strings.Contains(strings.Join(seen, "\n"), what) {
				return errNothing
			}
			return nil
		})
		if err != nil {
			t.Errorf("got %q, want %q", seen, what)
		}
	}
	w.open("/account")
	w.watch.take()
	if js[bool](s.tab(t, s.admin, noScripts), "typeof window === 'undefined'") {
		t.Error("got undefined for window, want expressions to run without scripts")
	}
}

// TestNoScriptsMeansNone checks that a tab without scripts runs none.
func TestNoScriptsMeansNone(t *testing.T) {
	begin(t)
	s := readOnly(t)
	for _, plain := range []bool{false, true} {
		var options []option
		if plain {
			options = append(options, noScripts)
		}
		w := s.tab(t, s.admin, options...)
		w.openPage("/followups")
		if ran := js[bool](w, "'htmx' in window"); ran == plain {
			t.Errorf("a script ran: %t, want %t", ran, !plain)
		}
	}
}
