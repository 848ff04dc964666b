package browser

import (
	"strings"
	"testing"
)

// TestTwoOrgs links the membership in a second org by its password and switches to it: nothing of
// the first org is shown there. Afterwards one sign-in opens both.
func TestTwoOrgs(t *testing.T) {
	d := newDesk(t)
	s := d.site
	const there, secret = "second", "four other words entirely"
	s.cli(t, "org", "create", there, "--name", "Second Harbour")
	if _, err := s.enterIn(there, "lovelace", secret, true); err != nil {
		t.Fatal(err)
	}
	other, err := s.keyIn(there, "user:lovelace", read, write)
	if err != nil {
		t.Fatal(err)
	}
	other.do(t, "POST ~/api/v1/orgs/second/proposals", object{
		"title": "Paint the harbour", "category": "process", "problem": "It is grey.", "suggested_fix": "Blue.",
	})
	id := d.file("Hide the treasure")
	d.scout.do(t, "POST /proposals/"+id+"/vote", object{"vote": "for", "comment": "Under the tree."})

	add := func(proof string) {
		d.open("/account")
		d.misses("Second Harbour")
		d.press(summary, "Add another org…")
		d.fill("Org", there)
		d.fill("User", "lovelace")
		d.fill("Password there", proof)
		d.fill("Your password here", password)
		d.click(button, "Add")
	}
	add("not the right one at all")
	d.sees("wrong")
	if got := js[string](d.tab, "document.getElementById('link-org').value"); got != there {
		t.Errorf("org in the form = %q, want %q", got, there)
	}
	add(secret)
	d.sees("You are signed in to second, too.", "linked")

	// The menu switches.
	d.openPage("/proposals")
	d.sees("Hide the treasure")
	d.click(link, "Second Harbour")
	d.waitFor("location.pathname.startsWith('/orgs/second/')")
	for _, page := range []string{
		"", "/proposals", "/proposals?status=all&q=treasure", "/followups", "/agents", "/friction", "/keys",
		"/keys/new", "/clients", "/members", "/members/invitations", "/audit", "/settings",
		"/proposals/new?title=Hide+the+treasure",
	} {
		d.open("/orgs/" + there + page)
		shown := js[string](
			d.tab,
			"document.querySelector('main').innerText + [...document.querySelectorAll('main option')].map(e => e.text)",
		)
		for _, word := range []string{"Hide the treasure", "Under the tree", "scout", "user:admin"} {
			if strings.Contains(squeeze(shown), squeeze(word)) {
				t.Errorf("%s of the second org shows %q of the first, want nothing of it", page, word)
			}
		}
		if n := js[int](d.tab, "document.querySelectorAll('main a[href*=\"/orgs/main\"]').length"); n > 0 {
			t.Errorf("%s has %d links into the first org, want 0", page, n)
		}
	}
	d.open("/orgs/" + there + "/proposals/" + id)
	d.sees("Page not found")
	d.open("/orgs/" + there + "/proposals")
	d.sees("Paint the harbour", "lovelace")
	for _, width := range []int64{1280, 380} {
		d.set(viewport(width, 900))
		d.none("too wide", overflow)
	}
	d.set(viewport(1280, 900))

	// Back in the first org, only the name of the second is shown, in the menu.
	d.click(link, js[string](d.tab, "document.querySelector('nav .orgs a').innerText"))
	d.waitFor("location.pathname.startsWith('/orgs/main/')")
	d.openPage("/proposals?status=all")
	d.sees("Hide the treasure")
	d.misses("Paint the harbour", "lovelace")

	// Either password opens both from now on.
	again := s.tab(t, nil)
	again.open("/login")
	again.fill("Org", there)
	again.fill("User", "lovelace")
	again.fill("Password", secret)
	again.click(button, "Sign in")
	again.waitFor("location.pathname.startsWith('/orgs/second')")
	again.openPage("/proposals")
	again.sees("Hide the treasure")
}
