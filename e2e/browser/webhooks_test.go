package browser

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"sync"
	"testing"
)

// answered is what the receiver of webhooks responds with.
const answered = "taken <b>by</b> \u202ethe receiver"

// receiver returns a server that accepts all events; it lives as long as the tests.
var receiver = sync.OnceValue(func() *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusAccepted)
		_, _ = fmt.Fprint(w, answered) // an error fails the delivery, which tests notice
	}))
	atEnd(s.Close)
	return s
})

var whsec = regexp.MustCompile(`whsec_[A-Za-z0-9+/=]+`)

// TestWebhookStory takes a webhook from its creation to its end, with and without scripts.
func TestWebhookStory(t *testing.T) {
	t.Run("with scripts", func(t *testing.T) { begin(t); tellWebhook(t, newSite(t)) })
	t.Run("without scripts", func(t *testing.T) { begin(t); tellWebhook(t, newSite(t), noScripts) })
}

func tellWebhook(t *testing.T, s *site, how ...option) {
	admin, err := s.enter("admin", true)
	if err != nil {
		t.Fatal(err)
	}
	w := s.tab(t, admin, how...)
	w.openPage("/webhooks")
	w.click(link, "Create the first webhook")
	w.fill("URL", receiver().URL+"/hook")
	w.fill("Description", "Tickets")
	w.click(button, "Create")
	w.sees("is required")
	w.fill("Your password", password)
	w.click(button, "Create")
	w.sees("Copy the secret now")
	first := whsec.FindString(w.text())
	if first == "" {
		t.Fatal("the page of the new webhook shows no secret")
	}

	w.openPage("/webhooks")
	w.click(link, "Tickets")
	w.click(button, "Send a test event")
	w.sees("The receiver accepted the event with status 202", "webhook.ping", "taken <b>by</b>")
	w.misses(first)

	// An event happens and is delivered; it can be sent again.
	s.api(s.key).do(t, "POST /agents", object{"id": "scout", "name": "Scout"})
	if err := eventually(func() error {
		w.reload()
		if !w.has(link, "agent.registered") {
			return errNothing
		}
		return nil
	}); err != nil {
		t.Fatal("the delivery of the event does not show")
	}
	page := w.path()
	w.click(link, "agent.registered")
	w.sees("user:admin registered the agent “Scout”")
	w.open(page)
	w.click(button, "Send again: agent.registered…")
	w.sees("sent again")

	w.press(summary, "Replace the secret…")
	w.fill("Your password", password)
	w.click(button, "Replace the secret")
	w.sees("Copy the secret now", "Old secret")
	if next := whsec.FindString(w.text()); next == "" || next == first {
		t.Errorf("the new secret is %q, want another than %q", next, first)
	}

	w.click(button, "Pause")
	w.sees("is paused")
	w.press(summary, "Delete…")
	w.click(button, "Delete now")
	w.sees("was deleted", "No webhooks yet")
}
