package web_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/oauth"
)

var clientSecret = regexp.MustCompile(`<pre id="secret-value">([a-z0-9]{40,})</pre>`)

func reports(method string) []string {
	return []string{
		"name", "Reports", "redirect_uris", "https://reports.example/done\r\n\r\ncom.example.app:/done",
		"scopes", "svc:tasks:read", "method", method,
	}
}

// client returns the only client of acme.
func (o *office) client(t *testing.T) oauth.Client {
	t.Helper()
	list, err := o.Store.OAuth().OrgClients(t.Context(), "acme", oauth.ClientFilter{Limit: 10})
	if err != nil || len(list) != 1 {
		t.Fatalf("got %v %v, want no error, len(list) 1", list, err)
	}
	return list[0]
}

func TestAClientIsRegistered(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.ada.get("/clients").want(http.StatusOK, "No clients yet")
	o.ada.get("/clients/new").want(http.StatusOK, `value="svc:tasks:read" checked`, `value="none" checked`).
		lacks("svc:a2a:serve")
	made := o.ada.post("/clients", reports("client_secret_basic")...).want(http.StatusCreated, "Copy the secret now")
	if made.header.Get("Cache-Control") != "no-store" {
		t.Errorf("got %v, want Cache-Control no-store", made.header)
	}
	value := clientSecret.FindStringSubmatch(made.body)[1]
	o.ada.again("/clients", reports("client_secret_basic")...).want(http.StatusCreated, "This form was already sent").
		lacks(value)
	c := o.client(t)
	if c.Name != "Reports" || len(c.RedirectURIs) != 2 || c.Method != oauth.SecretBasic || len(c.Scopes) != 1 ||
		c.CreatedBy != "user:ada" {
		t.Errorf("got %+v, want Name Reports, len(RedirectURIs) 2, Method %v, len(Scopes) 1, CreatedBy user:ada", c,
			oauth.SecretBasic)
	}
	o.ada.get("/clients").want(http.StatusOK, c.ID, "Reports", "https://reports.example/done", "secret in a header").
		lacks(value)
	o.ada.get("/clients/"+c.ID).want(http.StatusOK, "Replace the secret").lacks(value)

	rotated := o.ada.post("/clients/"+c.ID+"/rotate", "overlap", "3600").
		want(http.StatusCreated, "Copy the secret now", "Old secret")
	if next := clientSecret.FindStringSubmatch(rotated.body)[1]; next == value {
		t.Error("the secret is the same")
	}
	o.ada.again("/clients/"+c.ID+"/rotate", "overlap", "3600").want(http.StatusCreated, "This form was already sent")
	o.ada.post("/clients/"+c.ID+"/rotate", "overlap", "").
		want(http.StatusUnprocessableEntity, "Must be one of the choices.")

	o.ada.post("/clients/"+c.ID+"/delete").leads(o.ada, "was deleted", "No clients yet")
	o.ada.again("/clients/"+c.ID+"/delete").leads(o.ada,
		`<p class="notice bad" role="alert">This client no longer exists.`)
	o.ada.post("/clients/x/delete").leads(o.ada, `<p class="notice bad" role="alert">This client no longer exists.`)
	o.ada.get("/clients/" + c.ID).want(http.StatusNotFound)
	o.ada.get("/clients/x").want(http.StatusNotFound)
	o.ada.get("/clients?cursor=x").want(http.StatusUnprocessableEntity)
}

func TestAClientWithoutASecretShowsNone(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.ada.post("/clients", reports("none")...).leads(o.ada, "has no secret").lacks("Replace the secret")
	c := o.client(t)
	o.ada.post("/clients/"+c.ID+"/rotate", "overlap", "0").want(http.StatusConflict, "no secret to rotate")
}

func TestAClientIsChanged(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.ada.post("/clients", reports("none")...).want(http.StatusSeeOther)
	c := o.client(t)
	at := "/clients/" + c.ID
	edit := func(version, name string) []string {
		return []string{
			"version", version, "name", name, "redirect_uris", "https://new.example/done", "scopes", "svc:tasks:read", "scopes",
			"svc:admin:admin",
			"agents", "scout",
		}
	}
	o.ada.post(at, edit("1", "News")...).leads(o.ada, "The client was changed.", "News",
		`value="svc:admin:admin" checked`, `value="agent:scout" checked`)
	o.ada.again(at, edit("1", "News")...).leads(o.ada, "The client was changed.")
	// A change based on an older version fails.
	stale := o.ada.post(at, edit("1", "Mine")...).
		want(http.StatusPreconditionFailed, "Another user has changed it", `value="News"`)
	stale.lacks("ETag", `value="Mine"`)
	o.ada.post(at, edit("", "Mine")...).want(http.StatusBadRequest)
	o.ada.post(at, "version", "2", "name", "", "redirect_uris", "http://bad.example/", "scopes", "agent:scout").
		want(http.StatusUnprocessableEntity, `id="err-name"`, `id="err-redirect_uris"`, "Choose at least one right.",
			"http://bad.example/")
	if c := o.client(t); c.Name != "News" || !c.Scopes.Has(identity.Admin) {
		t.Errorf("got %+v, want Name News with svc:admin:admin", c)
	}
}

func TestTheFormOfAClientSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.ada.post("/clients", "redirect_uris", "javascript:alert(1)", "method", "magic").want(http.StatusUnprocessableEntity,
		`id="err-name"`, `id="err-redirect_uris"`, `id="err-scopes"`, `id="err-method"`, "javascript:alert(1)")
	o.ada.post("/clients", "name", "x", "redirect_uris", strings.Repeat("https://a.example/\n", 11), "scopes",
		"svc:a2a:serve", "method", "none").
		want(http.StatusUnprocessableEntity, "Must have 1 to 10 entries.", "for workers")
	o.ada.post("/clients", "name", "x", "redirect_uris", "https://a.example/", "scopes", "svc:a2a:write", "agents",
		"ghost", "method", "none").
		want(http.StatusUnprocessableEntity, "cannot reach", `value="ghost"`)
}
