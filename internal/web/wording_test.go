package web_test

import (
	"net/http"
	"strconv"
	"testing"

	"github.com/parley-dev/parley/internal/identity"
)

// Errors on pages are worded for people, and audited like those of the REST API.
func TestRefusalsSpeakToPeopleAndAreAudited(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	for path, action := range map[string]identity.AuditAction{
		"/agents": identity.AgentCreate, "/agents/scout": identity.AgentUpdate, "/agents/scout/state": identity.AgentUpdate,
		"/agents/scout/status": identity.AgentUpdate, "/agents/scout/connect": identity.KeyCreate,
	} {
		before := refusals(t, o, action)
		o.bob.post(path, "id", "x", "name", "X", "rights", "worker", "expires", "90").
			want(http.StatusForbidden, "Only admins can").lacks("svc:", "the key needs")
		if after := refusals(t, o, action); after != before+1 {
			t.Errorf("%s: %d refusals of %s, want %d", path, after, action, before+1)
		}
	}
	o.bob.get("/agents/new").want(http.StatusForbidden, "Only admins can").lacks("the key needs")
	o.bob.account("/keys", "scopes", "svc:a2a:serve", "expires", "90").want(http.StatusForbidden)
	if n := refusals(t, o, identity.KeyCreate); n != 2 {
		t.Errorf("got %v refusals of a key, want 2", n)
	}
}

func refusals(t *testing.T, o *office, action identity.AuditAction) int {
	t.Helper()
	list, err := o.Store.Audit().List(t.Context(), "acme", identity.AuditFilter{Action: action, Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for i := range list {
		if list[i].Outcome == identity.Refused {
			n++
		}
	}
	return n
}

// The error of a form that was sent with other values does not mention headers.
func TestAReusedFormSpeaksToPeople(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	const said = "This form was already sent and carried out with other values"
	fields := []string{"id", "planner", "visibility", "private", "name"}
	o.ada.post("/agents", append(fields, "Planner")...).want(http.StatusSeeOther)
	o.ada.again("/agents", append(fields, "Other")...).want(http.StatusConflict, said).lacks("Idempotency-Key")
	own := []string{"scopes", "svc:tasks:read", "expires", "30", "name"}
	o.ada.account("/keys", append(own, "one")...).want(http.StatusOK)
	o.ada.accountAgain("/keys", append(own, "two")...).want(http.StatusConflict, said).lacks("Idempotency-Key")
	o.ada.last = "\u00e4"
	o.ada.again("/agents", append(fields, "Other")...).want(http.StatusBadRequest, "This form is incomplete").
		lacks("Idempotency-Key")
}

// The page shows all errors, also of fields that it does not have.
func TestNoErrorOfAFieldIsLost(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	const said = "The page cannot be shown with these parameters"
	o.ada.get("/audit?cursor=x").want(http.StatusUnprocessableEntity, said+". <span>Cursor: ").
		lacks("Nothing was saved", "see below")
	o.ada.get("/audit?from=x").want(http.StatusUnprocessableEntity, said+": see below.", "Must be a day").
		lacks("<span>From:")
	o.ada.post("/keys", "principal", "agent:scout", "expires", "90").
		want(http.StatusUnprocessableEntity, "Nothing was saved: see below.", "Choose at least one right.").
		lacks("<span>Scopes:")
}

// A rate limit is explained on the page and in the Retry-After header.
func TestAFormThatIsRateLimitedSaysUntilWhen(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	for range 30 {
		res := o.ada.account("/keys", append(adminKey, "wrong")...)
		if res.code != http.StatusTooManyRequests {
			continue
		}
		wait := res.header.Get("Retry-After")
		if n, err := strconv.Atoi(wait); err != nil || n < 1 {
			t.Errorf("Retry-After = %q, want a number of seconds", wait)
		}
		res.want(http.StatusTooManyRequests, "Try again in "+wait+" s.")
		return
	}
	t.Error("nothing limits guesses")
}

// Forms of the account page name the membership of the page.
func TestFormsOfTheAccountNameTheOrg(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.ada.send(http.MethodGet, "/account", nil).want(http.StatusOK,
		`action="/account/password?org=acme"`, `action="/account/keys?org=acme"`, `action="/account/orgs?org=acme"`)
}
