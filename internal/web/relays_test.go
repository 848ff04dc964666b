package web_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/orgtest"
	"github.com/parley-dev/parley/internal/outbound"
	"github.com/parley-dev/parley/internal/relay"
	"github.com/parley-dev/parley/internal/secret"
)

// newRelays returns the service of relays. It may call this machine. Nothing runs the relays.
func newRelays(w *orgtest.World, keys *secret.Keyring) *relay.Service {
	w.Helper()
	guard, err := outbound.New(outbound.Options{Allow: []string{"127.0.0.1"}, Flag: "--outbound-allow", NoSharing: true})
	if err != nil {
		w.Fatal(err)
	}
	engine := relay.New(relay.Options{
		Store: w.Store.Relays(), Workers: w.Tasks.Workers, Agents: agent.NewOperator(w.Agents), Keys: keys, Guard: guard,
		Platform: platform, Version: "test", Now: orgtest.Now, Log: slog.New(slog.DiscardHandler),
	})
	return relay.NewService(engine, w.Agents, func(string, string) {})
}

// newRelayOffice returns an office whose server can store credentials.
func newRelayOffice(t *testing.T) *office {
	t.Helper()
	o := newOffice(t)
	if err := o.keys.Make(); err != nil {
		t.Fatal(err)
	}
	return o
}

// platform is the id of the platform under test.
const platform = "p-01jd000000000000000000000"

// remote serves the card of a remote agent.
type remote struct {
	*httptest.Server
	platform atomic.Pointer[string] // that the card names; nil: none
	asked    atomic.Pointer[string] // Authorization header of the last request
	status   atomic.Int64           // of responses; 0: the card
}

func newRemote(tb testing.TB) *remote {
	tb.Helper()
	r := &remote{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		said := req.Header.Get("Authorization")
		r.asked.Store(&said)
		if code := r.status.Load(); code != 0 {
			w.WriteHeader(int(code))
			return
		}
		card := map[string]any{
			"name": "Tariffs <b>", "description": "Knows customs & duties.", "version": "2.1.0",
			"supportedInterfaces": []any{
				map[string]any{"url": r.URL + "/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
			},
			"capabilities":      map[string]any{"streaming": true},
			"defaultInputModes": []string{"text/plain"}, "defaultOutputModes": []string{"text/plain"},
			"skills": []any{map[string]any{
				"id": "lookup", "name": "Look up <i>", "description": "Finds a tariff.", "tags": []string{"customs"},
			}},
		}
		if id := r.platform.Load(); id != nil {
			card["capabilities"] = map[string]any{"extensions": []any{map[string]any{
				"uri": relay.Extension, "params": map[string]any{"platform": *id},
			}}}
		}
		_ = json.NewEncoder(w).Encode(card) // an error fails the client
	}))
	tb.Cleanup(r.Close)
	return r
}

// hidden is the secret of credentials in these tests. No page may contain it.
const hidden = "s3cret-of-the-remote"

// An admin registers a relay, sees where it leads, reads its card, and changes its credential.
func TestAdminsRegisterRelays(t *testing.T) {
	t.Parallel()
	o, far := newRelayOffice(t), newRemote(t)
	o.ada.get("/agents/new").want(http.StatusOK, "kind=relay").lacks(`name="url"`)
	o.ada.get("/agents/new?kind=relay").want(http.StatusOK, `name="url"`, `name="bearer_token"`).lacks(`id="skills"`)
	page := o.ada.post("/agents", "kind", "relay", "id", "tariffs", "url", far.URL, "credential", "bearer", "bearer_token", hidden).
		leads(o.ada, "is registered", far.URL, "Tariffs &lt;b&gt;", "2.1.0", "JSONRPC", ">up<", "bearer token, set", "Look up &lt;i&gt;",
			"Finds a tariff.", "Knows customs &amp; duties.", "Read the card now", `value="keep" checked`).
		lacks(hidden, "Tariffs <b>", "Look up <i>", "Connect a worker")
	if got := *far.asked.Load(); got != "Bearer "+hidden {
		t.Errorf("the remote got %q, want the token", got)
	}
	if strings.Contains(page.body, `id="skills"`) {
		t.Error("the skills of a relay can be edited, want them to be those of the remote agent")
	}
	o.ada.get("/agents").want(http.StatusOK, "· relay")
	o.ada.post("/agents/tariffs/refresh").leads(o.ada, "The card of the remote agent was read.")

	// What people see while the remote is down.
	far.status.Store(http.StatusServiceUnavailable)
	o.ada.post("/agents/tariffs/refresh").leads(o.ada, "The card was not read: the remote agent responded with HTTP 503")
	far.status.Store(0)

	o.ada.post("/agents/tariffs/remote", "url", far.URL, "credential", "none").leads(o.ada, "was changed", "<dd>none</dd>").
		lacks(`value="keep"`)
	if got := *far.asked.Load(); got != "" {
		t.Errorf("the remote got %q, want no credential", got)
	}
	o.ada.post("/agents/tariffs/remote", "url", far.URL, "credential", "header", "header_name", "X-API-Key", "header_value", hidden).
		leads(o.ada, "API key in a header, set").lacks(hidden)

	// The entry of a relay is changed without its skills.
	o.ada.post("/agents/tariffs", "name", "Duties", "description", "", "visibility", "private").leads(o.ada, "Duties", "customs")
}

// Errors are shown at their fields, with what was entered and without the secret.
func TestErrorsOfRelayForms(t *testing.T) {
	t.Parallel()
	o, far, other := newRelayOffice(t), newRemote(t), newRemote(t)
	self := platform
	other.platform.Store(&self)
	form := func(pairs ...string) *seen {
		return o.ada.post("/agents", append([]string{"kind", "relay", "id", "tariffs"}, pairs...)...)
	}
	for _, c := range []struct {
		name, field, text string
		form              []string
	}{
		{"no URL", "url", "Is required.", []string{"url", "", "credential", "none"}},
		{"no agent", "url", "The remote agent cannot be reached", []string{"url", "http://127.0.0.1:1/x", "credential", "none"}},
		{"private network", "url", "--outbound-allow", []string{"url", "http://10.1.2.3/x", "credential", "none"}},
		{"loop", "url", "Leads back to this platform", []string{"url", other.URL, "credential", "none"}},
		{"no token", "bearer_token", "Must have 1 to", []string{"url", far.URL, "credential", "bearer"}},
		{"own header", "header_name", "Must be the name of a header", []string{
			"url", far.URL, "credential", "header", "header_name", "Content-Type", "header_value", hidden,
		}},
		{"bad scope", "oauth_scopes", "Is not an OAuth scope", []string{
			"url", far.URL, "credential", "oauth", "token_url", far.URL + "/token", "client_id", "c", "client_secret", hidden,
			"oauth_scopes", `a b"`,
		}},
		{"unknown type", "credential", "Must be one of", []string{"url", far.URL, "credential", "magic", "bearer_token", hidden}},
	} {
		res := form(c.form...).want(http.StatusUnprocessableEntity, `id="err-`+c.field+`"`, c.text, `value="tariffs"`).lacks(hidden)
		for i := 0; i < len(c.form); i += 2 {
			if name := c.form[i]; name == "url" || name == "header_name" || name == "token_url" {
				res.want(http.StatusUnprocessableEntity, `value="`+c.form[i+1]+`"`)
			}
		}
	}
	form("url", `http://127.0.0.1:1/"><script>alert(1)</script>`, "credential", "none").
		want(http.StatusUnprocessableEntity).lacks("<script>alert")
	o.ada.get("/agents/tariffs").want(http.StatusNotFound)

	// A credential is not sent to another origin.
	form("url", far.URL, "credential", "bearer", "bearer_token", hidden).want(http.StatusSeeOther)
	third := newRemote(t)
	o.ada.post("/agents/tariffs/remote", "url", third.URL, "credential", "keep").
		want(http.StatusUnprocessableEntity, `id="err-credential"`, "Belongs to another origin", `value="`+third.URL+`"`, `id="change-remote" open`)
	if third.asked.Load() != nil {
		t.Error("the other origin was asked, want nothing to be sent")
	}
	// An agent with workers does not become a relay.
	o.ada.post("/agents/scout/remote", "url", far.URL, "credential", "none").
		want(http.StatusUnprocessableEntity, "register a new agent")
}

// Without a key file no credential is stored; the page says so at the field.
func TestARelayWithACredentialNeedsAKey(t *testing.T) {
	t.Parallel()
	o, far := newOffice(t), newRemote(t)
	o.ada.post("/agents", "kind", "relay", "id", "tariffs", "url", far.URL, "credential", "bearer", "bearer_token", hidden).
		want(http.StatusUnprocessableEntity, `id="err-credential"`, "Cannot be stored").lacks(hidden)
}

// Only admins of the org set up relays, and only with forms of this site.
func TestWhoManagesRelays(t *testing.T) {
	t.Parallel()
	o, far := newOffice(t), newRemote(t)
	o.ada.post("/agents", "kind", "relay", "id", "tariffs", "url", far.URL, "credential", "none").want(http.StatusSeeOther)
	o.bob.get("/agents/tariffs").want(http.StatusOK, "Remote agent", far.URL).lacks("Read the card now", "Change the remote agent")
	for _, who := range []*visitor{o.bob, o.eve} {
		want := http.StatusForbidden
		if who == o.eve {
			want = http.StatusNotFound
		}
		asked := far.asked.Swap(nil)
		who.post("/agents", "kind", "relay", "id", "mine", "url", far.URL, "credential", "none").want(want)
		who.post("/agents/tariffs/remote", "url", far.URL+"/x", "credential", "none").want(want)
		who.post("/agents/tariffs/refresh").want(want)
		if far.asked.Load() != nil {
			t.Error("the remote was asked for a member who may not, want no request")
		}
		far.asked.Store(asked)
	}
	for _, path := range []string{"/agents", "/agents/tariffs/remote", "/agents/tariffs/refresh"} {
		r := newForm(path, url.Values{"kind": {"relay"}, "id": {"mine"}, "url": {far.URL}, "credential": {"none"}})
		r.AddCookie(o.ada.cookie)
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		if code := serve(o, r); code != http.StatusForbidden {
			t.Errorf("%s from another site: got %d, want 403", path, code)
		}
	}
	// A form that is sent after the session ended is shown again without its secret.
	r := newForm("/agents", url.Values{"kind": {"relay"}, "id": {"mine"}, "url": {far.URL}, "credential": {"bearer"}, "bearer_token": {hidden}})
	w := httptest.NewRecorder()
	o.handler.ServeHTTP(w, r)
	if body := w.Body.String(); w.Code != http.StatusUnauthorized || !strings.Contains(body, far.URL) || strings.Contains(body, hidden) {
		t.Errorf("got %d %s, want the form without the secret", w.Code, body)
	}
}

// The form of an agent sets its default policy and its quota, and the page shows them.
func TestPolicyAndQuotaOfAnAgent(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	fields := []string{"name", "Priced", "description", "", "skills", "", "visibility", "public"}
	o.ada.post("/agents", append(fields, "id", "priced", "timeout", "1h30m", "attempts", "5", "backoff", "10s", "on", "failed",
		"quota", "7", "per", "hour")...).want(http.StatusSeeOther)
	o.ada.get("/agents/priced").want(http.StatusOK, "1h30m after it was sent", "up to 5 if failed, first wait 10s",
		"7 tasks per hour", `value="1h30m"`, `<option value="hour" selected>`, `id="on-failed" name="on" value="failed" checked`)
	for _, c := range [][3]string{
		{"timeout", "soon", "Must be a length of time from 1s to 720h"},
		{"timeout", "721h", "Must be a length of time"},
		{"timeout", `"><wbr>`, "Must be a length of time"},
		{"attempts", "11", "Must be a number from 1 to 10"},
		{"backoff", "2h", "Must be a length of time from 0s to 1h"},
		{"quota", "0", "Must be a number from 1 to"},
	} {
		form := append(fields, "timeout", "", "attempts", "", "backoff", "", "quota", "", "per", "day")
		for i := 0; i < len(form); i += 2 {
			if form[i] == c[0] {
				form[i+1] = c[1]
			}
		}
		o.ada.post("/agents/priced", form...).want(http.StatusUnprocessableEntity, `id="err-`+c[0]+`"`, c[2]).lacks(`"><wbr>`)
	}
	o.bob.post("/agents/priced", append(fields, "timeout", "1s", "quota", "1")...).want(http.StatusForbidden)
	// A form without these fields leaves them; an empty one removes them.
	o.ada.post("/agents/priced", fields...).leads(o.ada, "1h30m after it was sent", "7 tasks per hour")
	o.ada.post("/agents/priced", append(fields, "timeout", "", "attempts", "", "backoff", "", "quota", "", "per", "day")...).
		leads(o.ada, "up to 3 if lost").lacks("after it was sent", "tasks per hour")
}
