package app

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/event"
	"github.com/parley-dev/parley/internal/identity"
)

// orgLog compares what a server writes to the log of the org main with what REST shows.
type orgLog struct {
	*testing.T
	s       *Server
	root    string   // a key of the admin
	reader  string   // a key that is not an admin's
	secrets []string // what no event may contain
	after   int64
	last    map[string]any // the newest record of each subject
}

func newOrgLog(t *testing.T) *orgLog {
	s := running(t)
	l := &orgLog{T: t, s: s, root: s.First().Secret, last: map[string]any{}}
	l.secrets = append(l.secrets, l.root)
	return l
}

// call sends a request to a path of the org, or any other of the server, and decodes the response.
func (l *orgLog) call(method, path, key, body string) map[string]any {
	l.Helper()
	if !strings.HasPrefix(path, "/api/") {
		path = "/api/v1/orgs/main" + path
	}
	res, answer := send(l.T, method, l.s.URL()+path, key, body, "")
	if res.StatusCode/100 != 2 {
		l.Fatalf("%s %s: %s %s", method, path, res.Status, answer)
	}
	out := map[string]any{}
	if err := json.Unmarshal([]byte(answer), &out); err != nil {
		l.Fatal(err)
	}
	for _, name := range []string{"secret", "client_secret", "url"} {
		if s, ok := out[name].(string); ok && !strings.HasPrefix(s, "/a2a/") {
			l.secrets = append(l.secrets, s)
		}
	}
	return out
}

func (l *orgLog) admin(method, path, body string) map[string]any {
	l.Helper()
	return l.call(method, path, l.root, body)
}

// record returns the subject as REST shows it.
func (l *orgLog) record(subject string) any {
	l.Helper()
	kind, id, _ := strings.Cut(subject, ":")
	if kind != "invitation" {
		key := l.root
		if kind == "agent" && l.reader != "" {
			key = l.reader // an admin sees when a worker polled
		}
		return l.call("GET", "/"+kind+"s/"+id, key, "")
	}
	list, _ := l.admin("GET", "/invitations", "")["invitations"].([]any)
	for _, i := range list {
		if i, ok := i.(map[string]any); ok && i["id"] == id {
			return i
		}
	}
	l.Fatalf("there is no %s", subject)
	return nil
}

func (l *orgLog) page(v event.Viewer) event.Page {
	l.Helper()
	page, err := l.s.store.Events().Page(l.Context(), "main", event.Query{
		Filter: event.Filter{Viewer: v}, After: l.after, Limit: 100,
	})
	if err != nil {
		l.Fatal(err)
	}
	return page
}

// wrote compares the events since the last call, each as its type, subject and actor, and their
// data with what REST shows.
func (l *orgLog) wrote(want ...string) {
	l.Helper()
	page := l.page(event.Viewer{Admin: true})
	l.after = page.Last
	var got []string
	for i := range page.Events {
		e := &page.Events[i]
		if e.Subject == "agent:echo" && e.Type == event.AgentPresence {
			continue // it runs in the server, and begins at some time
		}
		got = append(got, fmt.Sprintf("%s %s %s", e.Type, e.Subject, e.Actor))
		if e.Subject != "agent:echo" {
			l.checkData(e)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		l.Errorf("diff of the events (-want +got):\n%s", diff)
	}
}

func (l *orgLog) checkData(e *event.Event) {
	l.Helper()
	for _, secret := range l.secrets {
		if strings.Contains(string(e.Data), secret) {
			l.Errorf("%s has a secret: %s", e.Type, e.Data)
		}
	}
	var data map[string]any
	if err := json.Unmarshal(e.Data, &data); err != nil {
		l.Fatalf("%s: %v: %s", e.Type, err, e.Data)
	}
	if e.Type != event.ClientDeleted {
		l.last[e.Subject] = l.record(e.Subject)
	}
	// The use of a key is recorded later, and changes no other member.
	ignoreUse := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == `["last_used_at"]` }, cmp.Ignore())
	if diff := cmp.Diff(l.last[e.Subject], any(data), ignoreUse); diff != "" {
		l.Errorf("%s %s: diff of the data (-REST +event):\n%s", e.Type, e.Subject, diff)
	}
}

// about returns the subject of events about a record.
func about(kind string, record map[string]any) string {
	return fmt.Sprintf("%s:%s", kind, record["id"])
}

func TestEventsAboutMembersAndKeysHaveTheRecordsOfREST(t *testing.T) {
	t.Parallel()
	l := newOrgLog(t)
	list, _ := l.admin("GET", "/keys", "")["keys"].([]any)
	first, _ := list[0].(map[string]any)
	l.wrote("member.created member:user:admin system", "key.created "+about("key", first)+" system",
		"agent.registered agent:echo system")

	l.admin("POST", "/members", `{"kind":"user","id":"ada","name":"Ada","admin":true}`)
	l.admin("POST", "/members", `{"kind":"service","id":"ci"}`)
	l.wrote("member.created member:user:ada user:admin", "member.created member:service:ci user:admin")
	l.admin("PATCH", "/members/user:ada", `{"name":"Ada Lovelace"}`)
	l.wrote("member.changed member:user:ada user:admin")
	l.admin("PATCH", "/members/service:ci", `{"disabled":true}`)
	l.wrote("member.disabled member:service:ci user:admin")
	l.admin("PATCH", "/members/service:ci", `{"disabled":false,"name":"CI"}`)
	l.wrote("member.changed member:service:ci user:admin", "member.enabled member:service:ci user:admin")
	l.admin("PATCH", "/members/service:ci", `{"name":"CI"}`)
	l.admin("POST", "/members/user:ada/link", `{}`)
	l.wrote()

	key := l.admin("POST", "/keys", `{"principal":"service:ci","scopes":["svc:tasks:read"],
		"expires_at":"2100-01-01T00:00:00Z"}`)
	l.wrote("key.created " + about("key", key) + " user:admin")
	next := l.admin("POST", fmt.Sprintf("/keys/%s/rotate", key["id"]), `{"overlap_seconds":3600}`)
	l.wrote("key.created "+about("key", next)+" user:admin", "key.rotated "+about("key", key)+" user:admin")
	l.admin("DELETE", fmt.Sprintf("/keys/%s", next["id"]), "")
	l.admin("DELETE", fmt.Sprintf("/keys/%s", next["id"]), "")
	l.wrote("key.revoked " + about("key", next) + " user:admin")
	own := l.admin("POST", "/api/v1/me/keys", `{"scopes":["svc:tasks:read"]}`)
	l.wrote("key.created " + about("key", own) + " user:admin")
	next = l.admin("POST", fmt.Sprintf("/api/v1/me/keys/%s/rotate", own["id"]), `{}`)
	l.wrote("key.created "+about("key", next)+" user:admin", "key.rotated "+about("key", own)+" user:admin")
	l.admin("DELETE", fmt.Sprintf("/api/v1/me/keys/%s", next["id"]), "")
	l.wrote("key.revoked " + about("key", next) + " user:admin")

	// A key of an admin ends with the role. The operator made it.
	operator := identity.NewOperator(l.s.store.IdentityStores(), Now, newIDs(Now).next)
	ctx := identity.WithOrigin(t.Context(), identity.Origin{Actor: identity.OperatorActor})
	ada := identity.Principal{Org: "main", Kind: identity.User, ID: "ada"}
	k, secret, err := operator.CreateKey(ctx, identity.KeyRequest{Principal: ada, Scopes: []string{"svc:admin:admin"}})
	if err != nil {
		t.Fatal(err)
	}
	l.secrets = append(l.secrets, secret)
	l.wrote("key.created key:" + k.ID + " operator")
	l.admin("PATCH", "/members/user:ada", `{"admin":false,"disabled":true}`)
	l.wrote("member.changed member:user:ada user:admin", "member.disabled member:user:ada user:admin",
		"key.revoked key:"+k.ID+" user:admin")
}

func TestEventsAboutClientsAndInvitationsHaveTheRecordsOfREST(t *testing.T) {
	t.Parallel()
	l := newOrgLog(t)
	l.after = l.page(event.Viewer{Admin: true}).Last
	c := l.admin("POST", "/clients", `{"name":"Reports","redirect_uris":["https://reports.example/done"],
		"scopes":["svc:tasks:read"],"method":"client_secret_basic"}`)
	client := " " + about("client", c) + " user:admin"
	path := fmt.Sprintf("/clients/%s", c["id"])
	l.wrote("client.created" + client)
	l.admin("PATCH", path, `{"name":"Monthly"}`)
	l.wrote("client.changed" + client)
	l.admin("POST", path+"/rotate", `{"overlap_seconds":3600}`)
	l.wrote("client.changed" + client)
	l.admin("DELETE", path, "")
	l.wrote("client.deleted" + client)
	registered(t, l.s, "")
	l.wrote() // it belongs to no org

	i := l.admin("POST", "/invitations", `{"user":"bob","admin":true}`)
	l.wrote("invitation.created " + about("invitation", i) + " user:admin")
	l.admin("DELETE", fmt.Sprintf("/invitations/%s", i["id"]), "")
	l.wrote("invitation.revoked " + about("invitation", i) + " user:admin")
	i = l.admin("POST", "/invitations", `{"user":"bob"}`)
	l.wrote("invitation.created " + about("invitation", i) + " user:admin")
	link, _ := i["url"].(string)
	newBrowser(t, l.s).do("POST", link, url.Values{"password": {adminPassword}, "repeat": {adminPassword}})
	l.wrote("invitation.accepted "+about("invitation", i)+" user:bob", "member.created member:user:bob user:bob")
}

func TestEventsAboutAgentsHaveTheRecordsOfREST(t *testing.T) {
	t.Parallel()
	l := newOrgLog(t)
	l.after = l.page(event.Viewer{Admin: true}).Last
	const scout = " agent:scout user:admin"
	l.admin("POST", "/agents", `{"id":"scout","name":"Scout","description":"Looks.","version":"1.2.0",
		"skills":["triage",{"id":"look","name":"Look","description":"Looks.","tags":["logs"],"examples":["Why?"]}],
		"provider":{"organization":"Acme","url":"https://acme.example"},"icon_url":"https://acme.example/i.png"}`)
	l.wrote("agent.registered" + scout)
	l.admin("PATCH", "/agents/scout", `{"description":"Looks at logs.","version":""}`)
	l.wrote("agent.changed" + scout)
	l.admin("PATCH", "/agents/scout", `{"status":"busy","disabled":true}`)
	l.wrote("agent.changed"+scout, "agent.disabled"+scout)
	l.admin("PATCH", "/agents/scout", `{"status":null}`)
	l.wrote("agent.changed" + scout)
	l.admin("PATCH", "/members/agent:scout", `{"disabled":false,"name":"The scout"}`)
	l.wrote("agent.changed"+scout, "agent.enabled"+scout)

	worker := l.admin("POST", "/keys", `{"principal":"agent:scout","scopes":["svc:a2a:serve"]}`)
	l.admin("POST", "/members", `{"kind":"service","id":"ci"}`)
	reader := l.admin("POST", "/keys", `{"principal":"service:ci","scopes":["svc:tasks:read"]}`)
	l.wrote("key.created "+about("key", worker)+" user:admin", "member.created member:service:ci user:admin",
		"key.created "+about("key", reader)+" user:admin")
	l.reader, _ = reader["secret"].(string)
	secret, _ := worker["secret"].(string)
	for range 3 {
		l.call("POST", "/api/v1/agents/scout/claim", secret, `{"worker":"w1","wait_seconds":0,"capacity":2}`)
	}
	waitForPresence(l, "available")
	l.wrote("agent.presence agent:scout system")
	l.admin("PATCH", "/agents/scout", `{"description":"Looks at all logs."}`)
	l.wrote("agent.changed" + scout)
}

// waitForPresence waits until REST, which caches the workers for a moment, shows the status.
func waitForPresence(l *orgLog, want string) {
	l.Helper()
	within, cancel := context.WithTimeout(l.Context(), time.Minute)
	defer cancel()
	for ; ; time.Sleep(50 * time.Millisecond) {
		if a, ok := l.record("agent:scout").(map[string]any); ok && a["status"] == want {
			return
		}
		if within.Err() != nil {
			l.Fatalf("the agent is not %s", want)
		}
	}
}

// The commands of the operator write whole events, too.
func TestTheOperatorsChangesAreEvents(t *testing.T) {
	t.Parallel()
	o, err := OpenOperator(t.Context(), testConfig(t).Store, true)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = o.Close() }()
	ctx := identity.WithOrigin(t.Context(), identity.Origin{Actor: identity.OperatorActor})
	ada := identity.Principal{Org: "acme", Kind: identity.User, ID: "ada"}
	if _, err := o.Identity.CreateOrg(ctx, "acme", ""); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Identity.CreateMember(ctx, ada, "Ada", true); err != nil {
		t.Fatal(err)
	}
	page, err := o.store.Events().Page(ctx, "acme", event.Query{
		Filter: event.Filter{Viewer: event.Viewer{Admin: true}}, Limit: 100,
	})
	if err != nil || len(page.Events) != 1 {
		t.Fatalf("events = %+v, %v, want one", page.Events, err)
	}
	e := page.Events[0]
	if e.Type != event.MemberCreated || e.Actor != "operator" || !strings.Contains(string(e.Data), `"name":"Ada"`) {
		t.Errorf("event = %+v with %s, want member.created by the operator", e, e.Data)
	}
	others, err := o.store.Events().Page(ctx, "acme", event.Query{
		Filter: event.Filter{Viewer: event.Viewer{Ref: "user:bob"}}, Limit: 100,
	})
	if err != nil || len(others.Events) > 0 {
		t.Errorf("events for a reader who is not an admin = %+v, %v, want none", others.Events, err)
	}
}
