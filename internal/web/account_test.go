package web_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/orgtest"
)

// account sends a form of the account page with a new token.
func (v *visitor) account(path string, pairs ...string) *seen {
	v.tb.Helper()
	v.last = orgtest.NewID("t")
	return v.accountAgain(path, pairs...)
}

// accountAgain sends a form of the account page with the previous token.
func (v *visitor) accountAgain(path string, pairs ...string) *seen {
	v.tb.Helper()
	form := url.Values{"once": {v.last}}
	for i := 0; i < len(pairs); i += 2 {
		form.Add(pairs[i], pairs[i+1])
	}
	return v.send(http.MethodPost, "/account"+path, form)
}

// anew starts another session of ada.
func (o *office) anew() *visitor {
	v := &visitor{tb: o.ada.tb, site: o}
	v.cookie = v.send(http.MethodPost, "/login", url.Values{
		"org": {"acme"}, "user": {"ada"}, "password": {rightPassword},
	}).cookie()
	return v
}

// A form that is sent without a session is shown again without its passwords.
func TestSignedOutFormsOfTheAccountKeepNoPassword(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	nobody := &visitor{tb: t, site: o}
	for path, pairs := range map[string][]string{
		"/password": {"old", "secret one", "password", "secret two", "repeat", "secret two", "kept", "a word"},
		"/keys":     {"name", "a word", "password", "secret one", "confirm", "secret two"},
		"/orgs":     {"org", "a word", "password", "secret one", "confirm", "secret two"},
	} {
		nobody.account(path, pairs...).want(http.StatusUnauthorized, "You are signed out", "a word").
			lacks("secret one", "secret two")
	}
}

var adminKey = []string{"name", "Laptop", "scopes", "svc:admin:admin", "expires", "30", "password"}

// The stored fingerprint of a form does not depend on its password.
func TestOwnKeyKeepsNothingOfThePassword(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.ada.account("/keys", append(adminKey, "wrong")...).
		want(http.StatusUnprocessableEntity, `id="err-password"`, "Is wrong.")
	o.ada.account("/keys", adminKey[:6]...).want(http.StatusUnprocessableEntity, "Is required for a key")
	made := o.ada.account("/keys", append(adminKey, rightPassword, "confirm", "x")...).want(http.StatusOK, `id="secret"`)
	value := secretText.FindString(made.body)
	o.ada.accountAgain("/keys", append(adminKey, rightPassword, "confirm", "y")...).
		want(http.StatusOK, "was already shown").lacks(value)
	if k := o.only(t); !k.Scopes.Has(identity.Admin) {
		t.Errorf("got %+v, want svc:admin:admin", k)
	}
}

// A form that another session sends again shows the key without its secret.
func TestASecretIsSealedUnderItsSession(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	own := []string{"name", "Laptop", "scopes", "svc:tasks:read", "expires", "30"}
	value := secretText.FindString(o.ada.account("/keys", own...).want(http.StatusOK, `id="secret"`).body)
	other := o.anew()
	other.last = o.ada.last
	other.accountAgain("/keys", own...).want(http.StatusOK, "was already shown").lacks(value)

	worker := []string{"rights", "worker", "expires", "90"}
	made := o.ada.post("/agents/scout/connect", worker...).want(http.StatusOK, `id="secret"`)
	if made.header.Get("Cache-Control") != "no-store" {
		t.Errorf("got %v, want Cache-Control no-store", made.header)
	}
	value = secretText.FindString(made.body)
	other.last = o.ada.last
	other.again("/agents/scout/connect", worker...).want(http.StatusOK, "was already shown").lacks(value)
	if list, err := o.Store.Identity().Keys(t.Context(), "acme", identity.KeyFilter{}); err != nil || len(list) != 2 {
		t.Errorf("got %v %v, want no error, len(list) 2", list, err)
	}
}

// A user can rotate only the own keys.
func TestOwnKeysAreRotatedOnTheAccountPage(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	made := o.bob.account("/keys", "name", "Laptop", "scopes", "svc:tasks:read", "expires", "30").
		want(http.StatusOK, `id="secret"`)
	first := secretText.FindString(made.body)
	k := o.only(t)
	rotate := "/keys/" + k.ID + "/rotate"
	o.bob.send(http.MethodGet, "/account", nil).want(http.StatusOK, `action="/account`+rotate+`?org=acme"`)
	o.ada.account(rotate, "overlap", "0").want(http.StatusNotFound)
	o.bob.account("/keys/%3Cb%3E/rotate", "overlap", "0").want(http.StatusNotFound)
	o.bob.account(rotate, "overlap", "x").
		want(http.StatusUnprocessableEntity, `id="err-overlap"`, `id="rotate-`+k.ID+`" open`)
	res := o.bob.account(rotate, "overlap", "3600").want(http.StatusOK, `id="secret"`, "It was rotated already")
	second := secretText.FindString(res.body)
	for _, value := range []string{first, second} {
		if c, err := o.Auth.Authenticate(t.Context(), value); err != nil || c.Ref() != "user:bob" {
			t.Errorf("got %v %v, want no error, Ref user:bob", value, err)
		}
	}
	o.bob.accountAgain(rotate, "overlap", "3600").want(http.StatusOK, "was already shown").lacks(second)
	o.bob.account(rotate, "overlap", "3600").want(http.StatusConflict)
	if n := refusals(t, o, identity.KeyRotate); n != 1 {
		t.Errorf("got %v refusals, want 1", n)
	}
	// A key with admin rights requires the password.
	o.ada.account("/keys", append(adminKey, rightPassword)...).want(http.StatusOK, `id="secret"`)
	list, err := o.Store.Identity().Keys(t.Context(), "acme", identity.KeyFilter{Scope: identity.Admin})
	if err != nil || len(list) != 1 {
		t.Fatalf("got %v %v, want no error, len(list) 1", list, err)
	}
	rotate = "/keys/" + list[0].ID + "/rotate"
	o.ada.account(rotate, "overlap", "0").want(http.StatusUnprocessableEntity, `id="err-password"`,
		"Is required for a key")
	o.ada.account(rotate, "overlap", "0", "password", rightPassword).want(http.StatusOK, `id="secret"`)
}

// Members see reported friction without access to admin pages.
func TestTheMenuLeadsToFriction(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.bob.get("/proposals").want(http.StatusOK, `href="/orgs/acme/friction"`)
	o.bob.get("/friction").want(http.StatusOK, `href="/orgs/acme/friction" aria-current="page"`)
}
