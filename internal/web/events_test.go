package web_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/parley-dev/parley/internal/event"
	"github.com/parley-dev/parley/internal/orgtest"
)

// happens adds an event to the log of acme.
func (o *office) happens(t event.Type, subject string, scope event.Scope, data string) event.Event {
	o.Helper()
	e := event.New("acme", t, orgtest.Now(), subject, "user:ada", scope, json.RawMessage(data))
	if err := o.Store.Events().Append(o.Context(), e); err != nil {
		o.Fatal(err)
	}
	return e
}

func TestEventsAreShownToThoseWhoMaySeeThem(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	all := o.happens(event.ProposalSubmitted, "proposal:prop-1", event.Members, `{"title":"Sleep more"}`)
	admins := o.happens(event.KeyCreated, "key:key-1", event.Admins, `{"name":"Deploys"}`)
	mine := o.happens(event.TaskInputRequired, "task:t-1", event.Only("user:bob"), `{"id":"t/1","agent":"scout"}`)
	draft := o.happens(event.ProposalDrafted, "proposal:prop-2", event.Draft("user:ada"), `{"title":"Half a thought"}`)
	o.ada.get("/events").want(http.StatusOK, all.ID, admins.ID, mine.ID, draft.ID,
		`user:ada submitted the proposal “Sleep more”`, `href="/orgs/acme/proposals/prop-1"`,
		`href="/orgs/acme/keys/key-1"`, `href="/orgs/acme/tasks/t-1"`).lacks(`href="/orgs/acme/agents/scout/tasks/`)
	o.bob.get("/events").want(http.StatusOK, all.ID, mine.ID, `href="/orgs/acme/agents/scout/tasks/t%2F1"`).
		lacks(admins.ID, draft.ID, "Deploys", "Half a thought", `href="/orgs/acme/tasks/t-1"`)
	o.eve.get("/events").want(http.StatusNotFound)
	o.eve.send(http.MethodGet, "/orgs/globex/events", nil).want(http.StatusOK).lacks(all.ID, "Sleep more")
	o.bob.get("/events?type=key.created").want(http.StatusOK, "Nothing matches").lacks(admins.ID)
}

func TestEventsAreFiltered(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	a := o.happens(event.ProposalSubmitted, "proposal:prop-1", event.Members, `{}`)
	b := o.happens(event.ProposalVoted, "proposal:prop-1", event.Members, `{}`)
	c := o.happens(event.AgentChanged, "agent:scout", event.Members, `{}`)
	o.bob.get("/events?type=proposal.*").want(http.StatusOK, a.ID, b.ID).lacks(c.ID)
	o.bob.get("/events?type=proposal.voted").want(http.StatusOK, b.ID, `<option value="proposal.voted" selected>`).
		lacks(a.ID, c.ID)
	d := o.happens(event.ProposalApproved, "proposal:prop-1", event.Members, `{}`)
	e := o.happens(event.ProposalRejected, "proposal:prop-1", event.Members, `{}`)
	o.bob.get("/events?type=proposal.decided").want(http.StatusOK, d.ID, e.ID,
		`<option value="proposal.decided" selected>Proposals: decided</option>`).lacks(a.ID, b.ID, c.ID)
	o.bob.get("/events?subject=agent:scout").want(http.StatusOK, c.ID).lacks(a.ID, b.ID)
	o.bob.get("/events?subject=agent:scout&type=proposal.*").want(http.StatusOK, "Nothing matches")
	for query, want := range map[string]string{
		"type=eaten.*": `id="err-type"`, "type=<script>": `id="err-type"`, "subject=nonsense": `id="err-subject"`,
		"cursor=x": "is not a cursor", "cursor=-1": "is not a cursor",
		"subject=" + url.QueryEscape("agent:"+strings.Repeat("x", 500)): `id="err-subject"`,
	} {
		o.bob.get("/events?"+query).want(http.StatusUnprocessableEntity, want).lacks("<script>")
	}
}

func TestEventsArePagedNewestFirst(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	for i := range 2 * event.DefaultLimit {
		o.happens(event.AgentChanged, "agent:scout", event.Members, fmt.Sprintf(`{"name":"n-%d-"}`, i))
	}
	path, seen := "/orgs/acme/events?type=agent.changed", []string{}
	names := regexp.MustCompile(`“n-(\d+)-”`)
	next := regexp.MustCompile(`rel="next" href="([^"]+)"`)
	for range 5 {
		res := o.bob.send(http.MethodGet, path, nil).want(http.StatusOK)
		if live := strings.Contains(res.body, `data-live="*"`); live != (len(seen) == 0) {
			t.Errorf("%s: live = %v, want only the first page", path, live)
		}
		for _, m := range names.FindAllStringSubmatch(res.body, -1) {
			seen = append(seen, m[1])
		}
		m := next.FindStringSubmatch(res.body)
		if m == nil {
			break
		}
		path = strings.ReplaceAll(m[1], "&amp;", "&")
	}
	if len(seen) != 2*event.DefaultLimit || seen[0] != "99" || seen[99] != "0" {
		t.Errorf("saw %d events, %v, want 100 from 99 to 0", len(seen), seen)
	}
}

func TestDataOfEventsIsHarmless(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.happens(event.AgentChanged, "agent:scout", event.Members,
		`{"name":"<script>alert(1)</script>","note":"`+"\u202egnp.exe\U000e0001"+`\u001b"}`)
	o.happens(event.AgentChanged, "agent:scout", event.Members, `{"name":"`+strings.Repeat("W", 50_000)+`"}`)
	res := o.bob.get("/events").want(http.StatusOK, "&lt;script&gt;", `\u202egnp.exe\udb40\udc01\u001b`,
		"The data goes on").lacks("<script>alert", "\u202e", "\U000e0001", strings.Repeat("W", 5000))
	if len(res.body) > 64<<10 {
		t.Errorf("the page has %d bytes, want a bounded size", len(res.body))
	}
}
