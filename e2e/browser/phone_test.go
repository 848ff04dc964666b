package browser

import (
	"fmt"
	"slices"
	"testing"
)

// TestPhone compares a proposal on a phone with the one on a desk: the text comes before the
// decision, and nothing is missing.
func TestPhone(t *testing.T) {
	begin(t)
	s := readOnly(t)
	w := s.tab(t, s.admin)
	things := func() []string {
		w.t.Helper()
		var out []string
		for _, role := range []string{button, textbox, choice, checkbox, radio, heading} {
			list, err := w.controls(role)
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
		for _, thing := range desk {
			if !slices.Contains(phone, thing) && !onlyBeside(c, thing) {
				t.Errorf("%s lacks on a phone: %s", c.path, thing)
			}
		}
	}
	w.openPage("/proposals/" + s.open)
	for _, part := range []string{"text-problem", "text-fix"} {
		if !js[bool](w, fmt.Sprintf("document.getElementById('%s').getBoundingClientRect().bottom <= document.getElementById('decide').getBoundingClientRect().top", part)) {
			t.Errorf("the decision comes before %s", part)
		}
	}
}

// onlyBeside reports what stands in the pane beside the list, which phones show as a page.
func onlyBeside(c pageCase, _ string) bool {
	return pattern(c.path) == "/orgs/"+org+"/proposals"
}
