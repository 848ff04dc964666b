package rest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/oauth"
)

// newClient registers a client of the org acme.
func (w *world) newClient(secret, extra string) OAuthClientWithSecret {
	w.tb.Helper()
	var c OAuthClientWithSecret
	w.do(secret, "POST", clients, strings.TrimSuffix(clientBody, "}")+extra+"}").want(201).into(&c)
	return c
}

func TestAClientIsEdited(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada, eve := w.admin("acme", "user:ada"), w.admin("globex", "user:eve")
	made := w.newClient(ada, `,"method":"client_secret_basic"`)
	path := clients + "/" + made.ID
	tag := w.do(ada, "GET", path, "").want(200).Header.Get("ETag")
	w.do(ada, "GET", path, "", "If-None-Match", tag).want(304)

	want, got := made.OAuthClient, OAuthClient{}
	for _, c := range []struct {
		body string
		edit func()
	}{
		{`{"name":" Monthly "}`, func() { want.Name = "Monthly" }},
		{`{"redirect_uris":["com.example.reports:/done","https://b.example/"]}`, func() {
			want.RedirectURIs = []string{"com.example.reports:/done", "https://b.example/"}
		}},
		{`{"scopes":["svc:admin:admin","svc:admin:admin"]}`, func() { want.Scopes = []string{"svc:admin:admin"} }},
		// as at the registration
		{`{"scopes":["agent:fixer"]}`, func() { want.Scopes = append(names(oauth.Registrable), "agent:fixer") }},
		{`{"name":"All","redirect_uris":["https://c.example/"],"scopes":["svc:tasks:read"]}`, func() {
			want.Name, want.RedirectURIs, want.Scopes = "All", []string{"https://c.example/"}, []string{"svc:tasks:read"}
		}},
	} {
		c.edit()
		res := w.do(ada, "PATCH", path, c.body).want(200)
		res.into(&got)
		next := res.Header.Get("ETag")
		read := w.do(ada, "GET", path, "", "If-None-Match", tag).want(200)
		if diff := cmp.Diff(want, got); diff != "" || read.Body != res.Body || next == tag ||
			read.Header.Get("ETag") != next {
			t.Errorf("%s: got %s %s %s, want Body %v, next not %v, ETag %v", c.body, diff, next, read.Body, res.Body, tag, next)
		}
		tag = next
	}
	// A change without effect creates no new version and no audit entry.
	if res := w.do(ada, "PATCH", path, `{"name":"All","scopes":["svc:tasks:read"]}`).
		want(200); res.Header.Get("ETag") != tag {
		t.Errorf("ETag = %s, want %s", res.Header.Get("ETag"), tag)
	}
	if n := len(w.audited(ada, "?action=oauth.client.update")); n != 5 {
		t.Errorf("%d entries, want 5", n)
	}

	// A change based on an older version fails.
	fresh := w.do(ada, "PATCH", path, `{"name":"New"}`, "If-Match", tag).want(200).Header.Get("ETag")
	if p := w.do(ada, "PATCH", path, `{"name":"Newer"}`, "If-Match", tag).want(412).problem(); p.Code != "request.stale" {
		t.Errorf("got %+v, want Code request.stale", p)
	}
	w.do(ada, "PATCH", path, `{"name":"Newer"}`, "If-Match", `"x"`).want(412)
	w.do(ada, "PATCH", path, `{"name":"Newer"}`, "If-Match", tag+", "+fresh).want(200)

	// A retry returns the first outcome, regardless of later changes.
	const once = "Idempotency-Key"
	first := w.do(ada, "PATCH", path, `{"name":"Once"}`, once, "k1").want(200)
	w.do(ada, "PATCH", path, `{"name":"Later"}`).want(200)
	again := w.do(ada, "PATCH", path, `{ "name" : "Once" }`, once, "k1").want(200)
	if again.Body != first.Body || again.Header.Get("Idempotency-Replayed") != "true" ||
		first.Header.Get("Idempotency-Replayed") != "" ||
		again.Header.Get("ETag") != first.Header.Get("ETag") {
		t.Errorf("%s %v", again.Body, again.Header)
	}
	if p := w.do(ada, "PATCH", path, `{"name":"Other"}`, once, "k1").want(422).
		problem(); p.Code != "idempotency.key_reused" {
		t.Errorf("got %+v, want Code idempotency.key_reused", p)
	}
	if w.do(ada, "GET", path, "").want(200).into(&got); got.Name != "Later" {
		t.Errorf("got %+v, want Name Later", got)
	}

	// Another org cannot change them, and no org can change the built-in client.
	w.do(eve, "PATCH", "/api/v1/orgs/globex/clients/"+made.ID, `{"name":"x"}`).want(404)
	w.do(ada, "PATCH", clients+"/"+oauth.CommandLine.ID, `{"name":"x"}`).want(404)
	w.do(ada, "PATCH", clients+"/key-1", `{"name":`).want(404)
}

func TestAMalformedEditOfAClientNamesEveryBrokenField(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.admin("acme", "user:ada")
	made := w.newClient(ada, "")
	path := clients + "/" + made.ID
	checkFaults(t, w, ada, "PATCH", path, []fault{
		{"an empty body", "", 400, nil},
		{"a duplicate key", `{"name":"a","name":"b"}`, 400, []string{"/name"}},
		{"no field", `{}`, 422, []string{""}},
		{
			"null everywhere", `{"name":null,"redirect_uris":null,"scopes":null}`, 422,
			[]string{"/name", "/redirect_uris", "/scopes"},
		},
		{"wrong types", `{"name":1,"redirect_uris":"x","scopes":{}}`, 422, []string{"/name", "/redirect_uris", "/scopes"}},
		{"the method", `{"name":"a","method":"client_secret_basic"}`, 422, []string{"/method"}},
		{"the method alone", `{"method":"none"}`, 422, []string{"/method"}},
		{"the secret", `{"secret":"mine"}`, 422, []string{"/secret"}},
		{"a blank name", `{"name":" "}`, 422, []string{"/name"}},
		{"a name of two lines", `{"name":"a\nb"}`, 422, []string{"/name"}},
		{"a long name", `{"name":"` + strings.Repeat("x", identity.MaxName+1) + `"}`, 422, []string{"/name"}},
		{"no address", `{"redirect_uris":[]}`, 422, []string{"/redirect_uris"}},
		{
			"bad addresses", `{"redirect_uris":["https://a.example/","http://a.example/","javascript:alert(1)"]}`, 422,
			[]string{"/redirect_uris/1", "/redirect_uris/2"},
		},
		{
			"eleven addresses", `{"redirect_uris":[` + strings.Repeat(`"https://a.example/",`, 10) + `"https://a.example/"]}`,
			422,
			[]string{"/redirect_uris"},
		},
		{"no scope", `{"scopes":[]}`, 422, []string{"/scopes"}},
		{
			"bad scopes", `{"name":"","scopes":["svc:tasks:read","svc:fly","svc:a2a:serve"]}`, 422,
			[]string{"/name", "/scopes/1", "/scopes/2"},
		},
		{"an agent out of reach", `{"scopes":["svc:a2a:write","agent:nobody"]}`, 422, []string{"/scopes/1"}},
	})
	var got OAuthClient
	if w.do(ada, "GET", path, "").want(200).into(&got); !cmp.Equal(made.OAuthClient, got) {
		t.Errorf("something was stored: got %v, want %v", cmp.Diff(made.OAuthClient, got), made.OAuthClient)
	}
}

func TestTheSecretOfAClientIsRotated(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada, eve := w.admin("acme", "user:ada"), w.admin("globex", "user:eve")
	made := w.newClient(ada, `,"method":"client_secret_post"`)
	path := clients + "/" + made.ID
	var next, last OAuthClientWithSecret
	res := w.do(ada, "POST", path+"/rotate", `{"overlap_seconds":60}`).want(200)
	res.into(&next)
	if next.ID != made.ID || len(deref(next.Secret)) != 52 || *next.Secret == *made.Secret ||
		next.OldSecretExpiresAt == nil || res.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("got %+v %v, want the id %v, a new secret, an expiry of the old one and no-store", next, res.Header, made.ID)
	}
	if read := w.do(ada, "GET", path, "").want(200); read.Header.Get("ETag") != res.Header.Get("ETag") ||
		!strings.Contains(read.Body, *next.OldSecretExpiresAt) ||
		strings.Contains(read.Body, *next.Secret) {
		t.Error(read.Header, read.Body)
	}
	w.do(ada, "POST", path+"/rotate", "").want(200).into(&last) // at once, without a body
	if last.OldSecretExpiresAt != nil || *last.Secret == *next.Secret {
		t.Errorf("got %+v, want OldSecretExpiresAt nil, Secret not %v", last, *next.Secret)
	}
	public := w.newClient(ada, "")
	if p := w.do(ada, "POST", clients+"/"+public.ID+"/rotate", "{}").want(409).problem(); p.Code != "oauth.no_secret" ||
		!strings.Contains(p.Detail, "no secret") {
		t.Errorf("got %+v, want Code oauth.no_secret, containing no secret", p)
	}
	checkFaults(t, w, ada, "POST", path+"/rotate", []fault{
		{"below", `{"overlap_seconds":-1}`, 422, []string{"/overlap_seconds"}},
		{"above", `{"overlap_seconds":604801}`, 422, []string{"/overlap_seconds"}},
		{"null", `{"overlap_seconds":null}`, 422, []string{"/overlap_seconds"}},
		{"a fraction", `{"overlap_seconds":1.5}`, 422, []string{"/overlap_seconds"}},
		{"an unknown field", `{"secret":"mine"}`, 422, []string{"/secret"}},
		{"both", `{"secret":"mine","overlap_seconds":-1}`, 422, []string{"/secret", "/overlap_seconds"}},
	})
	w.do(eve, "POST", "/api/v1/orgs/globex/clients/"+made.ID+"/rotate", "").want(404)
	w.do(ada, "POST", clients+"/"+oauth.CommandLine.ID+"/rotate", "").want(404)
	if diff := cmp.Diff([]string{
		"user:ada oauth.client.rotate " + public.ID + " refused oauth.no_secret",
		"user:ada oauth.client.rotate " + made.ID + " done",
		"user:ada oauth.client.rotate " + made.ID + " done",
	}, w.audited(ada, "?action=oauth.client.rotate")[6:]); diff != "" {
		t.Error(diff)
	}
	log := w.do(ada, "GET", log, "").want(200).Body
	for _, secret := range []*string{made.Secret, next.Secret, last.Secret} {
		if strings.Contains(log, *secret) {
			t.Error("the log contains a secret")
		}
	}
}
