package browser

import (
	"fmt"
	"slices"
	"testing"
)

// TestPhone compares a proposal on a phone with the same on a desktop: the text comes before the
// decision, and nothing is missing.
func TestPhone(t *testing.T) {
	begin(t)
	s := readOnly(t)
	w := s.tab(t, s.admin)
	things := func() []string {
		w.t.Helper()
		var out []string
		for _, role := range []string{button, textbox, choice, checkbox, radio, heading} {
			list, err := w.controlsIn("main", role)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range list {
				out = append(out, role+" "+c.name)
			}
		}
		slices.Sort(out)
		return slices.Compact(out)
	}
	for _, c := range allPages(t, s) {
		if c.who != "admin" {
			continue
		}
		w.set(viewport(1280, 900))
		w.open(c.path)
		desk := things()
		w.set(viewport(380, 800))
		w.reload()
		phone := things()
		// Phones show the content of the pane as a page of its own, and have no shortcut keys.
		beside := js[string](w, "location.pathname") == s.path("/proposals")
		for _, thing := range desk {
			if !slices.Contains(phone, thing) && !beside {
				t.Errorf("%s lacks %s on a phone, want it shown", c.path, thing)
			}
		}
	}
	w.openPage("/proposals/" + s.open)
	for _, part := range []string{"text-problem", "text-fix"} {
		if !js[bool](
			w,
			fmt.Sprintf(
				"document.getElementById('%s').getBoundingClientRect().bottom <= document.getElementById('decide').getBoundingClientRect().top",
				part,
			),
		) {
			t.Errorf("the decision comes before %s, want it after", part)
		}
	}
}
