package browser

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/chromedp/cdproto/cdp"
)

// A scene is a state without a URL: it takes steps to get there.
type scene struct {
	name string
	play func(d *desk)
}

// scenes are played one after the other on one site, which is empty at first.
var scenes = []scene{
	{"empty-proposals", func(d *desk) { d.openPage("/proposals"); d.sees("Proposals") }},
	{"empty-followups", func(d *desk) { d.openPage("/followups") }},
	{"empty-friction", func(d *desk) { d.openPage("/friction") }},
	{"empty-clients", func(d *desk) { d.openPage("/clients") }},
	{"first-steps", func(d *desk) { d.openPage("/start") }},
	{"invitation-made", func(d *desk) { d.openPage("/members/invitations"); d.invite("bob", "Bob Example") }},
	{"setup", func(d *desk) {
		d.open(
			setupLink.FindString(d.site.cli(d.t, "admin", "link", "--org", org, "--user", "admin", "--public-url", d.site.base)),
		)
	}},
	{"key-made", func(d *desk) {
		d.openPage("/keys/new?preset=proposals&agent=scout")
		d.click(button, "Make the key")
		d.secret()
	}},
	{"key-without-rights", func(d *desk) {
		d.openPage("/keys/new")
		js[any](d.tab, "document.querySelector('form.key-form').noValidate = true, null")
		d.click(button, "Make the key")
	}},
	{"proposal-form-wrong", func(d *desk) {
		d.openPage("/proposals/new")
		js[any](d.tab, "document.getElementById('proposal-form').noValidate = true, null")
		d.click(button, "Submit")
		d.waitFor("document.querySelector('[aria-invalid]')")
	}},
	{"text-changed", func(d *desk) {
		id := d.file("A text that changes")
		d.openPage("/proposals/" + id)
		d.fill("Note…", "Good idea.")
		d.scout.do(d.t, "PATCH /proposals/"+id, object{"suggested_fix": "Delete everything."})
		d.click(button, "Approve")
		d.sees("changed while you read")
	}},
	{"rejected-without-note", func(d *desk) {
		d.openPage("/proposals/" + d.file("One without a reason"))
		d.click(button, "Reject")
		d.waitFor("document.querySelector('[role=alert]')")
	}},
	{"voted", func(d *desk) {
		d.openPage("/proposals/" + d.file("One to vote on"))
		d.click(button, "For")
		d.sees("You voted for")
	}},
	{"voted-in-the-list", func(d *desk) {
		d.openPage("/proposals")
		d.follow("vote", func() {
			js[any](d.tab, "document.querySelector('#queue form.vote [id^=f-][aria-pressed=false]').click(), null")
		})
		d.sees("You voted for")
	}},
	{"approved", func(d *desk) {
		d.openPage("/proposals/" + d.file("One to approve"))
		d.click(button, "Approve")
		d.sees("Follow-up")
	}},
	{"keys-of-the-list", func(d *desk) {
		d.openPage("/proposals")
		js[any](d.tab, "document.getElementById('keys-open').click(), null")
		d.waitFor("document.querySelector('dialog').open")
	}},
	{"filters-open", func(d *desk) { d.openPage("/proposals"); d.press(summary, "Filters and groups") }},
	{"account-open", func(d *desk) { d.openPage("/proposals"); d.open("/account?org=" + org); d.unfold() }},
	{"key-open", func(d *desk) { d.openPage("/keys"); d.openFirst(); d.unfold() }},
	{"member-open", func(d *desk) { d.openPage("/members/agent:scout"); d.unfold() }},
	{"settings-open", func(d *desk) { d.openPage("/settings"); d.unfold() }},
	{"agent-open", func(d *desk) { d.openPage("/agents/scout"); d.unfold() }},
	{"followups-open", func(d *desk) { d.openPage("/followups"); d.unfold() }},
	{"audit-open", func(d *desk) {
		d.openPage("/audit")
		js[any](d.tab, "document.querySelector('#log details').open = true, null")
	}},
	{"task-sent", func(d *desk) {
		d.openPage("/agents/scout")
		d.fill("Message", "Find what is slow.")
		d.click(button, "Send")
	}},
	{"signed-out-draft", func(d *desk) {
		d.openPage("/proposals/" + d.file("A vote of nobody"))
		d.fill("Comment on your vote…", "A long thought.")
		d.signOut()
		d.click(button, "For")
		d.sees("You are signed out")
		d.cookie(d.ada)
	}},
	{"signed-out-form", func(d *desk) {
		d.openPage("/proposals/" + d.file("A decision of nobody"))
		d.fill("Note…", "A long thought about why this is right, which nobody wants to write a second time.")
		d.signOut()
		d.click(button, "Approve")
		d.sees("You are signed out")
		d.cookie(d.ada)
	}},
	{"offline", func(d *desk) {
		d.openPage("/proposals/" + d.file("One without a network"))
		d.offline(true)
		d.press(button, "For")
		d.sees("could not be reached")
		d.offline(false)
		d.watch.take() // htmx writes the failure into the console
	}},
	{"live-new-rows", func(d *desk) {
		d.follows("/proposals?sort=newest")
		d.file("One that came meanwhile")
		d.waitFor("document.querySelector('.live-new')")
	}},
	{"live-lost", func(d *desk) {
		d.follows("/proposals/" + d.file("One that is cut off"))
		js[any](d.tab, "dispatchEvent(new Event('offline')), null") // the next scene is online
		d.sees("Connection lost.")
	}},
	{"wrong-password", func(d *desk) {
		d.signOut()
		d.open("/login")
		d.fill("User", "admin")
		d.fill("Password", "a wrong password")
		d.click(button, "Sign in")
		d.cookie(d.ada)
	}},
}

// unfold opens all details on the page.
func (d *desk) unfold() {
	d.t.Helper()
	js[any](d.tab, "document.querySelectorAll('main details:not([name])').forEach(e => { e.open = true }), null")
}

// openFirst opens the first row of a table.
func (d *desk) openFirst() {
	d.t.Helper()
	d.open(js[string](d.tab, "document.querySelector('.sheet a.title').getAttribute('href')"))
}

// offline disconnects the tab, or connects it again.
func (w *tab) offline(on bool) {
	w.t.Helper()
	type conditions struct {
		Offline            bool `json:"offline"`
		Latency            int  `json:"latency"`
		DownloadThroughput int  `json:"downloadThroughput"`
		UploadThroughput   int  `json:"uploadThroughput"`
	}
	command := cdp.Command[conditions, cdp.Empty]{Method: "Network.emulateNetworkConditions"}
	call(w, command, conditions{Offline: on, DownloadThroughput: -1, UploadThroughput: -1})
}

// TestScenes plays the scenes, and checks each with axe-core and for overflow. With
// PARLEY_SCREENSHOTS it takes pictures.
func TestScenes(t *testing.T) {
	d := newDesk(t)
	dir, wanted := os.Getenv("PARLEY_SCREENSHOTS"), regexp.MustCompile(os.Getenv("PARLEY_PAGES"))
	for _, s := range scenes {
		d.set(viewport(1280, 900), scheme("light"))
		s.play(d)
		for _, width := range widths {
			d.set(viewport(width, 900), scheme("light"))
			d.mustBeAccessible(fmt.Sprintf("%s, %d px, light", s.name, width))
			for _, found := range js[[]string](d.tab, overflow) {
				t.Errorf("%s at %d px: %s overflows, want it to fit", s.name, width, found)
			}
			for _, colours := range []string{"light", "dark"} {
				d.set(scheme(colours))
				if colours == "dark" {
					d.mustBeAccessible(fmt.Sprintf("%s, %d px, dark", s.name, width), "color-contrast")
				}
				if dir != "" && wanted.MatchString(s.name) {
					file := filepath.Join(dir, fmt.Sprintf("scene-%s-%d-%s.png", s.name, width, colours))
					if err := os.WriteFile(file, d.picture(), 0o644); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
}
