package browser

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
)

// enterDemo starts a demo, opens its link and chooses a password.
func enterDemo(t *testing.T) *tab {
	t.Helper()
	began := time.Now()
	s := newSite(t, "--demo")
	t.Logf("the demo was ready after %s", time.Since(began).Round(time.Millisecond))
	w := s.tab(t, nil)
	w.open(s.setup)
	w.fill("New password", password)
	w.fill("Again", password)
	w.click(button, "Save and sign in")
	return w
}

// TestDemoIsOneLinkAway checks that the link of a demo leads an admin to a full dashboard.
func TestDemoIsOneLinkAway(t *testing.T) {
	begin(t)
	w := enterDemo(t)
	w.openPage("/proposals")
	w.sees("Northpier Logistics", "Ask for the order number in the contact form")
	w.mustBeAccessible("the proposals of the demo")
	w.openPage("/agents")
	w.sees("Support triage", "Contract reader")
	w.openPage("/agents/contract-reader")
	w.sees("Contract reader")
	w.mustBeAccessible("an agent of the demo")
	w.openPage("/members")
	w.sees("Maya Lindqvist", "Jonas Weber")
}

// TestDemoScreenshots takes the pictures of the README into the directory PARLEY_DEMOSHOTS. 'make
// demoshots' runs it.
func TestDemoScreenshots(t *testing.T) {
	dir := os.Getenv("PARLEY_DEMOSHOTS")
	if dir == "" {
		return // not requested
	}
	begin(t)
	w := enterDemo(t)
	for _, shot := range []struct{ name, path, scheme, until string }{
		{"proposals", "/proposals", "light", "document.querySelector('#pane .pane-in') !== null"},
		{"agent", "/agents/support-triage", "dark", "document.querySelector('main a[href*=\"/tasks/\"]') !== null"},
	} {
		w.set(viewport(1280, 860), scheme(shot.scheme))
		w.openPage(shot.path)
		w.waitFor(shot.until)
		picture := call(w, page.CaptureScreenshot, page.CaptureScreenshotParams{}).Data
		if err := os.WriteFile(filepath.Join(dir, shot.name+".png"), picture, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
