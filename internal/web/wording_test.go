package web_test

import (
	"net/http"
	"strconv"
	"testing"

	"github.com/parley-dev/parley/internal/identity"
)

// Pages refuse in the words of people, and the audit log learns of it as of a refusal over REST.
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
			t.Errorf("%s: %d refusals of %s, then %d", path, before, action, after)
		}
	}
	o.bob.get("/agents/new").want(http.StatusForbidden, "Only admins can").lacks("the key needs")
	o.bob.account("/keys", "scopes", "svc:a2a:serve", "expires", "90").want(http.StatusForbidden)
	if n := refusals(t, o, identity.KeyCreate); n != 2 {
		t.Error(n, "refusals of a key")
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

// A form that comes back with other fields is not told of headers.
func TestAReusedFormSpeaksToPeople(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	const said = "This form was sent before, and what it said then was done"
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

// What is wrong is on the page, also if no field stands for it.
func TestNoErrorOfAFieldIsLost(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	const said = "This cannot be shown as it was asked for"
	o.ada.get("/audit?cursor=x").want(http.StatusUnprocessableEntity, said+". <span>Cursor: ").
		lacks("Nothing was saved", "see below")
	o.ada.get("/audit?from=x").want(http.StatusUnprocessableEntity, said+": see below.", "Must be a day").
		lacks("<span>From:")
	o.ada.post("/keys", "principal", "agent:scout", "expires", "90").
		want(http.StatusUnprocessableEntity, "Nothing was saved: see below.", "Choose at least one right.").
		lacks("<span>Scopes:")
}

// Who was too fast is told when to come back, by the page and by the header.
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
			t.Errorf("Retry-After: %q", wait)
		}
		res.want(http.StatusTooManyRequests, "Try again in "+wait+" s.")
		return
	}
	t.Error("nothing limits guesses")
}

// Forms of the account page name the membership that the page is about.
func TestFormsOfTheAccountNameTheOrg(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.ada.send(http.MethodGet, "/account", nil).want(http.StatusOK,
		`action="/account/password?org=acme"`, `action="/account/keys?org=acme"`, `action="/account/orgs?org=acme"`)
}
