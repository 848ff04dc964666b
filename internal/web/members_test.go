package web_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/orgtest"
)

var linkText = regexp.MustCompile(`http://parley\.test/(join|setup)/[A-Za-z0-9_-]{43}`)

func (o *office) member(t *testing.T, ref string) identity.Member {
	t.Helper()
	p, err := identity.ParseRef("acme", ref)
	if err != nil {
		t.Fatal(err)
	}
	m, err := o.Store.Identity().Member(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// An agent with the id "new" has a page of its own, which is not the form for a new agent.
func TestThePageOfAnAgentIsLinked(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	for id, page := range map[string]string{"new": "~new", "old": "old"} {
		o.Agent(agent.Agent{ID: id, Org: "acme", Name: id})
		o.ada.get("/members/agent:"+id).want(http.StatusOK, `href="/orgs/acme/agents/`+page+`"`)
	}
}

func TestAnInvitationIsShownOnce(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.ada.get("/members/invitations").want(http.StatusOK, "No invitations yet", `value="7" selected`)
	fields := []string{"user", "grace", "name", "Grace", "days", "7", "admin", "yes"}
	made := o.ada.post("/members/invitations", fields...).
		want(http.StatusCreated, "Copy the link now", "an admin of the org", "user:grace")
	value := linkText.FindString(made.body)
	if value == "" || made.header.Get("Cache-Control") != "no-store" {
		t.Fatalf("got %v %v, want value not empty, Cache-Control no-store", value, made.header)
	}
	o.ada.again("/members/invitations", fields...).want(http.StatusCreated, "This form was already sent").lacks(value)
	o.ada.send(http.MethodGet, strings.TrimPrefix(value, "http://parley.test"), nil).want(http.StatusOK, "grace")
	page := o.ada.get("/members/invitations").want(http.StatusOK, "user:grace", "pending", "admin").lacks(value)
	id := regexp.MustCompile(`invitations/(inv-[0-9a-z]+)/revoke`).FindStringSubmatch(page.body)[1]
	o.ada.post("/members/invitations/"+id+"/revoke").leads(o.ada, "was revoked", "revoked</span>").lacks("pending")
	o.ada.again("/members/invitations/"+id+"/revoke").leads(o.ada, "was revoked")
	o.ada.send(http.MethodGet, strings.TrimPrefix(value, "http://parley.test"), nil).want(http.StatusNotFound)
	o.ada.post("/members/invitations/x/revoke").want(http.StatusNotFound)

	o.ada.post("/members/invitations", "user", "Not An Id", "days", "7").
		want(http.StatusUnprocessableEntity, `id="err-user"`, `value="Not An Id"`)
	o.ada.post("/members/invitations", "user", "bob", "days", "7").want(http.StatusConflict, "bob")
	o.ada.post("/members/invitations", "user", "new", "days", "400").want(http.StatusUnprocessableEntity, `id="err-days"`)
	o.ada.get("/members/invitations?cursor=x").want(http.StatusUnprocessableEntity)
}

func TestMembersAreListedByKind(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.ada.get("/members").want(http.StatusOK, `id="user:ada"`, `id="user:bob"`, "(you)").
		lacks(`id="agent:scout"`, "user:eve")
	o.ada.get("/members").want(http.StatusOK, "Last seen").lacks(">never<") // both have signed in
	o.ada.get("/members?kind=agent").want(http.StatusOK, `id="agent:scout"`).lacks(`id="user:ada"`, "Last seen")
	o.ada.get("/members?kind=service").want(http.StatusOK, "No services yet", "Create a service")
	o.ada.get("/members?state=disabled").want(http.StatusOK, "No disabled members")
	for _, bad := range []string{"?kind=x", "?state=x", "?cursor=x"} {
		o.ada.get("/members" + bad).want(http.StatusUnprocessableEntity)
	}
	for _, bad := range []string{"/members/nobody", "/members/user:nobody", "/members/user:eve"} {
		o.ada.get(bad).want(http.StatusNotFound)
	}
}

func TestAServiceIsCreated(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	fields := []string{"kind", "service", "id", "crm", "name", "CRM"}
	o.ada.post("/members", fields...).leads(o.ada, "The service was created.", "CRM",
		"preset=calls&amp;principal=service%3Acrm")
	o.ada.again("/members", fields...).leads(o.ada, "CRM")
	o.ada.post("/members", fields...).want(http.StatusConflict, `value="crm"`)
	o.ada.post("/members", "kind", "service", "id", "C R M").want(http.StatusUnprocessableEntity, `id="err-id"`)
	o.ada.post("/members", "kind", "agent", "id", "x").want(http.StatusBadRequest)
	o.ada.post("/members", "kind", "user", "id", "carl", "admin", "yes").leads(o.ada, "Make a link below", "admin")
	if m := o.member(t, "user:carl"); !m.Admin {
		t.Errorf("got %+v, want Admin true", m)
	}
	o.ada.get("/keys/new?preset=calls&principal=service:crm").want(http.StatusOK, `value="service:crm" selected`)
}

func TestAMemberIsChanged(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	bob := "/members/user:bob"
	o.ada.get(bob).want(http.StatusOK, "Make an admin", "Disable now", "Make the link").lacks("New key")
	o.ada.post(bob, "change", "name", "name", "Robert").leads(o.ada, "The name was changed.", "Robert")
	o.ada.post(bob, "change", "name", "name", " ").want(http.StatusUnprocessableEntity, `id="err-name"`)
	o.ada.post(bob, "change", "x").want(http.StatusBadRequest)
	o.ada.post(bob, "change", "make-admin").leads(o.ada, "Robert is an admin now.", "Take the admin role")
	admin := o.key("user:bob", identity.Admin)
	o.ada.get(bob).want(http.StatusOK, "1 key with admin rights is revoked", admin.Prefix)
	o.ada.post(bob, "change", "take-admin").leads(o.ada, "is no longer an admin")
	if k, err := o.Store.Identity().Key(t.Context(), "acme", admin.ID); err != nil || k.RevokedAt.IsZero() {
		t.Errorf("got %+v %v, want the admin key revoked", k, err)
	}
	o.ada.post(bob, "change", "disable").leads(o.ada, "is disabled", "Enable</button>")
	o.ada.get("/members?state=disabled").want(http.StatusOK, `id="user:bob"`)
	if res := o.bob.get("/followups"); res.code != http.StatusSeeOther {
		t.Errorf("a disabled member is still signed in: got %v, want res.code %v", res.code, http.StatusSeeOther)
	}
	o.ada.post(bob, "change", "enable").leads(o.ada, "is enabled again")
	o.ada.post("/members/agent:scout", "change", "make-admin").want(http.StatusUnprocessableEntity)
	o.ada.get("/members/agent:scout").want(http.StatusOK, "preset=worker&amp;principal=agent%3Ascout").
		lacks("Make an admin", "Make the link")
}

func TestTheLastAdminStays(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	ada := "/members/user:ada"
	o.ada.get(ada).want(http.StatusOK, "You cannot disable yourself", "The last admin of an org stays.")
	o.ada.post(ada, "change", "take-admin").want(http.StatusConflict,
		"is the last enabled admin of the org; make another user an admin first")
	o.ada.post(ada, "change", "disable").want(http.StatusConflict, "cannot disable itself")
	if !o.member(t, "user:ada").Admin {
		t.Error("the org has no admin")
	}
	o.ada.get("/audit?action=member.update").want(http.StatusOK, "tried to change a member", "identity.last_admin")
}

func TestALinkToSetAPasswordIsShownOnce(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	made := o.ada.post("/members/user:bob/link", "hours", "24").want(http.StatusCreated, "Copy the link now", "user:bob")
	value := linkText.FindString(made.body)
	if made.header.Get("Cache-Control") != "no-store" || value == "" {
		t.Fatalf("got %v %v, want Cache-Control no-store, value not empty", made.header, made.main())
	}
	o.ada.again("/members/user:bob/link", "hours", "24").want(http.StatusCreated, "This form was already sent").
		lacks(value)
	o.ada.send(http.MethodGet, strings.TrimPrefix(value, "http://parley.test"), nil).want(http.StatusOK)
	o.ada.post("/members/user:bob/link", "hours", "400").want(http.StatusUnprocessableEntity, `id="err-hours"`)
	o.ada.get("/members/user:bob").want(http.StatusOK).lacks(value)
	o.ada.post("/members/agent:scout/link", "hours", "1").want(http.StatusConflict, "make a key for it instead")
	o.ada.post("/members/user:nobody/link").want(http.StatusNotFound)
}

// A session cannot open the card of a private agent, so its page has no link to it.
func TestOnlyThePageOfAPublicAgentLinksToItsCard(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.Agent(agent.Agent{ID: "open", Org: "acme", Name: "Open", Public: true})
	o.ada.get("/agents/open").want(http.StatusOK, `href="/a2a/open/.well-known/agent-card.json"`)
	o.ada.get("/agents/scout").want(http.StatusOK, "needs an API key").lacks("agent-card.json")
}

// The list shows when a worker of each agent last polled, to members who may manage agents.
func TestTheListOfAgentsSaysWhenAWorkerWasSeen(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.Agent(agent.Agent{ID: "idle", Org: "acme", Name: "Idle"})
	at := orgtest.Now().Add(-3 * time.Hour).Truncate(time.Second)
	w := dispatch.Worker{Org: "acme", Agent: "scout", Name: "w", Capacity: 1, SeenAt: at}
	if err := o.Store.Workers().See(t.Context(), w, 0); err != nil {
		t.Fatal(err)
	}
	seen := "<time datetime=\"" + at.UTC().Format(time.RFC3339)
	page := o.ada.get("/agents").want(http.StatusOK, seen, "Connect a worker")
	if row := between(page.body, `id="agent-idle"`, "</tr>"); !strings.Contains(row, "Connect a worker") {
		t.Errorf("got %v, want containing Connect a worker", row)
	}
	if row := between(page.body, `id="agent-scout"`, "</tr>"); !strings.Contains(row, seen) {
		t.Errorf("got %s, want containing %s", row, seen)
	}
	o.ada.get("/agents?q=idle").want(http.StatusOK, "Connect a worker").lacks(seen)
	o.bob.get("/agents").want(http.StatusOK, "Scout").lacks("Last seen", "Connect a worker")
}

// A person is erased after the id was typed, also without scripts.
func TestAPersonIsErased(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.ada.get("/members/user:ada").want(http.StatusOK).lacks("Erase for good") // oneself
	o.ada.get("/members/agent:scout").want(http.StatusOK).lacks("Erase for good")
	o.ada.get("/members/user:bob").want(http.StatusOK, "Erase for good", `action="/orgs/acme/members/user:bob/erase"`)
	o.ada.post("/members/user:bob/erase", "confirm", "bobby").
		want(http.StatusUnprocessableEntity, `id="err-confirm"`, "Must be bob", `<details id="erase" open>`)
	o.ada.post("/members/user:bob/erase", "confirm", "bob").leads(o.ada, "The person was erased", "Former member ")
	o.ada.get("/members/user:bob").want(http.StatusNotFound)
	o.ada.get("/members").want(http.StatusOK, "Former member ").lacks("user:bob")
	o.ada.post("/members/user:ada/erase", "confirm", "ada").want(http.StatusConflict, "ask another admin")
	o.ada.post("/members/agent:scout/erase", "confirm", "scout").want(http.StatusConflict, "only users are erased")
}
