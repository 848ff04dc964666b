package rest

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/oauth"
)

const (
	clients    = "/api/v1/orgs/acme/clients"
	clientBody = `{"name":"Reports","redirect_uris":["https://reports.example/done"]}`
)

func TestAClientOfAnOrgLives(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada, eve := w.admin("acme", "user:ada"), w.admin("globex", "user:eve")
	res := w.do(ada, "POST", clients, clientBody).want(201)
	var public OAuthClientWithSecret
	res.into(&public)
	if public.Secret != nil || public.Method != "none" || public.CreatedBy != "user:ada" ||
		res.Header.Get("Location") != clients+"/"+public.ID {
		t.Errorf("got %+v %v, want Secret nil, Method none, CreatedBy user:ada, Location %v", public, res.Header,
			clients+"/"+public.ID)
	}
	// svc:admin:admin must be requested explicitly.
	if diff := cmp.Diff([]string{"svc:tasks:read", "svc:tasks:write", "svc:a2a:write"}, public.Scopes); diff != "" {
		t.Errorf("mismatch (-want +got):\n%s", diff)
	}
	var made OAuthClientWithSecret
	w.do(ada, "POST", clients,
		`{"name":" Desk ","redirect_uris":["http://127.0.0.1/done","com.example.desk:/done"],`+
			`"scopes":["svc:admin:admin","agent:fixer"],"method":"client_secret_post"}`).
		want(201).into(&made)
	if made.Secret == nil || len(*made.Secret) != 52 || made.Name != "Desk" || made.Method != "client_secret_post" {
		t.Errorf("got %+v, want Secret not nil, len(*made.Secret) 52, Name Desk, Method client_secret_post", made)
	}
	var got OAuthClient
	res = w.do(ada, "GET", clients+"/"+made.ID, "").want(200)
	res.into(&got)
	if diff := cmp.Diff(made.OAuthClient, got); diff != "" || strings.Contains(res.Body, "secret\"") {
		t.Errorf("got %v %v, want without secret\"", diff, res.Body)
	}
	var first, second OAuthClientList
	w.do(ada, "GET", clients+"?limit=1", "").want(200).into(&first)
	w.do(ada, "GET", clients+"?limit=1&cursor="+deref(first.NextCursor), "").want(200).into(&second)
	if len(first.Clients) != 1 || first.Clients[0].ID != made.ID || len(second.Clients) != 1 ||
		second.Clients[0].ID != public.ID || second.NextCursor != nil {
		t.Errorf("got %+v, then %+v, want %v, then %v on the last page", first, second, made.ID, public.ID)
	}

	// Another org cannot see or delete them, nor the built-in client.
	for _, id := range []string{made.ID, oauth.CommandLine.ID} {
		w.do(eve, "GET", "/api/v1/orgs/globex/clients/"+id, "").want(404)
		w.do(eve, "DELETE", "/api/v1/orgs/globex/clients/"+id, "").want(404)
	}
	if body := w.do(eve, "GET", "/api/v1/orgs/globex/clients", "").want(200).
		Body; !strings.Contains(body, `"clients":[]`) {
		t.Errorf("got %v, want containing \"clients\":[]", body)
	}

	w.do(ada, "DELETE", clients+"/"+made.ID, "").want(200).into(&got)
	if got.ID != made.ID {
		t.Errorf("got %+v, want ID %v", got, made.ID)
	}
	w.do(ada, "DELETE", clients+"/"+made.ID, "").want(404)
	w.do(ada, "GET", clients+"/"+made.ID, "").want(404)
	w.do(ada, "POST", clients, `{"name":"x","redirect_uris":[]}`).want(422)
	if diff := cmp.Diff([]string{
		"user:ada oauth.client.create x refused request.invalid",
		"user:ada oauth.client.delete " + made.ID + " done",
		"user:ada oauth.client.create " + made.ID + " done",
		"user:ada oauth.client.create " + public.ID + " done",
	}, w.audited(ada, "?limit=4")); diff != "" {
		t.Error(diff)
	}
	if body := w.do(ada, "GET", log, "").want(200).Body; strings.Contains(body, *made.Secret) {
		t.Error("the log contains a secret")
	}
}

func TestAMalformedClientNamesEveryBrokenField(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.admin("acme", "user:ada")
	field := func(name, value string) string {
		return strings.TrimSuffix(clientBody, "}") + `,"` + name + `":` + value + `}`
	}
	checkFaults(t, w, ada, "POST", clients, []fault{
		{"an empty body", "", 400, nil},
		{"a duplicate key", `{"name":"a","name":"b"}`, 400, []string{"/name"}},
		{"no field", `{}`, 422, []string{"/name", "/redirect_uris"}},
		{
			"null everywhere", `{"name":null,"redirect_uris":null,"scopes":null,"method":null}`, 422,
			[]string{"/name", "/redirect_uris", "/scopes", "/method"},
		},
		{
			"wrong types", `{"name":1,"redirect_uris":"x","scopes":"svc:tasks:read","method":[]}`, 422,
			[]string{"/name", "/redirect_uris", "/scopes", "/method"},
		},
		{"an unknown field", field("client_secret", `"mine"`), 422, []string{"/client_secret"}},
		{"a blank name", `{"name":" ","redirect_uris":["https://a.example/"]}`, 422, []string{"/name"}},
		{"a name of two lines", `{"name":"a\nb","redirect_uris":["https://a.example/"]}`, 422, []string{"/name"}},
		{
			"a long name", `{"name":"` + strings.Repeat("x", identity.MaxName+1) + `","redirect_uris":["https://a.example/"]}`,
			422,
			[]string{"/name"},
		},
		{"no address", `{"name":"a","redirect_uris":[]}`, 422, []string{"/redirect_uris"}},
		{
			"bad addresses", `{"name":"a","redirect_uris":["https://a.example/","http://a.example/","javascript:alert(1)",` +
				`"https://a.example/#x",""]}`, 422,
			[]string{"/redirect_uris/1", "/redirect_uris/2", "/redirect_uris/3", "/redirect_uris/4"},
		},
		{"eleven addresses", `{"name":"a","redirect_uris":[` + strings.Repeat(`"https://a.example/",`, 10) +
			`"https://a.example/"]}`, 422, []string{"/redirect_uris"}},
		{"no scope", field("scopes", `[]`), 422, []string{"/scopes"}},
		{
			"bad scopes", field("scopes", `["svc:tasks:read","svc:fly","svc:a2a:serve"]`), 422,
			[]string{"/scopes/1", "/scopes/2"},
		},
		{"an agent out of reach", field("scopes", `["svc:a2a:write","agent:nobody"]`), 422, []string{"/scopes/1"}},
		{"an unknown method", field("method", `"private_key_jwt"`), 422, []string{"/method"}},
		{"an empty method", field("method", `""`), 422, []string{"/method"}},
	})
	for _, query := range []string{"?cursor=x", "?cursor=client-", "?limit=0", "?limit=201", "?state=live"} {
		w.do(ada, "GET", clients+query, "").want(422)
	}
	for _, id := range []string{"client-", "CLIENT-1", "client-%00", "key-1", strings.Repeat("x", 100)} {
		w.do(ada, "DELETE", clients+"/"+id, "").want(404)
	}
	if body := w.do(ada, "GET", clients, "").want(200).Body; !strings.Contains(body, `"clients":[]`) {
		t.Errorf("something was stored: got %v, want containing \"clients\":[]", body)
	}
}

func TestAnyCredentialMayAskWhoItIs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	scout := w.key("acme", "service:ci", identity.A2AWrite, "agent:fixer")
	var me Me
	w.do(scout, "GET", "/api/v1/me", "").want(200).into(&me)
	caller, err := w.auth.Authenticate(context.Background(), scout)
	if err != nil {
		t.Fatal(err)
	}
	want := Me{
		Org: "acme", Principal: "service:ci", Name: "ci", Scopes: []string{"svc:a2a:write", "agent:fixer"},
		Credential: caller.KeyID,
	}
	if diff := cmp.Diff(want, me); diff != "" {
		t.Errorf("mismatch (-want +got):\n%s", diff)
	}
	if p := w.do("", "GET", "/api/v1/me", "").want(401).problem(); p.Code != "auth.missing" {
		t.Errorf("got %+v, want Code auth.missing", p)
	}
	w.do(identity.NewSecret(), "GET", "/api/v1/me", "").want(401)
	w.do(scout, "GET", "/api/v1/me?x=1", "").want(422)
	w.do(scout, "POST", "/api/v1/me", "{}").want(405)
}
