package browser

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp/kb"
)

// TestListKeys tries the keys of the list: they move and vote, do nothing in fields and with
// modifiers, can be switched off, and none of them decides.
func TestListKeys(t *testing.T) {
	d := newDesk(t)
	ids := []string{d.file("Three"), d.file("Two"), d.file("One")}
	d.openPage("/proposals?sort=newest")
	row := func() string { return js[string](d.tab, "document.activeElement.closest('#queue > li')?.id ?? ''") }
	press := func(key, want string) {
		t.Helper()
		d.keys(key)
		d.waitFor("(document.activeElement.closest('#queue > li')?.id ?? '') === '" + want + "'")
	}
	press("j", ids[2])
	press("j", ids[1])
	press("j", ids[0])
	press("j", ids[0])
	press("k", ids[1])

	vote := func(key, words string, votesFor, votesAgainst float64) {
		t.Helper()
		d.follow("press "+key, func() { d.keys(key) })
		d.sees(words)
		p := d.scout.do(t, "GET /proposals/"+ids[1], nil)
		if p["votes_for"] != votesFor || p["votes_against"] != votesAgainst {
			t.Errorf("after %s: votes = %v, %v; want %v, %v", key, p["votes_for"], p["votes_against"], votesFor, votesAgainst)
		}
		if row() != ids[1] {
			t.Errorf("after %s: focus on %q, want row %s", key, d.focused(), ids[1])
		}
	}
	vote("y", "You voted for", 1, 0)
	vote("n", "You voted against", 0, 1)
	vote("u", "withdrawn", 0, 0)

	// With modifiers, during composition, and in fields they have no effect.
	mark := d.mark()
	for _, modifier := range []kb.Modifier{kb.ModifierCtrl, kb.ModifierAlt, kb.ModifierMeta} {
		for _, kind := range []input.DispatchKeyEventType{kb.KeyRawDown, kb.KeyUp} {
			call(d.tab, input.DispatchKeyEvent, input.DispatchKeyEventParams{
				Type: kind, Key: "y", Code: "KeyY", WindowsVirtualKeyCode: 89, Modifiers: int64(modifier),
			})
		}
	}
	js[any](
		d.tab,
		`document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key: 'y', bubbles: true, isComposing: true})), null`,
	)
	d.keys("/")
	d.waitFor("document.activeElement.type === 'search'")
	d.keys("ynjk?")
	d.waitFor("document.activeElement.value === 'ynjk?'")
	if sent := d.posts(mark); len(sent) > 0 {
		t.Errorf("keys without a meaning sent %q, want nothing", sent)
	}

	// No key decides.
	d.openPage("/proposals?sort=newest")
	press("j", ids[2])
	mark = d.mark()
	for key := 'a'; key <= 'z'; key++ {
		if !strings.ContainsRune("jkynu", key) {
			d.keys(string(key) + strings.ToUpper(string(key)))
		}
	}
	d.keys("0123456789.,;+-#" + kb.Delete + kb.Backspace)
	if sent := d.posts(mark); len(sent) > 0 {
		t.Errorf("a key sent %q, want nothing", sent)
	}
	for _, id := range ids {
		if got := d.scout.do(t, "GET /proposals/"+id, nil)["status"]; got != "open" {
			t.Errorf("status after a key = %v, want open", got)
		}
	}

	// The help opens, and switches the keys off.
	d.openPage("/proposals?sort=newest")
	press("j", ids[2])
	d.keys("?")
	d.waitFor("document.querySelector('dialog')?.open")
	d.press(checkbox, "Use these keys")
	d.press(button, "Close")
	d.waitFor("!document.querySelector('dialog').open")
	mark = d.mark()
	d.keys("y")
	d.keys("j")
	if sent := d.posts(mark); len(sent) > 0 || row() == ids[1] {
		t.Errorf("keys that are switched off sent %q and went to %s, want neither", sent, row())
	}
	d.reload()
	d.keys("j")
	if row() == ids[2] && d.focused() != "" && js[bool](d.tab, "localStorage.getItem('parley-keys') !== 'off'") {
		t.Error("keys are on again after a reload, want them off")
	}

	// Enter opens the proposal in focus.
	d.focus(link, "Two…")
	d.follow("press enter", func() { d.keys(kb.Enter) })
	d.at(d.site.path("/proposals/" + ids[1]))
}

// TestPaneFollowsClicks clicks beside a row's title, which shows the row in the pane, and on the
// title of another, which opens it.
func TestPaneFollowsClicks(t *testing.T) {
	d := newDesk(t)
	first, second := d.file("The first one"), d.file("The second one")
	d.openPage("/proposals?sort=newest")
	const shown = "document.getElementById('pane').firstElementChild?.dataset.id === '%s'"
	d.waitFor(fmt.Sprintf(shown, second))
	at := js[[]float64](d.tab, fmt.Sprintf(`(r => [r.right - 4, r.y + r.height / 2])(
		document.getElementById('%s').querySelector('.what').getBoundingClientRect())`, first))
	if err := d.mouse(at[0], at[1], 1); err != nil {
		t.Fatal(err)
	}
	d.waitFor(fmt.Sprintf(shown, first))
	d.at(d.site.path("/proposals?sort=newest&at=" + first))
	d.click(link, "The second one…")
	d.at(d.site.path("/proposals/" + second))
}
