package browser

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// relayed is a relay of the seed.
const relayed = "tariffs"

// remoteAgent returns a server with the card of a remote agent; it lives as long as the tests.
var remoteAgent = sync.OnceValue(func() *httptest.Server {
	var s *httptest.Server
	s = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(object{ // an error fails the request, which tests notice
			"name": "Tariffs", "description": "Knows customs tariffs and their exceptions.", "version": "2.1.0",
			"supportedInterfaces": []object{{"url": s.URL + "/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}},
			"capabilities":        object{"streaming": true},
			"defaultInputModes":   []string{"text/plain"}, "defaultOutputModes": []string{"text/plain"},
			"skills": []object{
				{"id": "lookup", "name": "Look up a tariff", "description": "Finds the tariff of goods.", "tags": []string{"customs"}},
				{"id": "explain", "name": "Explain", "description": "Says why a duty applies.", "tags": []string{"customs", "law"}},
			},
		})
	}))
	atEnd(s.Close)
	return s
})

// TestRelayStory registers a relay, corrects a mistake, and reads its card again, with and without
// scripts. The credential is never in a page.
func TestRelayStory(t *testing.T) {
	t.Run("with scripts", func(t *testing.T) { begin(t); tellRelay(t, newSite(t)) })
	t.Run("without scripts", func(t *testing.T) { begin(t); tellRelay(t, newSite(t), noScripts) })
}

func tellRelay(t *testing.T, s *site, how ...option) {
	admin, err := s.enter("admin", true)
	if err != nil {
		t.Fatal(err)
	}
	const token = "token-of-the-remote"
	w := s.tab(t, admin, how...)
	hidden := func() {
		t.Helper()
		if page := js[string](w, "document.documentElement.outerHTML"); strings.Contains(page, token) {
			t.Errorf("%s has the credential in its HTML, want it in no page", w.path())
		}
	}
	w.openPage("/agents/new")
	w.click(link, "Relay A remote A2A agent does its work.")
	w.fill("URL of the remote agent", "http://127.0.0.1:1/nothing")
	w.fill("Id", relayed)
	w.press(radio, "Bearer token")
	w.fill("Token", token)
	w.click(button, "Register")
	w.sees("The remote agent cannot be reached")
	hidden()
	w.fill("URL of the remote agent", remoteAgent().URL)
	w.fill("Token", token) // the page does not repeat it
	w.click(button, "Register")
	w.sees("Tariffs is registered", "Remote agent", "up", "bearer token, set", "Look up a tariff")
	hidden()
	w.click(button, "Read the card now")
	w.sees("The card of the remote agent was read.")

	w.press(summary, "Change the remote agent…")
	w.press(radio, "None")
	w.click(button, "Change the remote agent")
	w.sees("The remote agent was changed", "none")

	w.openPage("/catalogue?q=tariff")
	w.click(link, "Tariffs")
	w.sees("Remote agent")
}
