package browser

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// TestScreenshots takes pictures of every page, light and dark, at each width, into the directory
// PARLEY_SCREENSHOTS; PARLEY_PAGES is a pattern of page names. 'make screenshots' runs it.
func TestScreenshots(t *testing.T) {
	dir := os.Getenv("PARLEY_SCREENSHOTS")
	if dir == "" {
		return // not requested
	}
	wanted := regexp.MustCompile(os.Getenv("PARLEY_PAGES"))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	s := readOnly(t)
	for _, c := range allPages(t, s) {
		if !wanted.MatchString(c.name) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			begin(t)
			w := s.tab(t, s.who(c))
			w.open(c.path)
			for _, width := range widths {
				for _, name := range []string{"light", "dark"} {
					w.set(viewport(width, 900), scheme(name))
					file := filepath.Join(dir, fmt.Sprintf("%s-%d-%s.png", c.name, width, name))
					if err := os.WriteFile(file, w.picture(), 0o644); err != nil {
						t.Fatal(err)
					}
				}
			}
		})
	}
}
