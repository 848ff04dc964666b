package browser

import (
	"net/url"
	"strings"
	"testing"

	"github.com/parley-dev/parley/internal/servertest"
)

// TestStory goes from the set-up link to a resolved proposal, with two people and an agent: in a
// browser with scripts on each engine, and in one without.
func TestStory(t *testing.T) {
	t.Run("with scripts", func(t *testing.T) { begin(t); tellStory(t, newSite(t)) })
	t.Run("on PostgreSQL", func(t *testing.T) { begin(t); tellStory(t, newSiteOn(t, onPostgres(t))) })
	t.Run("without scripts", func(t *testing.T) { begin(t); tellStory(t, newSite(t), noScripts) })
}

func tellStory(t *testing.T, s *site, how ...option) {
	// Ada follows the link of the first start and chooses a password.
	ada := s.tab(t, nil, how...)
	ada.open(s.setup)
	ada.fill("New password", password)
	ada.fill("Again", password)
	ada.click(button, "Save and sign in")
	ada.openPage("/start")
	ada.sees("First steps", "0 of")

	// She invites Bob, who joins in his own browser.
	ada.openPage("/members/invitations")
	invitation := ada.invite("bob", "Bob Example")
	bob := s.tab(t, nil, how...)
	bob.open(invitation)
	bob.sees("invites you")
	bob.fill("New password", password)
	bob.fill("Again", password)
	bob.click(button, "Join")

	// She registers an agent and makes a key for it, whose secret is shown once.
	ada.openPage("/agents/new")
	ada.fill("Name", "Scout")
	ada.fill("Id", "scout")
	ada.click(button, "Register")
	ada.openPage("/keys/new?preset=proposals&agent=scout")
	ada.click(button, "Make the key")
	scout := s.api(ada.secret())
	ada.reload()
	if got := servertest.Secret.FindString(ada.text()); got != "" {
		t.Error("got the secret a second time, want it shown once")
	}

	// The agent files a proposal; Bob reads it and votes; Ada approves it.
	id := scout.do(t, "POST /proposals", object{
		"title": "Retry failed uploads", "category": "reliability", "problem": "Uploads **fail** now and then.",
		"suggested_fix": "Try three times.",
	})["id"].(string)
	bob.openPage("/proposals")
	bob.click(link, "Retry failed uploads…")
	bob.sees("Uploads fail now and then.", "Admins of the org decide")
	if bob.has(button, "Approve") {
		t.Error("a member is offered a decision, want admins only")
	}
	bob.fill("Comment on your vote…", "Lost two of them last week.")
	bob.click(button, "For")
	bob.sees("You voted for", "Lost two of them last week.")

	ada.openPage("/proposals/" + id)
	ada.sees("Lost two of them last week.")
	ada.fill("Note…", "Do it this week.")
	ada.click(button, "Approve")
	ada.sees("approved", "Do it this week.", "Follow-up")

	// Bob does the work, and Ada marks the proposal as resolved.
	bob.openPage("/followups")
	bob.click(button, "Start: Retry failed uploads")
	bob.openPage("/followups?status=in_progress")
	bob.click(button, "Done: Retry failed uploads")
	ada.openPage("/proposals/" + id)
	ada.sees("Its follow-up is done.")
	ada.click(button, "Resolve")
	ada.sees("No further decision follows.")
	if got := scout.do(t, "GET /proposals/"+id, nil)["status"]; got != "resolved" {
		t.Errorf("status that the agent reads = %v, want resolved", got)
	}

	// The checklist has ticked itself.
	ada.openPage("/start")
	ada.misses("0 of")
}

// invite submits the invitation form and returns the link.
func (w *tab) invite(user, name string) string {
	w.t.Helper()
	w.fill("User…", user)
	w.fill("Name…", name)
	w.click(button, "Make the invitation")
	address := js[string](
		w,
		`(document.body.innerText + ' ' + [...document.querySelectorAll('input')].map(i => i.value).join(' '))
			.match(/\S*\/join\/[-_0-9A-Za-z]{20,}/)?.[0] ?? ''`,
	)
	if address == "" {
		w.t.Fatal("got no link of the invitation on the page, want one")
	}
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		address = u.RequestURI()
	}
	return strings.TrimSpace(address)
}

// secret returns the secret that the page shows.
func (w *tab) secret() string {
	w.t.Helper()
	found := servertest.Secret.FindString(
		js[string](
			w,
			`document.body.innerText + ' ' + [...document.querySelectorAll('input, output')].map(i => i.value).join(' ')`,
		),
	)
	if found == "" {
		w.t.Fatal("got no secret on the page, want one")
	}
	return found
}
