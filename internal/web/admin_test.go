package web_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/delivery"
	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/friction"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/task"
)

// adminPages are the admin pages that need no record.
var adminPages = []string{
	"/keys", "/keys?view=ended", "/keys/new", "/clients", "/clients/new", "/members", "/members?kind=agent",
	"/members?kind=service",
	"/members/invitations", "/members/user:ada", "/audit", "/settings", "/settings/deliveries", "/webhooks", "/webhooks?state=failed",
	"/webhooks/new", "/tasks", "/tasks?state=failed",
}

var adminForms = []string{
	"/keys", "/keys/key-1/rotate", "/keys/key-1/revoke", "/clients", "/clients/client-1", "/clients/client-1/rotate",
	"/clients/client-1/delete",
	"/members", "/members/user:ada", "/members/user:ada/link", "/members/invitations", "/members/invitations/inv-1/revoke",
	"/settings/friction", "/settings/deliveries", "/settings/notes", "/settings/notes/note-1/delete",
	"/tasks/01k5xb7d2n8f4j6s0a9g3r5w1c/rerun",
	"/webhooks", "/webhooks/hook-1", "/webhooks/hook-1/state", "/webhooks/hook-1/ping", "/webhooks/hook-1/redeliver",
	"/webhooks/hook-1/rotate", "/webhooks/hook-1/delete",
}

func TestOnlyAdminsSeeThePagesOfAdmins(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	nobody := &visitor{tb: t, site: o}
	for _, path := range adminPages {
		o.ada.get(path).want(http.StatusOK)
		o.bob.get(path).want(http.StatusForbidden, "You may not do this", "Only admins can").lacks("scope", "the key needs")
		o.eve.get(path).want(http.StatusNotFound).lacks("Ada")
		if res := nobody.get(path); res.code != http.StatusSeeOther ||
			!strings.HasPrefix(res.header.Get("Location"), "/login") {
			t.Errorf("%s: got %d %v, want a redirect to /login", path, res.code, res.header)
		}
	}
	for _, path := range adminForms {
		o.bob.post(path, "user", "x", "change", "disable").want(http.StatusForbidden, "Only admins can")
		o.eve.post(path).want(http.StatusNotFound)
	}
	menu := []string{
		`href="/orgs/acme/keys"`, `href="/orgs/acme/clients"`, `href="/orgs/acme/members"`,
		`href="/orgs/acme/audit"`, `href="/orgs/acme/settings"`, `href="/orgs/acme/tasks"`,
	}
	o.ada.get("/followups").want(http.StatusOK, menu...)
	o.bob.get("/followups").want(http.StatusOK).lacks(menu...)
	// Refusals are audited, as those of the REST API.
	o.ada.get("/audit?actor=user:bob").want(http.StatusOK, "tried to make a key", "auth.scope_missing")
	if m := o.member(t, "user:ada"); m.Disabled {
		t.Error("bob disabled ada")
	}
}

func TestFormsOfOtherSitesAreRefused(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	for _, path := range adminForms {
		r := newForm(path, url.Values{"change": {"make-admin"}})
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		r.AddCookie(o.ada.cookie)
		if code := serve(o, r); code != http.StatusForbidden {
			t.Errorf("got %v %v, want %v", path, code, http.StatusForbidden)
		}
	}
}

// User text is always shown as text.
func TestTextIsHarmlessOnThePagesOfAdmins(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	const bad = `<script>alert(1)</script>"'><img src=x onerror=alert(2)>`
	long := strings.Repeat("W", 200)
	o.ada.post("/members", "kind", "service", "id", "crm", "name", bad).want(http.StatusSeeOther)
	o.ada.post("/members/user:bob", "change", "name", "name", bad).want(http.StatusSeeOther)
	o.ada.post("/members/invitations", "user", "carl", "name", bad, "days", "1").want(http.StatusCreated)
	o.ada.post("/keys", "name", bad, "principal", "service:crm", "scopes", "svc:tasks:read", "expires", "7").
		want(http.StatusCreated)
	k := o.only(t)
	o.ada.post("/clients", "name", bad, "redirect_uris", "https://a.example/", "scopes", "svc:tasks:read", "method",
		"none").want(http.StatusSeeOther)
	c := o.client(t)
	access := accessOf(t, o, "user:bob", identity.ReportFriction, identity.TasksRead, identity.TasksWrite)
	_, err := o.frictions.Report(t.Context(), access, friction.Report{
		Fingerprint: "bad:text", Title: bad, Category: "process", Problem: bad + long, SuggestedFix: bad, Evidence: bad,
		Occurrence: bad,
	})
	if err != nil {
		t.Fatal(err)
	}
	pages := append([]string{
		"/keys/" + k.ID, "/clients/" + c.ID, "/members/service:crm", "/members/user:bob", "/friction", "/friction/bad:text",
		"/keys?principal=service:crm&view=ends", "/audit?actor=" + url.QueryEscape(bad), "/audit?action=" +
			url.QueryEscape(bad),
		"/audit?target=" + url.QueryEscape(bad), "/keys/new?preset=worker",
	}, adminPages...)
	for _, path := range pages {
		res := o.ada.get(path)
		if res.code != http.StatusOK {
			t.Errorf("got %v %v, want res.code %v", path, res.code, http.StatusOK)
		}
		res.lacks("<script>alert", "<img src=x")
	}
	// Entered values are shown as text, too.
	for path, fields := range map[string][]string{
		"/keys": {
			"name", bad, "principal", bad, "scopes", bad, "agents", bad, "expires", bad, "expires_on",
			bad, "preset", bad,
		},
		"/clients":             {"name", bad + long, "redirect_uris", bad, "scopes", bad, "agents", bad, "method", bad},
		"/members":             {"kind", "service", "id", bad, "name", bad},
		"/members/invitations": {"user", bad, "name", bad, "days", bad},
		"/settings/friction":   {"files", "yes", "threshold", bad},
	} {
		o.ada.post(path, fields...).want(http.StatusUnprocessableEntity).lacks("<script>alert", "<img src=x")
	}
	o.ada.get("/audit?from="+url.QueryEscape(bad)).want(http.StatusUnprocessableEntity, "Must be a day").
		lacks("<script>alert")
}

func TestTheAuditLogIsFiltered(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.ada.post("/keys", workerKey...).want(http.StatusCreated)
	k := o.only(t)
	o.ada.get("/audit").want(http.StatusOK, "made the key", "/orgs/acme/keys/"+k.ID, "signed in", "set the password of",
		"for agent:scout: svc:a2a:serve")
	o.ada.get("/audit?action=key.create").want(http.StatusOK, "made the key", `value="key.create" selected`).
		lacks(">signed in<")
	o.ada.get("/audit?actor=user:bob").want(http.StatusOK, ">signed in<").lacks(">made the key<")
	today := time.Now().UTC().Format(time.DateOnly)
	o.ada.get("/audit?from="+today+"&to="+today).want(http.StatusOK, "made the key")
	byTarget := "/orgs/acme/audit?target=" + k.ID
	o.ada.get("/audit").want(http.StatusOK, `href="`+byTarget+`"`)
	o.ada.send(http.MethodGet, byTarget, nil).want(http.StatusOK, ">made the key<", `name="target" value="`+k.ID+`"`,
		"Clear").lacks(">signed in<")
	o.ada.get("/keys/"+k.ID).want(http.StatusOK, `href="`+byTarget+`"`)
	o.ada.get("/members/agent:scout").want(http.StatusOK, `href="/orgs/acme/audit?target=agent%3ascout"`)
	o.ada.get("/audit?action=key.create&target="+k.ID[:10]).want(http.StatusOK, "Nothing matches")
	o.ada.get("/audit?to=2020-01-01").want(http.StatusOK, "Nothing matches", "Clear the filters")
	for _, q := range []string{
		"?from=x", "?to=2026-13-01", "?cursor=x", "?cursor=1~", "?actor=" + strings.Repeat("a", 101), "?action=%ff",
		"?actor=%00",
		"?target=%ff", "?target=" + strings.Repeat("a", 501),
	} {
		o.ada.get("/audit" + q).want(http.StatusUnprocessableEntity).lacks("Nothing matches")
	}
	for range 51 {
		if err := o.admin.Done(t.Context(), "acme", "key.create", "", ""); err != nil {
			t.Fatal(err)
		}
	}
	_, next, _ := strings.Cut(o.ada.get("/audit?action=key.create").want(http.StatusOK).body, `rel="next" href="`)
	next, _, _ = strings.Cut(next, `"`)
	if n := strings.Count(o.ada.send(http.MethodGet, strings.ReplaceAll(next, "&amp;", "&"), nil).want(http.StatusOK).
		body, `<li id="audit-`); n != 2 {
		t.Errorf("got %v entries on the second page, want 2", n)
	}
}

func TestTheFrictionThresholdIsSet(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.ada.get("/settings").want(http.StatusOK, `id="files" name="files" value="yes" checked`, `value="3"`)
	o.ada.post("/settings/friction", "files", "yes", "threshold", "5").
		leads(o.ada, "From now on 5 reports file a proposal.", `value="5"`)
	for _, bad := range []string{"1", "0", "101", "-1", "x", "", "3.5"} {
		o.ada.post("/settings/friction", "files", "yes", "threshold", bad).
			want(http.StatusUnprocessableEntity, "Must be a number from 2 to 100.")
	}
	o.ada.post("/settings/friction", "threshold", "5").leads(o.ada, "no longer files proposals").
		lacks(`value="yes" checked`)
	o.bob.get("/friction").want(http.StatusOK, "Nothing was reported yet", "file no proposals")
	o.bob.get("/friction/nope").want(http.StatusNotFound)
	o.bob.get("/friction?cursor=x").want(http.StatusUnprocessableEntity)
}

func TestRejectionNotesAreSaved(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.ada.get("/settings").want(http.StatusOK, "No saved notes yet.")
	fields := []string{"title", "Too vague", "text", "Say what happened.\r\n<script>alert(1)</script>"}
	o.ada.post("/settings/notes", fields...).leads(o.ada, "The note was saved.", "Too vague", "&lt;script&gt;")
	o.ada.again("/settings/notes", fields...).leads(o.ada)
	list, err := o.Store.Proposals().Notes(t.Context(), "acme")
	if err != nil || len(list) != 1 || list[0].Text != "Say what happened.\n<script>alert(1)</script>" ||
		list[0].CreatedBy != "user:ada" {
		t.Fatalf("got %+v %v, want one note of user:ada with the text of the form", list, err)
	}
	o.ada.post("/settings/notes", "title", "", "text", "kept").
		want(http.StatusUnprocessableEntity, `id="err-title"`, ">kept</textarea>", `value="3"`)
	o.ada.post("/settings/notes", "title", strings.Repeat("x", 101), "text", "").
		want(http.StatusUnprocessableEntity, `id="err-title"`, `id="err-text"`)
	o.ada.post("/settings/notes/"+list[0].ID+"/delete").leads(o.ada, "was deleted", "No saved notes yet.")
	o.ada.again("/settings/notes/"+list[0].ID+"/delete").
		leads(o.ada, `<p class="notice bad" role="alert">This note no longer exists.`)
	o.ada.get("/audit").want(http.StatusOK, "saved the note", "deleted the note")
}

func TestDeliveriesThatWereGivenUpAreTakenUp(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.ada.get("/settings/deliveries").want(http.StatusOK, "Nothing was given up")
	ctx := context.Background()
	caller, err := o.Auth.Authenticate(ctx, func() string {
		s,
			_ := o.Key("acme", "service:crm", identity.A2AWrite)
		return s
	}())
	if err != nil {
		t.Fatal(err)
	}
	to, err := o.Tasks.Reach(ctx, caller, "scout")
	if err != nil {
		t.Fatal(err)
	}
	sent, err := o.Tasks.Send(ctx, to, dispatch.SendRequest{
		ID: "t-1", Message: task.Message{Role: task.RoleUser, Parts: []task.Part{{Kind: task.TextPart, Text: "hello"}}},
	}, 0)
	if err != nil {
		t.Fatal(err)
	}
	const id = `h/<script>`
	if _, err := o.Tasks.SetPush(ctx, to, "t-1", task.PushConfig{
		ID: id, URL: "https://hooks.example/secret-path",
		Token: "secret-token",
	}); err != nil {
		t.Fatal(err)
	}
	uid, page := sent.UID, "/tasks/"+sent.UID
	_, err = o.Store.Deliveries().Update(ctx, delivery.Key{Org: "acme", Topic: uid, ID: id},
		func(p delivery.Progress, clock time.Time) (delivery.Progress, error) {
			p.State, p.Attempts, p.LastError, p.LastAttemptAt, p.DueAt = delivery.Dead, 12, "the receiver answered 500", clock,
				time.Time{}
			return p, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	o.ada.get("/settings/deliveries").want(http.StatusOK, "hooks.example", "given up", "12 failures",
		"the receiver answered 500", "Try again", `href="/orgs/acme`+page+`"`).lacks("secret", "<script>")
	o.ada.get(page).want(http.StatusOK, "service:crm", "hooks.example", "given up", "12 failures", "Try again",
		`name="back" value="/orgs/acme`+page+`"`, `data-live-subject="task:`+uid+`" data-live-task="`+uid+`"`).
		lacks("secret-", "<script>")
	o.bob.get(page).want(http.StatusForbidden)
	o.eve.get(page).want(http.StatusNotFound)
	for _, q := range []string{"?state=x", "?cursor=x", "?cursor=a~"} {
		o.ada.get("/settings/deliveries" + q).want(http.StatusUnprocessableEntity)
	}
	o.ada.post("/settings/deliveries", "task", uid, "push", id, "back", "/orgs/acme"+page).
		leads(o.ada, "It is tried again now", "hooks.example", "active").lacks("Try again")
	o.ada.get("/settings/deliveries").want(http.StatusOK, "Nothing was given up")
	o.ada.get("/settings/deliveries?state=active").want(http.StatusOK, "hooks.example")
	for _, back := range []string{"/orgs/acme" + page, "/orgs/acme/settings/deliveries?state=active"} {
		o.ada.post("/settings/deliveries", "task", uid, "push", id, "back", back).
			leads(o.ada, `<p class="notice bad" role="alert">`, "nly a dead one can be retried", "hooks.example", "active")
	}
	o.ada.post("/settings/deliveries", "task", "", "push", "").want(http.StatusNotFound)
}
