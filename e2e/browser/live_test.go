package browser

import (
	"bufio"
	"fmt"
	"net/http"
	"net/url"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/servertest"
)

// streams returns how many streams the server has open.
func (s *site) streams(t testing.TB) int {
	t.Helper()
	_, body := s.get(t, nil, "/metrics")
	_, rest, _ := strings.Cut(body, "\nparley_http_streams ")
	line, _, _ := strings.Cut(rest, "\n")
	n, err := strconv.Atoi(line)
	if err != nil {
		t.Fatalf("parley_http_streams: %v", err)
	}
	return n
}

// waitStreams waits until the server has so many open streams.
func (s *site) waitStreams(t testing.TB, want int) {
	t.Helper()
	err := eventually(func() error {
		if n := s.streams(t); n != want {
			return fmt.Errorf("%d streams are open", n)
		}
		return nil
	})
	if err != nil {
		t.Fatalf("waited for %d streams: %v", want, err)
	}
}

// follows opens a page and waits until it follows the org.
func (w *tab) follows(path string) {
	w.t.Helper()
	w.openPage(path)
	w.waitFor("document.body.dataset.liveState === 'open'")
}

// TestLiveProposal shows one proposal in two windows: what happens in one appears in the other, and
// text that somebody types there stays.
func TestLiveProposal(t *testing.T) {
	d := newDesk(t)
	id := d.file("Retry failed uploads")
	bob := d.site.tab(t, d.site.signIn(t, "bob", false))
	bob.follows("/proposals/" + id)
	bob.write(bob.field("Comment on your vote (optional)"), "I am still typing")
	phone, err := d.site.keyOf("user:bob", read, write)
	if err != nil {
		t.Fatal(err)
	}
	phone.do(t, "POST /proposals/"+id+"/vote", object{"vote": "against", "comment": "From my phone."})
	bob.sees("From my phone.") // the comment of his vote, which the field would show
	d.openPage("/proposals/" + id)
	d.click(button, "For")
	bob.sees("1 for", "voted for")
	if got := js[string](bob, "document.activeElement.value"); got != "I am still typing" {
		t.Errorf("the field has %q, want what was typed", got)
	}
	if n := js[int](bob, "document.querySelectorAll('#votes li').length"); n != 2 {
		t.Errorf("%d votes are listed, want 2", n)
	}
	bob.click(button, "Against")
	d.sees("1 against", "I am still typing")

	// A decision closes the vote everywhere, and the menu counts one less.
	d.fill("Note (needed to reject)", "Do it.")
	d.click(button, "Approve")
	bob.waitFor("document.querySelector('#facts .chip').textContent === 'approved'")
	js[any](bob, "document.activeElement.blur(), null") // what has the focus stays
	bob.waitFor("!document.getElementById('vote') && document.getElementById('count-proposals').textContent === ''")
}

// standing returns what must not change while somebody reads a list: the rows and their places on
// the screen, the scroll position and the focus.
const standing = `JSON.stringify([scrollY, document.activeElement.id,
	[...document.querySelectorAll('#queue > li')].map(li => [li.id, li.getBoundingClientRect().y])])`

// TestLiveRows files proposals while somebody reads the list: a button says how many there are, and
// nothing moves until it is pressed.
func TestLiveRows(t *testing.T) {
	d := newDesk(t)
	for i := range 30 {
		d.file(fmt.Sprintf("Old proposal %d", i))
	}
	d.set(viewport(1280, 500))
	d.follows("/proposals?sort=newest")
	// On a slow machine the next message may replace one before this test reads it.
	js[any](d.tab, `window.said = [], new MutationObserver(() => said.push(document.getElementById('status').textContent))
		.observe(document.getElementById('status'), { childList: true, characterData: true, subtree: true }), null`)
	first := js[string](d.tab, "document.querySelector('#queue > li').id")
	js[any](d.tab, "document.querySelectorAll('#queue > li')[12].querySelector('a.title').focus(), scrollBy(0, 40), null")
	before := js[string](d.tab, standing)
	var last string
	for i := range 3 {
		last = d.file(fmt.Sprintf("New proposal %d", i))
	}
	d.waitFor("document.querySelector('.live-new')?.textContent === '3 new'")
	d.scout.do(t, "POST /proposals/"+first+"/vote", object{"vote": "against", "comment": "Not now."})
	d.waitFor("document.querySelector('#queue > li .a').textContent === '−1'")
	if after := js[string](d.tab, standing); after != before {
		t.Errorf("the list moved:\n%s\nwant\n%s", after, before)
	}
	if got := js[string](d.tab, "document.getElementById('count-proposals').textContent"); got != "33" {
		t.Errorf("the menu counts %s, want 33", got)
	}
	d.waitFor("said.includes('3 new in this list.')")

	// Rows that are gone stay until then, too.
	root := d.site.api(d.site.key)
	root.do(t, "PATCH /proposals/"+first, object{"status": "rejected", "resolution_note": "No."})
	d.waitFor(fmt.Sprintf("document.getElementById(%q)?.classList.contains('gone')", first))
	if after := js[string](d.tab, standing); after != before {
		t.Errorf("the list moved:\n%s\nwant\n%s", after, before)
	}
	js[any](d.tab, "window.scrollTo(0, 0), null")
	d.focus(link, "3 new")
	d.keys("\r")
	d.waitFor(fmt.Sprintf("document.querySelector('#queue > li').id === %q", last))
	d.waitFor(fmt.Sprintf("document.activeElement.closest('li')?.id === %q", last))
	d.waitFor(fmt.Sprintf("!document.querySelector('.live-new') && !document.getElementById(%q)", first))
}

// TestLiveEmptyList fills a list that was empty.
func TestLiveEmptyList(t *testing.T) {
	d := newDesk(t)
	d.follows("/proposals")
	d.file("The first one")
	d.waitFor("document.querySelector('.live-new')?.textContent === '1 new'")
	d.focus(link, "1 new") // not a click: the page may have the row already, and then sends nothing
	d.keys("\r")
	d.sees("The first one")
}

// TestLivePresence shows that an agent comes online.
func TestLivePresence(t *testing.T) {
	d := newDesk(t)
	worker, err := d.site.keyOf("agent:scout", serveTasks)
	if err != nil {
		t.Fatal(err)
	}
	d.follows("/agents")
	d.sees("offline")
	go func() { _, _, _ = worker.call("POST ~/api/v1/agents/scout/claim", object{"wait_seconds": 60}) }()
	d.waitFor("document.querySelector('#agent-scout [data-label=Status]').textContent.includes('available')")
}

// TestLiveRestart restarts the server: the page says that it lost the connection, and then shows
// what happened meanwhile.
func TestLiveRestart(t *testing.T) {
	d := newDesk(t)
	id := d.file("Retry failed uploads")
	d.follows("/proposals/" + id)
	js[any](d.tab, "document.getElementById('comment').focus(), null")
	if err := d.site.Stop(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	d.sees("Connection lost. Trying again…")
	d.restart()
	d.scout.do(t, "POST /proposals/"+id+"/vote", object{"vote": "for"})
	d.waitFor("!document.getElementById('live-note')")
	d.sees("1 for")
	if got := d.focused(); !strings.Contains(got, "comment") && !strings.Contains(got, "Comment") {
		t.Errorf("the focus is at %q, want it where it was", got)
	}
	d.scout.do(t, "POST /proposals/"+id+"/vote", object{"vote": "against"})
	d.sees("1 against")
}

// TestLiveRole takes the admin role from somebody who reads a page for admins: the page says so, and
// shows nothing of it any more.
func TestLiveRole(t *testing.T) {
	d := newDesk(t)
	bob := d.site.tab(t, d.site.signIn(t, "bob", true))
	bob.follows("/keys")
	bob.waitFor("document.querySelector('#keys-live [data-key]')")
	root := d.site.api(d.site.key)
	root.do(t, "PATCH /members/user:bob", object{"admin": false})
	bob.sees("You may no longer see this page.")
	bob.waitFor("!document.querySelector('#keys-live [data-key]')")
	root.do(t, "PATCH /members/user:bob", object{"admin": true})
	bob.waitFor("document.querySelector('#keys-live [data-key]') && !document.getElementById('live-note')")
}

// TestLiveOpenDetails reads the data of an event while others happen: it stays open, and moving the
// focus requests nothing.
func TestLiveOpenDetails(t *testing.T) {
	d := newDesk(t)
	d.file("The first one")
	d.follows("/events")
	js[any](d.tab, `document.querySelector('#events details').open = true, window.parleyPages = 0,
		document.addEventListener('parley:updated', () => { parleyPages++ }), null`)
	d.file("The second one")
	d.waitFor("document.querySelector('.live-new')?.textContent === '1 new'")
	before := js[int](d.tab, "parleyPages")
	for range 3 {
		js[any](d.tab, "document.getElementById('subject').focus(), document.getElementById('type').focus(), null")
		time.Sleep(300 * time.Millisecond) // nothing is to happen
	}
	if after := js[int](d.tab, "parleyPages"); after != before {
		t.Errorf("the page was requested %d times, want none", after-before)
	}
	if !js[bool](d.tab, "document.querySelector('#events details').open") {
		t.Error("the data was closed, want it as the reader left it")
	}
}

// restart starts the server again, at the same address.
func (d *desk) restart() {
	d.t.Helper()
	at, err := url.Parse(d.site.base)
	if err != nil {
		d.t.Fatal(err)
	}
	args := slices.Concat([]string{"serve", "--listen", at.Host, "--rate-limit", "0"}, d.site.store)
	cmd := exec.Command(program, args...)
	cmd.Env = servertest.Environ()
	p, err := servertest.Start(cmd, "/readyz")
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(p.Kill)
}

func TestLiveLostNetwork(t *testing.T) {
	d := newDesk(t)
	id := d.file("Retry failed uploads")
	d.follows("/proposals/" + id)
	d.offline(true)
	d.sees("Connection lost. Trying again…")
	d.waitFor("document.getElementById('status').textContent === 'Connection lost. Trying again…'")
	d.scout.do(t, "POST /proposals/"+id+"/vote", object{"vote": "for"})
	d.offline(false)
	d.waitFor("!document.getElementById('live-note')")
	d.sees("1 for")
}

// TestLiveSignedOut ends the session of an open page: it says so, keeps what was typed, and goes on
// after the next sign-in.
func TestLiveSignedOut(t *testing.T) {
	d := newDesk(t)
	id := d.file("Retry failed uploads")
	d.follows("/proposals/" + id)
	d.write(d.field("Comment on your vote (optional)"), "I am still typing")
	d.site.send(t, d.ada, "POST", "/logout", url.Values{})
	d.sees("You are signed out.")
	if got := js[string](d.tab, "document.querySelector('#live-note a').getAttribute('href')"); !strings.HasPrefix(
		got, "/login?next=%2Forgs%2Fmain%2Fproposals%2F") {
		t.Errorf("the link leads to %s, want the sign-in page", got)
	}
	d.site.waitStreams(t, 0)
	d.cookie(d.site.signIn(t, "admin", true))
	d.hide(true)
	d.hide(false)
	d.waitFor("!document.getElementById('live-note')")
	if got := js[string](d.tab, "document.getElementById('comment').value"); got != "I am still typing" {
		t.Errorf("the field has %q, want what was typed", got)
	}
}

// hide sends the tab to the background, or shows it again.
func (w *tab) hide(hidden bool) {
	w.t.Helper()
	js[any](w, fmt.Sprintf(`Object.defineProperty(document, 'hidden', {configurable: true, value: %t}),
		document.dispatchEvent(new Event('visibilitychange')), null`, hidden))
}

// TestLiveHiddenTab: a tab in the background has no stream and requests nothing. It catches up when
// it is shown again.
func TestLiveHiddenTab(t *testing.T) {
	d := newDesk(t)
	id := d.file("Retry failed uploads")
	d.follows("/proposals/" + id)
	d.hide(true)
	d.site.waitStreams(t, 0)
	d.scout.do(t, "POST /proposals/"+id+"/vote", object{"vote": "for"})
	if got := js[string](d.tab, "document.getElementById('tally').innerText"); !strings.Contains(got, "0 for") {
		t.Errorf("a hidden tab shows %q, want what it showed before", got)
	}
	d.hide(false)
	d.sees("1 for")
	d.site.waitStreams(t, 1)
}

// TestLiveBurst sends 2,000 events: the page stays responsive, and nothing moves.
func TestLiveBurst(t *testing.T) {
	d := newDesk(t)
	ids := make([]string, 20)
	for i := range ids {
		ids[i] = d.file(fmt.Sprintf("Proposal %d", i))
	}
	d.follows("/proposals?sort=newest")
	js[any](d.tab, `document.querySelectorAll('#queue > li')[8].querySelector('a.title').focus(), null`)
	js[any](d.tab, `window.parleyTasks = [0], window.parleyPages = 0,
		new PerformanceObserver(list => parleyTasks.push(...list.getEntries().map(e => e.duration)))
			.observe({type: 'longtask'}),
		document.addEventListener('parley:updated', () => { parleyPages++ }), null`)
	before, start := js[string](d.tab, standing), time.Now()
	each(t, 2000, func(i int) error {
		vote := []string{"for", "against"}[i/len(ids)%2]
		_, err := d.scout.try("POST /proposals/"+ids[i%len(ids)]+"/vote", object{"vote": vote})
		return err
	})
	last := d.file("The last one")
	d.waitFor("document.querySelector('.live-new')?.textContent === '1 new'")
	if after := js[string](d.tab, standing); after != before {
		t.Errorf("the list moved:\n%s\nwant\n%s", after, before)
	}
	longest, pages := js[float64](d.tab, "Math.max(...parleyTasks)"), js[int](d.tab, "parleyPages")
	t.Logf("longest task %.0f ms, %d updates", longest, pages)
	if longest > 3000 { // a busy machine stops the browser, too
		t.Errorf("the page was busy for %.0f ms, want less than three seconds", longest)
	}
	if most := 6 + int(time.Since(start)/time.Second); pages > most {
		t.Errorf("the page was updated %d times, want at most %d", pages, most)
	}
	d.click(link, "1 new")
	d.waitFor(fmt.Sprintf("document.querySelector('#queue > li').id === %q", last))
}

// TestLiveBesideStreams follows the org with 199 more clients: a change reaches the page and all of
// them. The benchmark measures how fast (make bench BENCH='-only live').
func TestLiveBesideStreams(t *testing.T) {
	d := newDesk(t)
	id := d.file("Retry failed uploads")
	d.follows("/proposals/" + id)
	const clients = 199
	got := make(chan error, clients)
	for range clients {
		lines, err := d.scout.stream(t, "/events?since=now&types=proposal.voted")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for lines.Scan() {
				if lines.Text() == "event: proposal.voted" {
					got <- nil
					return
				}
			}
			got <- fmt.Errorf("the stream ended: %w", lines.Err())
		}()
	}
	d.site.waitStreams(t, clients+1)
	d.scout.do(t, "POST /proposals/"+id+"/vote", object{"vote": "for"})
	d.sees("1 for")
	for range clients {
		if err := <-got; err != nil {
			t.Fatal(err)
		}
	}
}

// stream opens a stream below the org, and returns its lines.
func (a api) stream(t testing.TB, path string) (*bufio.Scanner, error) {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, a.s.base+"/api/v1/orgs/"+org+path, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+a.key)
	req.Header.Set("Accept", "text/event-stream")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	return bufio.NewScanner(res.Body), nil
}
