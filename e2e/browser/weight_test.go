package browser

import (
	"strings"
	"testing"

	"github.com/chromedp/cdproto/page"
)

// Limits of a page's weight with an empty cache.
const (
	maxBytes    = 60_000
	maxRequests = 8
)

const noteShifts = `window.parleyShift = []; new PerformanceObserver(list => { for (const e of list.getEntries())
	window.parleyShift.push(e.value.toFixed(4) + ' ' + e.sources.map(s => s.node?.outerHTML?.slice(0, 120)).join(' | ')) })
	.observe({type: 'layout-shift', buffered: true});`

// mustBeLight checks the requests of the first page of a tab.
func (w *tab) mustBeLight() {
	w.t.Helper()
	var bytes float64
	var list []string
	for _, r := range w.watch.since(0) {
		bytes += r.bytes
		list = append(list, r.url)
	}
	w.t.Logf("%s: %.0f bytes, %d requests", w.path(), bytes, len(list))
	if bytes > maxBytes || bytes == 0 {
		w.t.Errorf("%s weighs %.0f bytes; want at most %d", w.path(), bytes, maxBytes)
	}
	if len(list) > maxRequests {
		w.t.Errorf("%s asks %d times; want at most %d:\n%s", w.path(), len(list), maxRequests, strings.Join(list, "\n"))
	}
}

// TestWeight opens each page with an empty cache, checks its weight, and that nothing moves after
// it was shown.
func TestWeight(t *testing.T) {
	begin(t)
	s := readOnly(t)
	for _, c := range allPages(t, s) {
		t.Run(c.name, func(t *testing.T) {
			w := s.tab(t, s.who(c))
			call(w, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: noteShifts})
			w.open(c.path)
			w.mustBeLight()
			// A frame after the page was complete: all shifts have happened.
			js[any](
				w,
				"window.parleyFrames = 0, requestAnimationFrame(() => requestAnimationFrame(() => { parleyFrames = 2 })), null",
			)
			w.waitFor("parleyFrames === 2")
			for _, shift := range js[[]string](w, "parleyShift") {
				t.Errorf("%s shifts: %s, want no layout shift", c.path, shift)
			}
		})
	}
}
