package browser

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// stopOf numbers an element. It keeps its number, also when a poll renews its attributes.
const stopOf = `window.parleyStops ??= new WeakMap(); window.parleyStop ??= e => {
	if (!parleyStops.has(e)) parleyStops.set(e, String(window.parleyCount = (window.parleyCount ?? 0) + 1));
	return parleyStops.get(e) };`

// reachable lists the elements that the Tab key must reach, one of each group of radio buttons.
const reachable = `(() => { const out = []; ` + stopOf + `
	for (const e of document.querySelectorAll('a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex="0"]')) {
		if (!e.checkVisibility({visibilityProperty: true}) || e.disabled || e.tabIndex < 0 || e.closest('[inert]')) continue;
		if (e.type === 'radio') {
			const group = [...document.getElementsByName(e.name)].filter(r => r.form === e.form);
			if (e !== (group.find(r => r.checked) ?? group[0])) continue;
		}
		out.push({stop: parleyStop(e), what: e.outerHTML.replace(/\s+/g, ' ').slice(0, 120)});
	}
	return out })()`

// here describes the focus: which stop it is, and whether it is visible.
const here = `(() => { const e = document.activeElement; ` + stopOf + `
	if (!e || e === document.body) return {stop: '', seen: false, what: ''};
	const s = getComputedStyle(e), r = e.getBoundingClientRect();
	const ring = s => s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) >= 1 || s.boxShadow !== 'none';
	let seen = ring(s);
	for (let p = e.parentElement; p && !seen; p = p.parentElement)
		seen = p.matches(':focus-within') && ring(getComputedStyle(p)) && p.contains(e) && p.matches('label, li, tr, .field');
	const inside = r.bottom > 0 && r.top < innerHeight && r.right > 0 && r.left < innerWidth && r.width > 0 && r.height > 0;
	return {stop: parleyStop(e), seen: seen && inside, what: e.outerHTML.replace(/\s+/g, ' ').slice(0, 140)} })()`

// paneFollows reports whether the pane shows the row that has the focus, if any.
const paneFollows = `(() => { const row = document.activeElement?.closest('#queue > li'), pane = document.getElementById('pane');
	return !row || !pane || pane.firstElementChild?.dataset.id === row.id })()`

type focus struct {
	Stop string `json:"stop"`
	Seen bool   `json:"seen"`
	What string `json:"what"`
}

// TestTabKey goes through every page by the Tab key alone: everything can be reached, in page
// order, and the focus is always visible.
func TestTabKey(t *testing.T) {
	begin(t)
	s := readOnly(t)
	const most = 60
	eachPage(t, s, func(t *testing.T, w *tab, c pageCase) {
		stops := js[[]focus](w, reachable)
		reached := map[string]bool{}
		hidden := 0
		for range most {
			w.keys(kb.Tab)
			at := js[focus](w, here)
			if at.Stop == "" && at.What == "" {
				break // beyond the last one
			}
			reached[at.Stop] = true
			w.waitFor(paneFollows)
			stops = js[[]focus](w, reachable)
			if !at.Seen && hidden < 5 {
				hidden++
				t.Errorf("%s: focus on %s is invisible, want it visible", c.path, at.What)
			}
		}
		if len(stops) > most || strings.Contains(c.path, "/login") {
			return // a page that focuses a field starts there
		}
		for _, stop := range stops {
			if !reached[stop.Stop] {
				t.Errorf("%s: the Tab key does not reach %s, want it to", c.path, stop.What)
			}
		}
	})
}

// tabTo presses Tab until the focus is on the control with the name, and checks on the way that
// the focus is visible.
func (w *tab) tabTo(name string) {
	w.t.Helper()
	var seen []string
	for range 150 {
		w.keys(kb.Tab)
		at := js[focus](w, here)
		if at.What != "" && !at.Seen {
			w.t.Errorf("focus on %s is invisible, want it visible", at.What)
		}
		called := js[string](
			w,
			`(e => (e.labels?.[0]?.innerText ?? e.ariaLabel ?? e.innerText ?? '').trim())(document.activeElement)`,
		)
		if at.What != "" && named(called, name) {
			return
		}
		seen = append(seen, called)
	}
	w.t.Fatalf("the Tab key leads to %q, want %q", seen, name)
}

// enterOn goes to a control and presses Enter, after which something must have the focus.
func (w *tab) enterOn(name string) {
	w.t.Helper()
	w.tabTo(name)
	w.follow("enter on "+name, func() { w.keys(kb.Enter) })
}

// TestKeyboardStory goes from signing in to a resolved proposal without a mouse.
func TestKeyboardStory(t *testing.T) {
	d := newDesk(t)
	id := d.file("Retry failed uploads")
	w := d.site.tab(t, nil)
	w.open("/login?next=" + d.site.path("/proposals"))
	w.tabTo("Org")
	w.keys(kb.Tab)
	w.keys("admin" + kb.Tab)
	w.keys(password)
	w.follow("sign in", func() { w.keys(kb.Enter) })
	w.at(d.site.path("/proposals"))

	w.tabTo("Skip to content")
	w.keys(kb.Enter)
	w.waitFor("document.activeElement.id === 'main'")
	w.tabTo("Retry failed uploads")
	w.follow("open it", func() { w.keys(kb.Enter) })
	w.waitFor("location.pathname.endsWith('" + id + "')")
	w.tabTo("Comment on your vote…")
	w.keys("By keyboard.")
	w.enterOn("For")
	w.sees("You voted for")
	if w.focused() == "" {
		t.Error("got no focus after a vote, want it kept")
	}
	w.tabTo("Note…")
	w.keys("By keyboard, too.")
	w.enterOn("Approve")
	w.sees("approved")
	w.enterOn("Resolve")
	w.sees("No further decision follows.")
	if got := d.scout.do(t, "GET /proposals/"+id, nil)["status"]; got != "resolved" {
		t.Errorf("status = %v, want resolved", got)
	}
}
