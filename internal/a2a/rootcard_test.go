package a2a

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/identity"
)

const rootPath = "/.well-known/agent-card.json"

// rootSkills returns the ids of the skills of the card at the root.
func (w *world) rootSkills(secret string, headers ...string) []string {
	w.tb.Helper()
	a := w.do(secret, "GET", rootPath, "", headers...)
	a.status(200)
	var card struct {
		Name   string
		Skills []struct{ ID, Description string }
	}
	if err := json.Unmarshal([]byte(a.Body), &card); err != nil {
		w.tb.Fatal(err)
	}
	ids := []string{}
	for _, s := range card.Skills {
		ids = append(ids, s.ID)
		url := "\nhttp://example.com/a2a/" + s.ID
		if card.Name == "Parley" && s.ID != "discovery" && !strings.HasSuffix(s.Description, url) {
			w.tb.Errorf("description of the skill %s = %q, want the agent's URL at the end", s.ID, s.Description)
		}
	}
	return ids
}

func TestTheCardAtTheRoot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.orgs.Agent(agent.Agent{ID: "open", Org: "globex", Name: "Open", Public: true})
	w.orgs.Agent(agent.Agent{ID: "hidden", Org: "globex", Name: "Hidden"})
	for name, c := range map[string]struct {
		key  string
		want []string
	}{
		"nobody in particular": {"", []string{"echo", "open"}},
		"a member":             {w.caller("user:ada"), []string{"bot", "echo", "other", "open"}},
		"another org":          {w.key("globex", "user:eve", "svc:a2a:write"), []string{"hidden", "open", "echo"}},
		"two agents": {
			w.key("acme", "service:two", "svc:a2a:write", "agent:bot", "agent:other"),
			[]string{"bot", "echo", "other", "open"},
		},
		"no right":                {w.key("acme", "service:none", "svc:tasks:read"), []string{"echo", "open"}},
		"one agent":               {w.key("acme", "service:one", "svc:a2a:write", "agent:bot"), []string{"things"}},
		"one agent, no right":     {w.key("acme", "service:few", "svc:tasks:read", "agent:bot"), []string{"echo", "open"}},
		"one agent of another":    {w.key("acme", "service:far", "svc:a2a:write", "agent:open"), []string{"general"}},
		"one that was taken away": {w.goneAgent(), []string{"echo", "open"}},
	} {
		if diff := cmp.Diff(c.want, w.rootSkills(c.key)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	a := w.do("", "GET", rootPath, "")
	if h := a.Header; h.Get("Cache-Control") != "public, max-age=5" ||
		!strings.Contains(h.Get("Vary"), "Authorization") || h.Get("Last-Modified") == "" {
		t.Errorf("headers = %v, want those of a public response", h)
	}
	h := w.do(w.caller("user:ada"), "GET", rootPath, "").Header
	if h.Get("Cache-Control") != "private, no-cache" || !strings.Contains(h.Get("Vary"), "Authorization") {
		t.Errorf("headers = %v, want those of a private response", h)
	}
	w.do("", "GET", rootPath, "", "If-None-Match", a.Header.Get("ETag")).status(304)
	w.do("parley_bad", "GET", rootPath, "").status(401)
	w.do("", "GET", rootPath, "", "A2A-Version", "3.0").status(400)
	w.do("", "GET", rootPath, "", "A2A-Version", "1.2").contains(`"supportedInterfaces"`)
	golden(t, "root_card.json", indent(t, a.Body)+"\n")
	golden(t, "v1/root_card.json", indent(t, w.do("", "GET", rootPath, "", "A2A-Version", "1.0").Body)+"\n")
	// The platform itself accepts no tasks; its error explains where to send them.
	for _, path := range []string{"/a2a", "/a2a/"} {
		w.do(w.caller("user:ada"), "POST", path, envelope("SendMessage", "{}")).fails(404, codeInvalidRequest)
	}
}

// If the key selects the agent, no cache may serve the card to others.
func TestACardThatTheKeyChoosesIsPrivate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one := w.key("acme", "service:one", "svc:a2a:write", "agent:echo")
	for path, want := range map[string]string{
		rootPath:                           "private, no-cache",
		"/a2a/.well-known/agent-card.json": "private, no-cache",
		echoCard:                           "public, max-age=60",
		"/a2a/echo":                        "public, max-age=60",
	} {
		a := w.do(one, "GET", path, "")
		a.status(200)
		a.contains(`"Echo"`)
		if got := a.Header.Get("Cache-Control"); got != want {
			t.Errorf("%s: Cache-Control = %q, want %q", path, got, want)
		}
	}
}

// After a failure, no other card may be served instead.
func TestTheCardAtTheRootReportsFaults(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one := w.key("acme", "service:one", "svc:a2a:write", "agent:bot")
	w.lost.Store(true)
	w.do(one, "GET", rootPath, "").status(503)
	w.lost.Store(false)
	w.do(one, "GET", rootPath, "").status(200)
}

// goneAgent returns a key for an agent that was disabled.
func (w *world) goneAgent() string {
	w.tb.Helper()
	w.orgs.Agent(agent.Agent{ID: "gone", Org: "acme", Name: "Gone"})
	key := w.key("acme", "service:late", "svc:a2a:write", identity.Scope("agent:gone"))
	yes := true
	w.orgs.EditAgent("acme", "gone", agentEdit(nil, &yes))
	return key
}

// A card has no pages: it lists as many agents as a page has, and mentions that there are more.
func TestTheCardAtTheRootIsBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ *httpx.Options, o *Options) { o.CardAgents = 3 })
	for i := range 5 {
		w.orgs.Agent(agent.Agent{ID: fmt.Sprint("g", i), Org: "globex", Name: "G", Public: true})
	}
	if got := w.rootSkills(""); len(got) != 3 {
		t.Errorf("skills = %v, want 3", got)
	}
	w.do("", "GET", rootPath, "").contains(
		"more agents than this card lists", "http://example.com/.well-known/agent.json")

	entry := func(size int) cardEntry { return cardEntry{id: "x", json: make([]byte, size)} }
	for name, c := range map[string]struct{ entries, size, want int }{
		"few":            {3, 100, 3},
		"as many as fit": {maxRootAgents, 10, maxRootAgents},
		"too many":       {maxRootAgents + 1, 10, maxRootAgents},
		"too large":      {10, maxRootBytes / 4, 4},
		"one large":      {2, maxRootBytes + 1, 1},
	} {
		var part cardPart
		for range c.entries {
			part.add(entry(c.size))
		}
		if got := part.bounded(); len(got.entries) != c.want || (got.next != "") != (c.want < c.entries) {
			t.Errorf("%s: agents = %d, next %q, want %d", name, len(got.entries), got.next, c.want)
		}
	}
}
