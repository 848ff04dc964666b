package browser

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// desk is a small org for one test: an admin with a tab, and an agent that submits proposals.
type desk struct {
	*tab
	ada   *person
	scout api
}

func newDesk(t *testing.T, options ...option) *desk {
	t.Helper()
	begin(t)
	s := newSite(t)
	d := &desk{ada: s.signIn(t, "admin", true)}
	s.cli(t, "agent", "create", "scout", "--org", org, "--name", "Scout")
	var err error
	if d.scout, err = s.keyOf("agent:scout", read, write); err != nil {
		t.Fatal(err)
	}
	d.tab = s.tab(t, d.ada, options...)
	return d
}

// file submits a proposal.
func (d *desk) file(title string, more ...string) string {
	d.t.Helper()
	body := object{
		"title":         title,
		"category":      "reliability",
		"problem":       "It fails now and then.",
		"suggested_fix": "Try again.",
	}
	for i := 0; i < len(more); i += 2 {
		body[more[i]] = more[i+1]
	}
	return d.scout.do(d.t, "POST /proposals", body)["id"].(string)
}

// TestMorphKeepsRows votes in the list while its order changes: the tick, the focus and the
// current row stay with their proposal.
func TestMorphKeepsRows(t *testing.T) {
	d := newDesk(t)
	first, second := d.file("The first one"), d.file("The second one")
	d.openPage("/proposals?sort=newest")
	d.waitFor(fmt.Sprintf("document.getElementById('s-%s')", second))
	js[any](
		d.tab,
		fmt.Sprintf("document.getElementById('s-%s').click(), document.getElementById('f-%s').focus(), null", first, first),
	)
	for i := range 3 { // sorted before the two
		d.file(fmt.Sprintf("A newer one, number %d", i))
	}
	d.follow("vote", func() { d.keys(kb.Enter) })
	d.sees("A newer one, number 2")
	if got := d.focused(); got != "button#f-"+first {
		t.Errorf("the focus is on %q; want the button of the first one", got)
	}
	ticked := js[[]string](d.tab, "[...document.querySelectorAll('#queue input[name=pick]:checked')].map(e => e.id)")
	if !slices.Equal(ticked, []string{"s-" + first}) {
		t.Errorf("ticked are %q; want the first one", ticked)
	}
	if got := js[string](d.tab, "document.querySelector('#queue > [aria-current]')?.id ?? ''"); got != first {
		t.Errorf("current row = %q, want %q", got, first)
	}
	if n := d.scout.do(t, "GET /proposals/"+first, nil)["votes_for"]; n != 1.0 {
		t.Errorf("the first proposal has %v votes, want 1", n)
	}
}

// TestEveryMorphTargetHasAnID checks all pages: every control of a background form has an id, and
// ids are unique.
func TestEveryMorphTargetHasAnID(t *testing.T) {
	begin(t)
	s := readOnly(t)
	w := s.tab(t, s.admin)
	for _, c := range allPages(t, s) {
		if c.who != "admin" {
			continue
		}
		w.open(c.path)
		for _, found := range js[[]string](w, `[...document.querySelectorAll(
			'[hx-post] button, [hx-post] select, [hx-post] textarea, [hx-post] input:not([type=hidden]), .rows > li, details')]
			.filter(e => !e.id).map(e => 'no id: ' + e.outerHTML.slice(0, 160))
			.concat(Object.entries(Object.groupBy([...document.querySelectorAll('[id]')], e => e.id))
				.filter(([, all]) => all.length > 1).map(([id]) => 'twice: ' + id))`) {
			t.Errorf("%s: got %s, want unique ids", c.path, found)
		}
	}
}

// TestDecisionIsAboutTheText changes the text while an admin reads: the decision is refused with
// an explanation, and the typed text is kept. Votes meanwhile change nothing.
func TestDecisionIsAboutTheText(t *testing.T) {
	d := newDesk(t)
	id := d.file("Retry failed uploads")
	d.openPage("/proposals/" + id)
	d.fill("Note…", "Good idea.")
	d.scout.do(t, "PATCH /proposals/"+id, object{"suggested_fix": "Delete everything."})
	d.click(button, "Approve")
	d.sees("changed while you read", "Delete everything.")
	if got := js[string](d.tab, "document.getElementById('note').value"); got != "Good idea." {
		t.Errorf("note = %q, want Good idea.", got)
	}
	if got := d.scout.do(t, "GET /proposals/"+id, nil)["status"]; got != "open" {
		t.Fatalf("status = %v, want open: the text changed after it was read", got)
	}
	d.scout.do(t, "POST /proposals/"+id+"/vote", object{"vote": "for"})
	d.click(button, "Approve")
	d.sees("approved", "Good idea.")
	if got := d.scout.do(t, "GET /proposals/"+id, nil)["status"]; got != "approved" {
		t.Errorf("status = %v, want approved", got)
	}
}

// TestDecisionFormIsNotMorphed votes on a page whose text changed meanwhile: the vote updates the
// page, but the decision form must not take over the version of a text that its reader has not
// seen.
func TestDecisionFormIsNotMorphed(t *testing.T) {
	d := newDesk(t)
	id := d.file("Retry failed uploads")
	twin := d.file("Retry uploads that failed")
	d.openPage("/proposals/" + id)
	d.fill("Note…", "Half a thou")
	version := func(form string) string {
		return js[string](d.tab, "document.forms['"+form+"'].elements.text_version.value")
	}
	decide, reject := version("decide"), version("reject-as-"+twin)
	d.scout.do(t, "PATCH /proposals/"+id, object{"suggested_fix": "Delete everything."})
	d.click(button, "For")
	d.sees("You voted for")
	if got := js[string](d.tab, "document.getElementById('note').value"); got != "Half a thou" {
		t.Errorf("note after a vote = %q, want Half a thou", got)
	}
	if version("decide") != decide || version("reject-as-"+twin) != reject {
		t.Error("the vote changed the text version in the forms, want them unchanged")
	}
	d.click(button, "Approve")
	got := d.scout.do(t, "GET /proposals/"+id, nil)["status"]
	if got != "open" {
		t.Errorf("status = %v, want open: the form decided on a text that a morph brought", got)
	}
	d.sees("changed while you read", "Delete everything.")
}

// TestDoubleClick double-clicks forms of both kinds: one request is sent, and the focus stays.
func TestDoubleClick(t *testing.T) {
	d := newDesk(t)
	id := d.file("Retry failed uploads")
	for _, name := range []string{"For", "Approve"} {
		d.openPage("/proposals/" + id)
		c, mark := d.find(button, name), d.mark()
		d.follow("two clicks on "+name, func() { d.tap(c, 2) })
		if sent := d.posts(mark); len(sent) != 1 {
			t.Errorf("two clicks on %s sent %q, want 1 request", name, sent)
		}
	}
	d.openPage("/followups")
	d.fill("Title", "By hand")
	c, mark := d.find(button, "Add"), d.mark()
	d.follow("two clicks on Add", func() { d.tap(c, 2) })
	if sent := d.posts(mark); len(sent) != 1 {
		t.Errorf("two clicks on Add sent %q, want 1 request", sent)
	}
}

// TestTwiceIsOnce submits the same forms twice, without scripts: they take effect once.
func TestTwiceIsOnce(t *testing.T) {
	d := newDesk(t, noScripts)
	d.openPage("/followups")
	d.fill("Title", "By hand")
	d.click(button, "Add")
	d.sees("By hand")
	mark := d.mark()
	d.reload()
	if sent := d.posts(mark); len(sent) > 0 {
		t.Errorf("a reload sent %q, want nothing", sent)
	}
	_, body := d.site.get(t, d.ada, d.site.path("/followups"))
	token := between(body, `name="once" value="`, `"`)
	form := url.Values{"once": {token}, "title": {"By hand, twice"}}
	for range 2 {
		if res, _ := d.site.send(t, d.ada, "POST", d.site.path("/followups"), form); res.StatusCode != 200 {
			t.Fatalf("status = %s, want 200", res.Status)
		}
	}
	if n := strings.Count(fmt.Sprint(d.scout.do(t, "GET /followups", nil)), "By hand, twice"); n != 1 {
		t.Errorf("a form that was sent twice made %d follow-ups, want 1", n)
	}
}

// TestBackAndReload goes back and reloads after every kind of form: nothing is sent again.
func TestBackAndReload(t *testing.T) {
	d := newDesk(t)
	id := d.file("Retry failed uploads")
	d.openPage("/proposals")
	d.openPage("/proposals/" + id)
	d.click(button, "For")
	d.sees("You voted for")
	d.fill("Note…", "Yes.")
	d.click(button, "Approve")
	d.sees("approved")
	d.openPage("/followups")
	d.fill("Title", "By hand")
	d.click(button, "Add")
	d.sees("By hand")
	mark := d.mark()
	for range 3 {
		d.reload()
		d.back()
		d.reload()
		d.forward()
		d.back()
	}
	if sent := d.posts(mark); len(sent) > 0 {
		t.Errorf("going back and reloading sent %q, want nothing", sent)
	}
	if n := d.scout.do(t, "GET /followups", nil)["total"]; n != 2.0 {
		t.Errorf("there are %v follow-ups; want 2", n)
	}
}

// TestSignedOutInTheMiddle ends the session while a form is being filled in.
func TestSignedOutInTheMiddle(t *testing.T) {
	d := newDesk(t)
	id := d.file("Retry failed uploads")
	t.Run("in the background", func(t *testing.T) {
		d.openPage("/proposals/" + id)
		d.fill("Comment on your vote…", "A long thought.")
		d.signOut()
		d.click(button, "For")
		d.sees("You are signed out")
		if got := js[string](d.tab, "document.getElementById('comment').value"); got != "A long thought." {
			t.Errorf("draft = %q, want A long thought.", got)
		}
		d.at(d.site.path("/proposals/" + id))
		d.cookie(d.ada)
		d.click(button, "For")
		d.sees("You voted for", "A long thought.")
	})
	t.Run("by a plain form", func(t *testing.T) {
		d.openPage("/proposals/" + id)
		d.fill("Note…", "A long thought about why this is right, which nobody wants to write a second time.")
		d.signOut()
		d.click(button, "Approve")
		d.sees("You are signed out", "nothing is lost")
		d.waitFor(
			"[...document.querySelectorAll('textarea')].some(e => e.value.endsWith('which nobody wants to write a second time.'))",
		)
		d.cookie(d.ada)
		d.click(button, "Send again")
		d.sees("approved", "which nobody wants to write a second time")
	})
}

// TestFocusStays submits a form by the keyboard: during the request and afterwards the focus is on
// the same button.
func TestFocusStays(t *testing.T) {
	d := newDesk(t)
	id := d.file("Retry failed uploads")
	d.openPage("/proposals/" + id)
	js[any](
		d.tab,
		`window.parleyLost = [], document.addEventListener('focusout', e => {
			 if (!e.relatedTarget) parleyLost.push(e.target.outerHTML.slice(0, 100)) }), null`,
	)
	d.focus(button, "Against")
	d.follow("vote", func() { d.keys(kb.Enter) })
	d.sees("You voted against")
	if got := d.focused(); got != "button#vote-against" {
		t.Errorf("focus on %q, want button#vote-against", got)
	}
	if lost := js[[]string](d.tab, "parleyLost"); len(lost) > 0 {
		t.Errorf("the focus was lost from %q, want it kept", lost)
	}
}

// TestMorphKeepsState opens details and votes: they stay open, and the menu keeps its current
// entry.
func TestMorphKeepsState(t *testing.T) {
	d := newDesk(t)
	id := d.file("Retry failed uploads")
	d.scout.do(t, "PATCH /proposals/"+id, object{"suggested_fix": "Try three times."})
	d.openPage("/proposals/" + id)
	d.press(summary, "What changed")
	d.press(summary, "Reject as duplicate of…")
	open := func() []string {
		return js[[]string](d.tab, "[...document.querySelectorAll('main details[open]')].map(e => e.id)")
	}
	before := open()
	if len(before) != 2 {
		t.Fatalf("open details = %q, want 2", before)
	}
	d.click(button, "For")
	d.sees("You voted for")
	if after := open(); !slices.Equal(after, before) {
		t.Errorf("open details = %q, want %q", after, before)
	}
	if n := js[int](d.tab, "document.querySelectorAll('nav [aria-current=page]').length"); n != 1 {
		t.Errorf("%d entries of the menu are current, want 1", n)
	}
}

// TestStalePages goes back to a list that has changed meanwhile, and forward to a page that changed
// after the reader left it. The browser shows it from its cache, without asking the server.
func TestStalePages(t *testing.T) {
	d := newDesk(t)
	id := d.file("An old title")
	d.openPage("/proposals")
	d.sees("An old title")
	d.follow("open it", func() { js[any](d.tab, "document.querySelector('#queue .title').click(), null") })
	d.at(d.site.path("/proposals/" + id))
	change := func(title string) { d.scout.do(t, "PATCH /proposals/"+id, object{"title": title}) }
	// A page from the browser's cache is old until it has caught up.
	current := func(title, old string) {
		t.Helper()
		d.waitFor(fmt.Sprintf(
			"document.body.innerText.includes('%s') && !document.body.innerText.includes('%s')", title, old))
	}
	reloaded := func() {
		t.Helper()
		d.waitFor("performance.getEntriesByType('navigation')[0].type === 'reload'")
	}
	change("A new title")
	d.back()
	reloaded()
	current("A new title", "An old title")
	change("A third title") // the text of a proposal that is being read does not change, but its row does
	d.waitFor("document.querySelector('#queue .title').innerText.includes('A third title')")
	d.forward()
	reloaded()
	current("A third title", "A new title")
}

// between returns the text between two texts.
func between(s, before, after string) string {
	_, s, _ = strings.Cut(s, before)
	s, _, _ = strings.Cut(s, after)
	return s
}
