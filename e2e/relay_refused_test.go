package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/parley-dev/parley/sdk/client"
)

// refusal returns the text of a refused request.
func refusal(t *testing.T, err error) string {
	t.Helper()
	var e *client.Error
	if !errors.As(err, &e) || e.Status != http.StatusUnprocessableEntity {
		t.Fatalf("got %v, want 422", err)
	}
	return e.Error()
}

// TestRelayRefused: remotes that lie about themselves, lead elsewhere or back.
func TestRelayRefused(t *testing.T) {
	s := serve(t, engine{name: "sqlite"}.fresh(t), toLoopback...)
	w := &relayed{t: t, s: s}
	w.connect(s, s.key)
	const skills = `"name": "Liar", "description": "Lies.", "version": "1", "capabilities": {}, "skills": []`
	offers := func(url string) string {
		return fmt.Sprintf(`{%s, "supportedInterfaces": [{"url": %q, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]}`,
			skills, url)
	}
	for _, c := range []struct {
		name, card, want string
		status           int
	}{
		{"not JSON", `<html>`, "not valid", 200},
		{"no interface", `{` + skills + `}`, "offers no interface", 200},
		{"private network", offers("http://192.168.0.1/"), "must start with https", 200},
		{"private network, https", offers("https://10.1.2.3/"), "private or special network", 200},
		{"redirect", "", "redirects to", 302},
		{"too large", strings.Repeat(" ", 1<<20) + offers("http://127.0.0.1/"), "more than 1048576 bytes", 200},
		{"refused", "", "refused the credential", 401},
		{"another origin", offers("http://127.0.0.1:1/"), "another origin", 200},
	} {
		site := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Location", "http://169.254.169.254/latest")
			rw.WriteHeader(c.status)
			_, _ = rw.Write([]byte(c.card))
		}))
		relay := object{"url": site.URL}
		if !strings.HasPrefix(c.name, "private") {
			relay["credential"] = object{"type": "bearer", "token": "s3cret"}
		}
		_, err := w.tryRegister("liar", relay)
		if got := refusal(t, err); !strings.Contains(got, c.want) || strings.Contains(got, "s3cret") {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
		site.Close()
	}
	_, err := w.tryRegister("private", object{"url": "https://10.0.0.1/"})
	if got := refusal(t, err); !strings.Contains(got, "--outbound-allow") {
		t.Errorf("private network: got %q, want what an operator can do", got)
	}

	// A relay to this platform, and one through another platform.
	_, err = w.tryRegister("self", object{"url": s.base + "/a2a/echo"})
	if got := refusal(t, err); !strings.Contains(got, "relay.loop") {
		t.Errorf("relay to itself: got %q, want relay.loop", got)
	}
	other := serve(t, engine{name: "sqlite"}.fresh(t), toLoopback...)
	o := &relayed{t: t, s: other}
	o.connect(other, other.key)
	o.register("back", object{"url": s.base + "/a2a/echo", "credential": object{"type": "bearer", "token": s.key}})
	_, err = w.tryRegister("there", object{
		"url": other.base + "/a2a/back", "credential": object{"type": "bearer", "token": other.key},
	})
	if got := refusal(t, err); !strings.Contains(got, "relay.loop") {
		t.Errorf("relay through another platform: got %q, want relay.loop", got)
	}
	// What the other relay leads to works.
	o.agent = o.admin.Agent("back")
	o.send("hello", "hello")
	if done := o.until("hello", client.TaskCompleted); result(done) != "hello" {
		t.Errorf("result through a relay between platforms = %q, want hello", result(done))
	}
}

// TestRelayCredentials: each type of credential reaches the remote, and nothing else shows it.
func TestRelayCredentials(t *testing.T) {
	tokens := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if id, secret, _ := r.BasicAuth(); id != "us" || secret != "s3cret" || r.FormValue("scope") != "call" {
			http.Error(rw, `{"error":"invalid_client"}`, http.StatusUnauthorized)
			return
		}
		rw.Header().Set("Content-Type", "application/json")
		_, _ = rw.Write([]byte(`{"access_token":"issued","token_type":"Bearer","expires_in":3600}`))
	}))
	defer tokens.Close()
	r := newRemote(t, "JSONRPC", "1.0", true)
	w := newRelayed(t, engine{name: "sqlite"}.fresh(t), r)
	for id, c := range map[string]struct {
		credential   object
		header, want string
	}{
		"bearer": {object{"type": "bearer", "token": "s3cret"}, "Authorization", "Bearer s3cret"},
		"header": {object{"type": "header", "name": "X-API-Key", "value": "s3cret"}, "X-Api-Key", "s3cret"},
		"oauth": {object{
			"type": "oauth", "token_url": tokens.URL, "client_id": "us", "client_secret": "s3cret", "scopes": []string{"call"},
		}, "Authorization", "Bearer issued"},
	} {
		w.register(id, object{"url": r.url(), "credential": c.credential})
		w.agent = w.admin.Agent(id)
		w.send(id, "say "+id)
		w.until(id, client.TaskCompleted)
		r.mu.Lock()
		got := r.headers.Get(c.header)
		r.mu.Unlock()
		if got != c.want {
			t.Errorf("%s: %s = %q, want %q", id, c.header, got, c.want)
		}
		if shown := w.relayOf(id); shown.Credential == nil || shown.Credential.Type != id {
			t.Errorf("%s: shown as %+v, want its type", id, shown.Credential)
		}
	}
	// A credential does not follow the relay to another origin.
	_, err := w.admin.Agents.Update(t.Context(), "bearer", client.AgentPatch{Relay: &client.RelayTarget{URL: tokens.URL}})
	if got := refusal(t, err); !strings.Contains(got, "given again") {
		t.Errorf("another origin: got %q, want that the credential must be given again", got)
	}
}
