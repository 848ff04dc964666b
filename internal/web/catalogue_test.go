package web_test

import (
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/task"
)

// The catalogue finds the org's agents and public ones of others, and hides the rest.
func TestCataloguePage(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.bob.get("/catalogue").want(http.StatusOK, "Scout", "this org", `href="/orgs/acme/agents/scout"`)
	o.bob.get("/catalogue?q=zzzz").want(http.StatusOK, "No agent matches", "Clear the filters")
	tariffs := agent.Agent{
		ID: "tariffs", Org: "globex", Name: "Zölle <b>", Description: "Knows <i>customs</i>.", Public: true,
		Quota:   agent.Quota{Tasks: 7, Per: agent.Day},
		Profile: agent.Profile{Provider: agent.Provider{Organization: "Globex <u>", URL: "https://globex.example"}},
	}
	tariffs.Describe([]agent.Skill{agent.PlainSkill("customs")})
	o.Agent(tariffs)
	o.Agent(agent.Agent{ID: "vault", Org: "globex", Name: "Customs vault"})
	for query, want := range map[string]bool{
		"": true, "?q=zolle": true, "?q=CUST": true, "?skill=customs": true, "?presence=offline": true, "?presence=busy": false,
		"?from=own": false, "?q=customs&skill=other": false,
	} {
		page := o.bob.get("/catalogue"+query).want(http.StatusOK).lacks("vault", "<b>Z", "Zölle <b>", "<i>customs", "Globex <u>")
		if want {
			page.want(http.StatusOK, "Zölle &lt;b&gt;", "Globex &lt;u&gt;", "7 of 7 left")
		} else {
			page.lacks(`id="agent-tariffs"`)
		}
	}
	o.bob.get("/catalogue?presence=asleep").want(http.StatusUnprocessableEntity, `id="err-presence"`)
	o.bob.get("/catalogue?skill=%C3%A9").want(http.StatusUnprocessableEntity, `id="err-skill"`)
	o.bob.get("/catalogue?cursor=x").want(http.StatusUnprocessableEntity, "is not a cursor of this list")

	// The page of another org's agent sends tasks, counts them, and shows nothing else of the org.
	o.bob.get("/agents/tariffs").want(http.StatusOK, "Knows &lt;i&gt;customs&lt;/i&gt;.", "7 of 7 left").lacks("Edit the entry", "Connect a worker")
	o.bob.post("/agents/tariffs/tasks", "message", "").want(http.StatusUnprocessableEntity, "Must not be empty")
	o.bob.post("/agents/tariffs/tasks", "message", "What is the duty on tea?").leads(o.bob, "What is the duty on tea?")
	o.bob.get("/agents/tariffs").want(http.StatusOK, "6 of 7 left", "submitted")
	o.bob.get("/agents/vault").want(http.StatusNotFound)
	o.bob.get("/agents/nothing").want(http.StatusNotFound)
	o.ada.post("/agents/tariffs", "name", "Mine", "description", "", "visibility", "public").want(http.StatusNotFound)
	o.ada.post("/agents/tariffs/state", "disabled", "true").want(http.StatusNotFound)
}

// A long catalogue has pages.
func TestTheCatalogueHasPages(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	for i := range 51 {
		o.Agent(agent.Agent{ID: fmt.Sprintf("a%02d", i), Org: "globex", Name: fmt.Sprintf("Helper %d", i), Public: true})
	}
	first := o.bob.get("/catalogue?q=helper").want(http.StatusOK, `id="agent-a00"`, `id="agent-a49"`, `rel="next"`).lacks(`id="agent-a50"`)
	_, next, _ := strings.Cut(first.body, `rel="next" href="`)
	next, _, _ = strings.Cut(html.UnescapeString(next), `"`)
	o.bob.send(http.MethodGet, next, nil).want(http.StatusOK, `id="agent-a50"`, "First page").lacks(`id="agent-a49"`, `rel="next"`)
}

// Admins send a failed task of any sender again; other members and forms of other sites do not.
func TestSendAgain(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	r.bob.post("/agents/scout/tasks", "message", "Write it", "once", "t1").want(http.StatusSeeOther)
	newest := func() string {
		a := r.access("user:ada", identity.ReadTasks, identity.Admin)
		list, err := r.Tasks.Tasks.OrgTasks(t.Context(), a, dispatch.Filter{Limit: 1})
		if err != nil || len(list) == 0 {
			t.Fatalf("tasks: %d, %v, want one", len(list), err)
		}
		return list[0].UID
	}
	old := newest()
	page := "/tasks/" + old
	r.ada.post(page+"/rerun", "once", "early").want(http.StatusSeeOther) // not over: refused
	if got := newest(); got != old {
		t.Errorf("a running task was sent again as %s", got)
	}
	r.report(task.Report{State: task.Failed, Message: &task.Message{
		Role: task.RoleAgent, Parts: []task.Part{{Kind: task.TextPart, Text: "Broke."}},
	}})
	r.ada.get(page).want(http.StatusOK).has(`id="rerun"`)
	r.bob.post(page+"/rerun", "once", "x").want(http.StatusForbidden)
	form := newForm(page+"/rerun", url.Values{"once": {"y"}})
	form.Header.Set("Sec-Fetch-Site", "cross-site")
	form.AddCookie(r.ada.cookie)
	w := httptest.NewRecorder()
	if r.handler.ServeHTTP(w, form); w.Code != http.StatusForbidden {
		t.Errorf("from another site: got %d, want 403", w.Code)
	}
	if got := newest(); got != old {
		t.Fatalf("got the new task %s, want none", got)
	}
	to := r.ada.post(page+"/rerun", "once", "z").want(http.StatusSeeOther).Header.Get("Location")
	again := r.ada.post(page+"/rerun", "once", "z").want(http.StatusSeeOther).Header.Get("Location")
	if made := newest(); made == old || to != "/orgs/acme/tasks/"+made || again != to {
		t.Errorf("sent again as %s, redirects to %s and %s; want one new task", made, to, again)
	}
}
