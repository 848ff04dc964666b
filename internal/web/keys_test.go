package web_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/orgtest"
)

var workerKey = []string{
	"name", "worker of scout", "principal", "agent:scout", "scopes", "svc:a2a:serve", "expires",
	"90",
}

func TestANewKeyIsShownOnce(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.ada.get("/keys").want(http.StatusOK, "No keys yet", "Make the first key")
	o.ada.get("/keys/new").want(http.StatusOK, "Worker of Scout", "/orgs/acme/keys/new?agent=scout&amp;preset=worker")
	o.ada.get("/keys/new?preset=worker&agent=scout").want(http.StatusOK,
		`value="worker of scout"`, `value="agent:scout" selected`, `value="svc:a2a:serve" checked`, `value="90" selected`)

	made := o.ada.post("/keys", workerKey...).want(http.StatusCreated, "Copy the key now", "export PARLEY_KEY=",
		"/api/v1/agents/scout/claim")
	if made.header.Get("Cache-Control") != "no-store" {
		t.Errorf("the secret may be kept: got %v, want Cache-Control no-store", made.header)
	}
	value := secretText.FindString(made.body)
	if c, err := o.Auth.Authenticate(t.Context(), value); err != nil || c.Ref() != "agent:scout" {
		t.Fatalf("got %v %v %v, want no error, Ref agent:scout", value, c, err)
	}
	again := o.ada.again("/keys", workerKey...).want(http.StatusCreated, "This form was already sent", "worker of scout")
	again.lacks(value)
	if again.header.Get("Cache-Control") != "no-store" {
		t.Errorf("got %v, want Cache-Control no-store", again.header)
	}
	list, err := o.Store.Identity().Keys(t.Context(), "acme", identity.KeyFilter{})
	if err != nil || len(list) != 1 {
		t.Fatalf("got %v %v, want no error, len(list) 1", list, err)
	}
	k := list[0]
	if left := time.Until(k.ExpiresAt); left < 89*24*time.Hour || left > 91*24*time.Hour || k.CreatedBy != "user:ada" {
		t.Errorf("got %+v, want an expiry in 90 days and CreatedBy user:ada", k)
	}
	o.ada.get("/keys").want(http.StatusOK, "worker of scout", "works as an agent", k.Prefix).lacks(value)
	o.ada.get("/keys/"+k.ID).want(http.StatusOK, "Claim tasks of an agent", k.ID).lacks(value, "sent before")
	// Another session of the same user does not see the secret either.
	other := *o.ada
	other.cookie = o.ada.site.ada.send(http.MethodPost, "/login", map[string][]string{
		"org": {"acme"}, "user": {"ada"}, "password": {rightPassword},
	}).cookie()
	other.again("/keys", workerKey...).want(http.StatusCreated, "This form was already sent").lacks(value)
}

func TestAFormThatIsSentAgainWithOtherContentIsRefused(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.ada.post("/keys", workerKey...).want(http.StatusCreated)
	other := append([]string{"name", "another"}, workerKey[2:]...)
	o.ada.again("/keys", other...).want(http.StatusConflict,
		"This form was already sent and carried out with other values", `value="another"`)
	// The stored fingerprint of a form does not depend on its password.
	o.ada.post("/keys", append([]string{"password", "a"}, workerKey...)...).want(http.StatusCreated, "Copy the key now")
	o.ada.again("/keys", append([]string{"password", "b"}, workerKey...)...).
		want(http.StatusCreated, "This form was already sent")
}

func TestTheFormOfAKeySaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	yesterday := orgtest.Now().AddDate(0, 0, -1).Format(time.DateOnly)
	for name, c := range map[string]struct {
		fields []string
		want   string
	}{
		"nobody": {[]string{"scopes", "svc:tasks:read", "expires", "90"}, "Choose the principal of the key."},
		"unknown": {
			[]string{"principal", "agent:nobody", "scopes", "svc:tasks:read", "expires", "90"},
			"agent:nobody&#34; not found in this org",
		},
		"no right":  {[]string{"principal", "agent:scout", "expires", "90"}, "Choose at least one right."},
		"bad right": {[]string{"principal", "agent:scout", "scopes", "svc:x", "expires", "90"}, "unknown scope"},
		"unknown agent": {[]string{
			"principal", "agent:scout", "scopes", "svc:a2a:write", "agents", "ghost", "expires",
			"90",
		}, "cannot reach"},
		"no expiry": {[]string{"principal", "agent:scout", "scopes", "svc:tasks:read"}, "Must be one of the choices."},
		"odd expiry": {
			[]string{"principal", "agent:scout", "scopes", "svc:tasks:read", "expires", "91"},
			"Must be one of the choices.",
		},
		"no day": {
			[]string{"principal", "agent:scout", "scopes", "svc:tasks:read", "expires_on", "soon"},
			"Must be a day",
		},
		"past day": {
			[]string{"principal", "agent:scout", "scopes", "svc:tasks:read", "expires_on", yesterday},
			"Must be in the future.",
		},
		"long name": {[]string{
			"name", strings.Repeat("x", 300), "principal", "agent:scout", "scopes", "svc:tasks:read",
			"expires", "90",
		}, `id="err-name"`},
		"another person": {
			[]string{"principal", "user:bob", "scopes", "svc:tasks:read", "expires", "90"},
			"you cannot create a key for another user",
		},
		"no password": {
			[]string{"principal", "user:ada", "scopes", "svc:admin:admin", "expires", "90"},
			"Is required for a key that can administer the org.",
		},
		"wrong password": {
			[]string{"principal", "user:ada", "scopes", "svc:admin:admin", "expires", "90", "password", "no"},
			"rong",
		},
	} {
		t.Run(name, func(t *testing.T) {
			res := o.ada.post("/keys", c.fields...)
			if res.code != http.StatusUnprocessableEntity && res.code != http.StatusForbidden {
				t.Fatalf("got %d, want 422 or 403: %s", res.code, res.main())
			}
			if !strings.Contains(strings.ToLower(res.body), strings.ToLower(c.want)) {
				t.Errorf("want %q: %s", c.want, res.main())
			}
			res.lacks(`value="no"`)
		})
	}
	if list, err := o.Store.Identity().Keys(t.Context(), "acme", identity.KeyFilter{}); err != nil || len(list) != 0 {
		t.Errorf("got %v %v, want no error, len(list) 0", list, err)
	}
	o.ada.get("/keys/new?preset=x").want(http.StatusUnprocessableEntity)
	o.ada.get("/keys/new?agent=%3Cx").want(http.StatusUnprocessableEntity)
	o.ada.get("/keys?view=x").want(http.StatusUnprocessableEntity)
	o.ada.get("/keys?cursor=x").want(http.StatusUnprocessableEntity)
	o.ada.get("/keys?principal=x").want(http.StatusUnprocessableEntity)
	o.ada.get("/keys/key-nope").want(http.StatusNotFound)
	o.ada.get("/keys/%3Cscript%3E").want(http.StatusNotFound)
}

func TestAdminKeysNeedThePasswordAgain(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	fields := []string{
		"principal", "user:ada", "scopes", "svc:admin:admin", "scopes", "agent:scout", "expires", "never",
		"password", rightPassword,
	}
	made := o.ada.post("/keys", fields...).want(http.StatusCreated, "never ends", "only these agents")
	made.lacks(rightPassword)
	k := o.only(t)
	if !k.ExpiresAt.IsZero() || !k.Scopes.Has(identity.Admin) || !k.Scopes.Has("agent:scout") {
		t.Errorf("got %+v, want no expiry, svc:admin:admin and agent:scout", k)
	}
	o.ada.post("/keys/"+k.ID+"/rotate", "overlap", "0").want(http.StatusUnprocessableEntity, "Is required for a key")
	o.ada.post("/keys/"+k.ID+"/rotate", "overlap", "0", "password", rightPassword).
		want(http.StatusCreated, "Copy the key now")
}

func TestAFormOfSomebodySignedOutKeepsNoPassword(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	nobody := &visitor{tb: t, site: o}
	nobody.post("/keys", append([]string{"password", rightPassword}, workerKey...)...).
		want(http.StatusUnauthorized, "You are signed out", "worker of scout").lacks(rightPassword)
}

// only returns the only key of acme.
func (o *office) only(t *testing.T) identity.Key {
	t.Helper()
	list, err := o.Store.Identity().Keys(t.Context(), "acme", identity.KeyFilter{})
	if err != nil || len(list) != 1 {
		t.Fatalf("got %v %v, want no error, len(list) 1", list, err)
	}
	return list[0]
}

func (s *seen) cookie() *http.Cookie { return (&http.Response{Header: s.header}).Cookies()[0] }

func TestAKeyIsRotatedWithAnOverlap(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	old := o.key("agent:scout", identity.A2AServe)
	o.ada.get("/keys/"+old.ID).want(http.StatusOK, `value="86400" selected`)
	o.ada.post("/keys/"+old.ID+"/rotate", "overlap", "x").
		want(http.StatusUnprocessableEntity, "Must be one of the choices.")
	o.ada.post("/keys/"+old.ID+"/rotate", "overlap", "604801").want(http.StatusUnprocessableEntity, "Must be between")
	made := o.ada.post("/keys/"+old.ID+"/rotate", "overlap", "86400").
		want(http.StatusCreated, "The old key", "The new key", "End now", old.Prefix)
	value := secretText.FindString(made.body)
	if c, err := o.Auth.Authenticate(t.Context(), value); err != nil || c.Ref() != "agent:scout" {
		t.Fatalf("got %v %v, want no error, Ref agent:scout", c, err)
	}
	o.ada.again("/keys/"+old.ID+"/rotate", "overlap", "86400").want(http.StatusCreated, "This form was already sent").
		lacks(value)
	now, err := o.Store.Identity().Key(t.Context(), "acme", old.ID)
	if err != nil || time.Until(now.ExpiresAt) < 23*time.Hour || now.ReplacedBy == "" {
		t.Fatalf("got %+v %v, want an expiry in 24 h and a successor", now, err)
	}
	// Both pages show both keys.
	o.ada.get("/keys/"+old.ID).want(http.StatusOK, "End now", now.ReplacedBy, "rotated already")
	o.ada.get("/keys/"+now.ReplacedBy).want(http.StatusOK, "End now", old.ID)
	o.ada.get("/keys").want(http.StatusOK, "replaced")
	o.ada.post("/keys/"+old.ID+"/rotate", "overlap", "0").want(http.StatusConflict, "was rotated already")
	end := o.ada.post("/keys/"+old.ID+"/revoke", "back", "/orgs/acme/keys/"+now.ReplacedBy)
	end.leads(o.ada, "was revoked", "It no longer works")
	if !strings.HasSuffix(end.header.Get("Location"), now.ReplacedBy) {
		t.Error(end.header.Get("Location"))
	}
}

func TestRevokingShowsTheLastUse(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	k := o.key("agent:scout", identity.A2AServe)
	o.ada.get("/keys/"+k.ID+"?revoke").want(http.StatusOK, `<details id="revoke" open>`, "The key was never used.",
		"Revoke now")
	o.ada.post("/keys/"+k.ID+"/revoke").leads(o.ada, "was revoked", "revoked</span>").lacks("Revoke now")
	o.ada.again("/keys/"+k.ID+"/revoke").leads(o.ada, "was revoked")
	o.ada.get("/keys?view=ended").want(http.StatusOK, k.ID)
	o.ada.post("/keys/key-nope/revoke").want(http.StatusNotFound)
}

func TestViewsOfKeys(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	plain, admin := o.key("agent:scout", identity.TasksRead), o.key("service:crm", identity.Admin)
	soon, _, err := o.Operator.CreateKey(t.Context(), identity.KeyRequest{
		Principal: plain.Principal, Scopes: []string{"svc:tasks:read"}, ExpiresAt: orgtest.Now().Add(24 * time.Hour),
	})
	if err != nil {
		t.Fatal(err)
	}
	ended := o.key("agent:scout", identity.TasksWrite)
	if err := o.Operator.RevokeKey(t.Context(), "acme", ended.ID); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{"plain": plain.ID, "admin": admin.ID, "soon": soon.ID, "ended": ended.ID}
	for path, want := range map[string]string{
		"/keys": "plain admin soon", "/keys?view=ends": "soon", "/keys?view=unused": "plain admin soon",
		"/keys?view=admin": "admin",
		"/keys?view=ended": "ended", "/keys?principal=service:crm": "admin", "/keys?view=ends&principal=service:crm": "",
	} {
		page := o.ada.get(path).want(http.StatusOK)
		for name, id := range all {
			if strings.Contains(page.body, `id="`+id+`"`) != strings.Contains(want, name) {
				t.Errorf("%s: the key %q; want %q", path, name, want)
			}
		}
	}
	o.ada.get("/keys?view=ends&principal=service:crm").want(http.StatusOK, "No key of", `href="/orgs/acme/keys?view=ends"`)
	o.ada.get("/keys?principal=agent:gone").want(http.StatusOK, `<option value="agent:gone" selected>`)
}

func TestListsOfKeysHavePages(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	for range 51 {
		o.key("agent:scout", identity.TasksRead)
	}
	first := o.ada.get("/keys?view=unused").want(http.StatusOK, "Next page")
	_, next, _ := strings.Cut(first.body, `rel="next" href="`)
	next, _, _ = strings.Cut(next, `"`)
	second := o.ada.send(http.MethodGet, strings.ReplaceAll(next, "&amp;", "&"), nil).want(http.StatusOK, "First page").
		lacks("Next page")
	if n := strings.Count(second.body, `<tr role="row" id="`); n != 1 {
		t.Errorf("got %v rows on the second page, want 1", n)
	}
}

// Expiring keys are sorted by expiry, over all pages.
func TestKeysThatEndSoonStandInThatOrder(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	scout := identity.Principal{Org: "acme", Kind: identity.Agent, ID: "scout"}
	const n = 52
	want := make([]string, n)
	for i := range n {
		place := (i*31 + 7) % n // in an order unrelated to the ids
		k, _, err := o.Operator.CreateKey(t.Context(), identity.KeyRequest{
			Principal: scout, Scopes: []string{"svc:tasks:read"}, ExpiresAt: orgtest.Now().
					Add(time.Duration(place+1) * time.Hour),
		})
		if err != nil {
			t.Fatal(err)
		}
		want[place] = k.ID
	}
	var got []string
	path := "/orgs/acme/keys?view=ends"
	for range 2 {
		page := o.ada.send(http.MethodGet, path, nil).want(http.StatusOK)
		for _, row := range strings.Split(page.body, `<tr role="row" id="`)[1:] {
			id, _, _ := strings.Cut(row, `"`)
			got = append(got, id)
		}
		_, next, _ := strings.Cut(page.body, `rel="next" href="`)
		next, _, _ = strings.Cut(next, `"`)
		path = strings.ReplaceAll(next, "&amp;", "&")
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %d keys, %q; want %q", len(got), got, want)
	}
	o.ada.get("/keys?view=ends&cursor=" + want[0]).want(http.StatusUnprocessableEntity)
}
