package rest

import (
	"context"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/identity"
)

const (
	keys    = "/api/v1/orgs/acme/keys"
	members = "/api/v1/orgs/acme/members"
	invites = "/api/v1/orgs/acme/invitations"
	log     = "/api/v1/orgs/acme/audit"
)

// refresh makes the router reload keys.
func (w *world) refresh() {
	w.tb.Helper()
	if err := w.auth.Refresh(context.Background()); err != nil {
		w.tb.Fatal(err)
	}
}

// audited returns the newest entries of acme's audit log as "actor action target outcome code".
func (w *world) audited(secret, query string) []string {
	w.tb.Helper()
	var page AuditLog
	w.do(secret, "GET", log+query, "").want(200).into(&page)
	out := []string{}
	for _, e := range page.Entries {
		out = append(out, strings.TrimSpace(strings.Join([]string{e.Actor, e.Action, e.Target, e.Outcome, deref(e.Code)},
			" ")))
	}
	return out
}

func TestAKeyLives(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(ho *httpx.Options, _ *Options) { ho.AccessLog = true })
	ada := w.admin("acme", "user:ada")
	res := w.do(ada, "POST", keys,
		`{"principal":"agent:fixer","scopes":["svc:tasks:read","agent:fixer"],"name":"prod","expires_at":"2126-01-01T00:00:00Z"}`).want(201)
	var made KeyWithSecret
	res.into(&made)
	if res.Header.Get("Cache-Control") != "no-store" || res.Header.Get("Location") != keys+"/"+made.ID {
		t.Errorf("headers %v, want Cache-Control no-store, Location %v", res.Header, keys+"/"+made.ID)
	}
	if !regexp.MustCompile("^"+identity.SecretPattern+"$").MatchString(made.Secret) ||
		!strings.HasPrefix(made.Secret, made.Prefix) {
		t.Errorf("secret = %q, want the pattern of secrets and the prefix %q", made.Secret, made.Prefix)
	}
	if made.Principal != "agent:fixer" || made.CreatedBy != "user:ada" || made.State != "live" ||
		deref(made.ExpiresAt) != "2126-01-01T00:00:00.000000Z" {
		t.Errorf("got %+v, want Principal agent:fixer, CreatedBy user:ada, State live, ExpiresAt 2126-01-01T00:00:00.000000Z", made)
	}
	w.do(made.Secret, "GET", proposals, "").want(200)
	var got Key
	w.do(ada, "GET", keys+"/"+made.ID, "").want(200).into(&got)
	if diff := cmp.Diff(made.Key, got); diff != "" {
		t.Errorf("mismatch (-want +got):\n%s", diff)
	}

	var next KeyWithSecret
	res = w.do(ada, "POST", keys+"/"+made.ID+"/rotate", `{"overlap_seconds":60}`).want(201)
	res.into(&next)
	if next.ID == made.ID || next.Principal != made.Principal || !cmp.Equal(next.Scopes, made.Scopes) ||
		next.Name != "prod" || deref(next.ExpiresAt) != deref(made.ExpiresAt) ||
		res.Header.Get("Location") != keys+"/"+next.ID {
		t.Errorf("got %+v, want a new key like %+v", next, made.Key)
	}
	w.refresh()
	for _, s := range []string{made.Secret, next.Secret} {
		w.do(s, "GET", proposals, "").want(200)
	}
	if p := w.do(ada, "POST", keys+"/"+made.ID+"/rotate", "").want(409).problem(); p.Code != "identity.key_replaced" {
		t.Errorf("got %+v, want Code identity.key_replaced", p)
	}
	var last KeyWithSecret
	w.do(ada, "POST", keys+"/"+next.ID+"/rotate", "").want(201).into(&last) // at once, without a body
	w.refresh()
	w.do(next.Secret, "GET", proposals, "").want(401)
	for range 2 {
		w.do(ada, "DELETE", keys+"/"+last.ID, "").want(200).into(&got)
		if got.State != "revoked" || got.RevokedAt == nil {
			t.Errorf("got %+v, want State revoked, RevokedAt not nil", got)
		}
	}
	w.refresh()
	w.do(last.Secret, "GET", proposals, "").want(401)
	if p := w.do(ada, "POST", keys+"/"+last.ID+"/rotate", "{}").want(409).problem(); p.Code != "identity.key_not_live" {
		t.Errorf("got %+v, want Code identity.key_not_live", p)
	}

	var list KeyList
	w.do(ada, "GET", keys+"?principal=agent:fixer", "").want(200).into(&list)
	states := []string{}
	for _, k := range list.Keys {
		states = append(states, k.State)
	}
	if diff := cmp.Diff([]string{"revoked", "expired", "live"}, states); diff != "" {
		t.Errorf("mismatch (-want +got):\n%s", diff)
	}
	for state, n := range map[string]int{"live": 1, "revoked": 1, "expired": 1, "all": 3} {
		w.do(ada, "GET", keys+"?principal=agent:fixer&state="+state, "").want(200).into(&list)
		if len(list.Keys) != n {
			t.Errorf("%s: %d keys, want %d", state, len(list.Keys), n)
		}
	}
	ids := []string{}
	for cursor := ""; ; {
		var page KeyList
		w.do(ada, "GET", keys+"?limit=1"+cursor, "").want(200).into(&page)
		ids = append(ids, page.Keys[0].ID)
		if page.NextCursor == nil {
			break
		}
		cursor = "&cursor=" + *page.NextCursor
	}
	w.do(ada, "GET", keys, "").want(200).into(&list)
	if len(ids) != len(list.Keys) || len(ids) != 4 {
		t.Errorf("got %v page by page, want the 4 keys of the whole list of %d", ids, len(list.Keys))
	}

	if diff := cmp.Diff([]string{
		"user:ada key.rotate " + last.ID + " refused identity.key_not_live",
		"user:ada key.revoke " + last.ID + " done",
		"user:ada key.rotate " + next.ID + " done",
		"user:ada key.rotate " + made.ID + " refused identity.key_replaced",
		"user:ada key.rotate " + made.ID + " done",
		"user:ada key.create " + made.ID + " done",
	}, w.audited(ada, "?actor=user:ada")); diff != "" {
		t.Error(diff)
	}
	// No secret is shown again or logged, not even one that was sent in the wrong place.
	w.do(ada, "POST", keys, `{"principal":"`+made.Secret+`","scopes":["svc:tasks:read"]}`).want(422)
	w.do(ada, "PATCH", members+"/user:ada", `{"name":"my key is `+made.Secret+`"}`).want(200)
	for _, path := range []string{keys, keys + "/" + made.ID, log} {
		body := w.do(ada, "GET", path, "").want(200).Body
		for _, s := range []string{made.Secret, next.Secret, last.Secret, ada} {
			if strings.Contains(body, s) || strings.Contains(body, `"secret"`) || strings.Contains(w.logs.String(), s) {
				t.Errorf("%s shows a secret: %s", path, body)
			}
		}
	}
}

func TestAKeyIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.admin("acme", "user:ada")
	w.member("acme", "user:bob")
	w.member("acme", "service:ci")
	for _, a := range []agent.Agent{
		{ID: "hidden", Org: "globex", Name: "x"},
		{ID: "open", Org: "globex", Name: "x", Public: true},
	} {
		w.orgs.Agent(a)
	}
	key := func(principal, scopes string) string {
		return `{"principal":"` + principal + `","scopes":[` + scopes + `]}`
	}
	const read = `"svc:tasks:read"`
	w.do(ada, "POST", keys, key("user:ada", read)).want(201)
	w.do(ada, "POST", keys, key("service:ci", `"svc:a2a:write","agent:open","agent:*"`)).want(201)
	if p := w.do(ada, "POST", keys, key("user:bob", read)).want(403).
		problem(); p.Code != "identity.key_of_another_user" || !strings.Contains(p.Detail, "another user") {
		t.Errorf("got %+v, want Code identity.key_of_another_user, containing another user", p)
	}
	for _, c := range []struct {
		path, body string
		at         []string
	}{
		{keys, key("user:nobody", read), nil}, // another user, existing or not
		{keys, key("service:nobody", read), []string{"/principal"}},
		{keys, key("agent:hidden", read), []string{"/principal"}},
		{keys, key("ci", read), []string{"/principal"}},
		{keys, `{"scopes":["x",1]}`, []string{"/principal", "/scopes"}},
		{keys, `{}`, []string{"/principal", "/scopes"}},
		{keys, key("service:ci", ""), []string{"/scopes"}},
		{keys, key("service:ci", read+`,"svc:fly","agent:A"`), []string{"/scopes/1", "/scopes/2"}},
		{keys, key("service:ci", `"agent:nobody",`+read+`,"agent:hidden"`), []string{"/scopes/0", "/scopes/2"}},
		{
			keys, `{"principal":"service:ci","scopes":["agent:*"],"expires_at":"2020-01-01T00:00:00Z"}`,
			[]string{"/expires_at"},
		},
		{
			keys, `{"principal":"service:ci","scopes":["agent:*"],"expires_at":"soon","name":""}`,
			[]string{"/expires_at", "/name"},
		},
		{keys, `{"principal":"service:ci","scopes":["agent:*"],"org":"globex"}`, []string{"/org"}},
		{keys + "/key-1/rotate", `{"overlap_seconds":-1}`, []string{"/overlap_seconds"}},
		{keys + "/key-1/rotate", `{"overlap_seconds":604801}`, []string{"/overlap_seconds"}},
		{keys + "/key-1/rotate", `{"overlap_seconds":"1"}`, []string{"/overlap_seconds"}},
	} {
		res := w.do(ada, "POST", c.path, c.body)
		if c.at == nil {
			res.want(403)
			continue
		}
		got := at(res.want(422).problem())
		less := func(a, b string) bool { return a < b }
		if diff := cmp.Diff(c.at, got, sortStrings(less)); diff != "" {
			t.Errorf("%s: mismatch (-want +got):\n%s (%s)", c.body, diff, res.Body)
		}
	}
	for query, name := range map[string]string{
		"?principal=ada": "query:principal", "?state=dead": "query:state", "?cursor=x": "query:cursor",
		"?limit=0": "query:limit", "?page=1": "query:page",
	} {
		if got := at(w.do(ada, "GET", keys+query, "").want(422).problem()); len(got) != 1 || got[0] != name {
			t.Errorf("%s: got %v, want len(got) 1, got[0] %v", query, got, name)
		}
	}
	for _, id := range []string{"key-none", "key-", "KEY-1", "x"} {
		w.do(ada, "GET", keys+"/"+id, "").want(404)
		w.do(ada, "DELETE", keys+"/"+id, "").want(404)
		w.do(ada, "POST", keys+"/"+id+"/rotate", "").want(404)
	}
	// An admin cannot rotate the key of another user, but can revoke it.
	bobs := w.member("acme", "user:bob")
	caller, err := w.auth.Authenticate(context.Background(), bobs)
	if err != nil {
		t.Fatal(err)
	}
	w.do(ada, "POST", keys+"/"+caller.KeyID+"/rotate", "").want(403)
	w.do(ada, "DELETE", keys+"/"+caller.KeyID, "").want(200)
	w.refresh()
	w.do(bobs, "GET", proposals, "").want(401)
	// Any principal with the scope is an admin, and can create user keys only for itself.
	robot := w.key("acme", "agent:fixer", identity.Admin)
	w.do(robot, "POST", keys, key("user:ada", read)).want(403)
	w.do(robot, "POST", keys, key("agent:fixer", read)).want(201)
}

func TestRefusalsAreInTheLogButDoNotFillIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada, bob, eve := w.admin("acme", "user:ada"), w.member("acme", "user:bob"), w.admin("globex", "user:eve")
	before := len(w.audited(ada, "?limit=200"))
	for range 100 {
		w.do(bob, "POST", keys, `{"principal":"user:bob","scopes":["svc:admin:admin"]}`).want(403)
		w.do(eve, "POST", keys, `{"principal":"user:eve","scopes":["svc:admin:admin"]}`).want(404)
		w.do("", "POST", keys, `{}`).want(401)
	}
	got := w.audited(ada, "?limit=200")
	if len(got) != before+20 || got[0] != "user:bob key.create  refused auth.scope_missing" {
		t.Errorf("%d entries, want %d; the last is %q", len(got), before+20, got[0])
	}
	w.do(ada, "POST", members, `{"kind":"agent","id":"x"}`).want(422)
	var page AuditLog
	w.do(ada, "GET", log+"?limit=1", "", "X-Request-Id", "mine").want(200).into(&page)
	if e := page.Entries[0]; e.Actor != "user:ada" || e.Action != "member.create" || e.Target != "agent:x" ||
		deref(e.Code) != "request.invalid" ||
		deref(e.Address) != "192.0.2.1" || e.KeyID == nil || e.RequestID == nil || page.NextCursor == nil {
		t.Errorf("got %+v, want the refusal of member.create with its request", e)
	}
	for _, q := range []string{
		"?from=yesterday", "?to=1", "?cursor=1", "?cursor=x~y", "?outcome=done", "?target=%00", "?target=%ff",
		"?target=" + strings.Repeat("a", identity.MaxAuditTarget+1),
	} {
		w.do(ada, "GET", log+q, "").want(422)
	}
	if got := w.audited(ada, "?target=agent:x"); len(got) != 1 ||
		got[0] != "user:ada member.create agent:x refused request.invalid" {
		t.Errorf("about agent:x: got %v, want one refusal", got)
	}
	for _, none := range []string{"agent:", "agent:X", strings.Repeat("a", identity.MaxAuditTarget)} {
		if got := w.audited(ada, "?target="+none); len(got) != 0 {
			t.Errorf("about %s: got %v, want none", none, got)
		}
	}
	now := time.Now().UTC().Format(time.RFC3339Nano)
	if got := w.audited(ada, "?from="+now); len(got) != 0 {
		t.Errorf("from now on: got %v, want len(got) 0", got)
	}
	if got := w.audited(ada, "?to="+now+"&action=org.create"); len(got) != 1 || got[0] != "server org.create acme done" {
		t.Errorf("got %v, want len(got) 1, got[0] server org.create acme done", got)
	}
}

// A client that rotates expiring keys while it pages through them sees each of them once.
func TestKeysThatEndSoonArePagedWhileTheyAreRotated(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.admin("acme", "user:ada")
	w.do(ada, "POST", agents, `{"id":"scout","name":"Scout"}`).want(201)
	var want, got []string
	for i := range 5 {
		var k KeyWithSecret
		end := time.Now().Add(time.Duration(48-i) * time.Hour).UTC().Format(time.RFC3339)
		w.do(ada, "POST", keys, `{"principal":"agent:scout","scopes":["svc:tasks:read"],"expires_at":"`+end+`"}`).want(201).
			into(&k)
		want = append([]string{k.ID}, want...)
	}
	cursor := ""
	for range 20 {
		var page KeyList
		w.do(ada, "GET", keys+"?ends_within=14&limit=1&principal=agent:scout"+cursor, "").want(200).into(&page)
		for _, k := range page.Keys {
			got = append(got, k.ID)
			w.do(ada, "POST", keys+"/"+k.ID+"/rotate", `{"overlap_seconds":60}`).want(201)
		}
		if page.NextCursor == nil {
			break
		}
		cursor = "&cursor=" + *page.NextCursor
	}
	met := slices.DeleteFunc(slices.Clone(got), func(id string) bool { return !slices.Contains(want, id) })
	if !slices.Equal(met, want) || len(got) > 2*len(want) {
		t.Errorf("got %q; want %q, each once", got, want)
	}
	for _, q := range []string{"?ends_within=14&cursor=" + want[0], "?cursor=1~" + want[0], "?ends_within=14&cursor=x~" +
		want[0]} {
		w.do(ada, "GET", keys+q, "").want(422)
	}
}

// The wait of a worker ends soon after its key, and it gets no later task.
func TestAWaitEndsWithItsKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(ho *httpx.Options, _ *Options) { ho.Recheck = 20 * time.Millisecond })
	ada := w.admin("acme", "user:ada")
	// Each case has its own agent, which becomes available once the claim waits.
	for name, end := range map[string]func(KeyWithSecret){
		"revoked":  func(k KeyWithSecret) { w.do(ada, "DELETE", keys+"/"+k.ID, "").want(200) },
		"disabled": func(KeyWithSecret) { w.do(ada, "PATCH", members+"/agent:disabled", `{"disabled":true}`).want(200) },
	} {
		var k KeyWithSecret
		w.do(ada, "POST", agents, `{"id":"`+name+`","name":"`+name+`"}`).want(201)
		w.do(ada, "POST", keys, `{"principal":"agent:`+name+`","scopes":["svc:a2a:serve"]}`).want(201).into(&k)
		done := make(chan *answer, 1)
		go func() { done <- w.do(k.Secret, "POST", "/api/v1/agents/"+name+"/claim", `{"wait_seconds":60}`) }()
		for deadline := time.Now().Add(time.Minute); !strings.Contains(w.do(ada, "GET", agents+"/"+name, "").Body,
			`"status":"available"`); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("the claim never waits")
			}
		}
		end(k)
		w.refresh()
		if res := <-done; res.Status != http.StatusUnauthorized { // a wait that times out is 200
			t.Errorf("%s: got %d %s, want 401", name, res.Status, res.Body)
		}
	}
}
