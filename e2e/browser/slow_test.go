package browser

import (
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/runtime"
)

// hold delays requests whose URL matches the pattern until release is called.
func (w *tab) hold(pattern string) (release func()) {
	w.t.Helper()
	call(w, fetch.Enable, fetch.EnableParams{Patterns: []*fetch.RequestPattern{{URLPattern: pattern}}})
	return func() {
		w.t.Helper()
		call(w, fetch.Disable, cdp.Empty{}) // continues the held requests
	}
}

// noteSlow records in the page when each background request began and ended, and when the page was
// marked slow. It captures the start, to see it before the page sets its own timer.
const noteSlow = `window.parleySlow = {began: 0, shown: 0, ended: 0},
	document.addEventListener('htmx:before:request', () => {
		parleySlow = {began: performance.now(), shown: 0, ended: 0} }, true),
	document.addEventListener('htmx:finally:request', () => { parleySlow.ended = performance.now() }),
	new MutationObserver(() => { if (document.body.classList.contains('slow')) parleySlow.shown ||= performance.now() })
		.observe(document.body, {attributes: true}), null`

// places returns the positions of all elements on the page.
const places = `JSON.stringify([...document.body.querySelectorAll('main, main *, nav, nav *')].map(e => {
	const r = e.getBoundingClientRect(); return [r.x, r.y, r.width, r.height] }))`

// slowSays returns what the page shows while it waits, visually and to screen readers.
const slowSays = `[getComputedStyle(document.body, '::after').content.replace(/^"([^"]*)".*/, '$1'),
	document.getElementById('status').textContent].join('|')`

// TestSlow delays responses: after 400 ms the page shows it, and nothing moves. A faster response
// shows nothing.
func TestSlow(t *testing.T) {
	d := newDesk(t)
	id := d.file("Retry failed uploads")
	d.file("Another one")
	const want = "Still working…|Still working…"

	t.Run("a form in the background", func(t *testing.T) {
		d.openPage("/proposals/" + id)
		js[any](d.tab, noteSlow)
		release := d.hold("*/vote")
		before := js[string](d.tab, places)
		d.tap(d.find(button, "For"), 1)
		d.waitFor("document.body.classList.contains('slow')")
		if got := js[string](d.tab, slowSays); got != want {
			t.Errorf("the page says %q; want %q", got, want)
		}
		if js[string](d.tab, places) != before {
			t.Error("the layout moved when the response was late, want it still")
		}
		// One millisecond is left to the precision of the browser's clock.
		if waited := js[float64](d.tab, "parleySlow.shown - parleySlow.began"); waited < 399 {
			t.Errorf("the page was marked slow after %.0f ms, want 400", waited)
		}
		if n := js[int](d.tab, "document.getAnimations().length"); n > 0 {
			t.Errorf("%d animations run while the page waits, want 0", n)
		}
		release()
		d.sees("You voted for")
		d.waitFor("!document.body.classList.contains('slow')")
		if got := js[string](d.tab, "document.getElementById('status').textContent"); strings.Contains(got, "Still") {
			t.Errorf("status = %q, want no Still", got)
		}
	})
	t.Run("a fast one", func(t *testing.T) {
		d.openPage("/proposals/" + id)
		js[any](d.tab, noteSlow)
		// On a busy machine a response may be late; some are in time.
		for _, name := range []string{"Against", "For", "Against", "For", "Against", "For"} {
			d.click(button, name)
			d.waitFor("parleySlow.ended > 0")
			if js[float64](d.tab, "parleySlow.ended - parleySlow.began") < 390 {
				if js[bool](d.tab, "parleySlow.shown > 0") {
					t.Error("a fast response was marked slow, want it unmarked")
				}
				return
			}
		}
		t.Error("got no fast response, want one")
	})
	t.Run("a plain form", func(t *testing.T) {
		d.openPage("/followups")
		d.fill("Title", "By hand")
		release := d.hold("*/followups")
		// While a page loads, the old one cannot be queried; it reports by itself.
		told := make(chan string, 1)
		on(d.ctx, runtime.ConsoleAPICalled, func(e runtime.EventConsoleAPICalled) {
			if e.Type == runtime.ConsoleAPICalledTypeInfo {
				select {
				case told <- consoleText(e.Args):
				default: // reported before
				}
			}
		})
		js[any](d.tab, `(before => new MutationObserver(() => { if (document.body.classList.contains('slow'))
			console.info(`+slowSays+` + (`+places+` === before ? '|still' : '|moved'))
			}).observe(document.body, {attributes: true}))(`+places+`), null`)
		d.tap(d.find(button, "Add"), 1)
		select {
		case got := <-told:
			if got = strings.ReplaceAll(got, `\u2026`, "…"); !strings.Contains(got, want+"|still") {
				t.Errorf("the page says %s; want %s|still", got, want)
			}
		case <-time.After(patience):
			t.Error("the page shows no status, want one")
		}
		release()
		d.sees("By hand")
		d.waitFor("!document.body.classList.contains('slow')")
	})
	t.Run("the pane beside the list", func(t *testing.T) {
		d.openPage("/proposals")
		d.waitFor("document.querySelector('#pane [data-id]')")
		release := d.hold("*/pane?*")
		before := js[string](d.tab, places)
		js[any](d.tab, "document.querySelector('#queue > li:nth-child(2) .title').focus(), null")
		d.waitFor("document.body.classList.contains('slow')")
		if js[string](d.tab, places) != before {
			t.Error("the layout moved when the pane was late, want it still")
		}
		// The reader is in the pane before its new content.
		js[any](d.tab, "document.querySelector('#pane textarea').focus(), null")
		release()
		d.waitFor("!document.body.classList.contains('slow')")
		d.waitFor("document.querySelector('#pane > *').dataset.id === document.querySelector('#queue > li:nth-child(2)').id")
		if !js[bool](d.tab, "document.activeElement.matches('#pane textarea')") {
			t.Errorf("focus on %q after the pane changed, want it kept on the text field", d.focused())
		}
	})
}
