package rest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/task"
)

const agents = "/api/v1/orgs/acme/agents"

func TestAnAgentIsRegisteredChangedAndListed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.admin("acme", "user:ada")
	res := w.do(ada, "POST", agents,
		`{"id":"scout","name":"Scout","description":"Finds.","skills":["profiling"],"public":true}`).want(201)
	if l := res.Header.Get("Location"); l != agents+"/scout" {
		t.Errorf("got Location %q, want %v", l, agents+"/scout")
	}
	var a Agent
	res.into(&a)
	want := Agent{
		ID: "scout", Name: "Scout", Description: "Finds.", Skills: []string{"profiling"}, Public: true, Status: "offline",
		URL:       "/a2a/scout",
		CreatedAt: a.CreatedAt, UpdatedAt: a.CreatedAt,
	}
	if diff := cmp.Diff(want, a); diff != "" {
		t.Errorf("mismatch (-want +got):\n%s", diff)
	}
	if p := w.do(ada, "POST", agents, `{"id":"scout","name":"x"}`).want(409).problem(); p.Code != "agent.exists" {
		t.Errorf("got %+v, want Code agent.exists", p)
	}
	var list AgentList
	w.do(ada, "GET", agents, "").want(200).into(&list)
	if list.Total != 2 || list.Agents[0].ID != "fixer" || list.Agents[1].ID != "scout" {
		t.Errorf("got %+v, want Total 2, list.Agents[0].ID fixer, list.Agents[1].ID scout", list)
	}
	w.do(ada, "PATCH", agents+"/scout", `{"status":"busy","skills":[],"public":false,"disabled":true}`).want(200).into(&a)
	if a.Status != "busy" || a.PinnedStatus == nil || *a.PinnedStatus != "busy" || a.Public || !a.Disabled ||
		len(a.Skills) != 0 || a.Name != "Scout" {
		t.Errorf("got %+v, want Status busy, PinnedStatus busy, Public false, Disabled true, len(Skills) 0, Name Scout", a)
	}
	w.do(ada, "PATCH", agents+"/scout", `{"status":null}`).want(200).into(&a)
	if a.Status != "offline" || a.PinnedStatus != nil {
		t.Errorf("got %+v, want Status offline, PinnedStatus nil", a)
	}
	var got Agent
	w.do(ada, "GET", agents+"/scout", "").want(200).into(&got)
	if diff := cmp.Diff(a, got); diff != "" {
		t.Errorf("mismatch (-want +got):\n%s", diff)
	}
}

// An admin sets the card of an agent. Lists show tags only.
func TestAnAgentHasAProfile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.admin("acme", "user:ada")
	var a Agent
	w.do(ada, "POST", agents, `{"id":"scout","name":"Scout","version":"1.4.0",
		"documentation_url":"https://example.com/scout","icon_url":"https://example.com/i.png",
		"provider":{"organization":"Acme","url":"https://acme.example"},
		"skills":["chat",{"id":"profile","name":"Profile a service","description":"Finds what is slow.",
		"tags":["profiling","go"],"examples":["Why is it slow?"],"input_modes":["text/plain"],
		"output_modes":["application/json"]},{"id":"bare"}]}`).want(201).into(&a)
	want := Agent{
		ID: "scout", Name: "Scout", Skills: []string{"chat", "profiling", "go", "bare"}, Status: "offline", URL: "/a2a/scout",
		CreatedAt: a.CreatedAt, UpdatedAt: a.CreatedAt,
		Version: "1.4.0", DocumentationURL: "https://example.com/scout", IconURL: "https://example.com/i.png",
		Provider: &AgentProvider{"Acme", "https://acme.example"},
		SkillDetails: []AgentSkill{
			{ID: "chat", Name: "chat", Tags: []string{"chat"}},
			{
				ID: "profile", Name: "Profile a service", Description: "Finds what is slow.", Tags: []string{"profiling", "go"},
				Examples: []string{"Why is it slow?"}, InputModes: []string{"text/plain"},
				OutputModes: []string{"application/json"},
			},
			{ID: "bare", Name: "bare", Tags: []string{"bare"}},
		},
	}
	var got Agent
	w.do(ada, "GET", agents+"/scout", "").want(200).into(&got)
	if diff := cmp.Diff(want, a) + cmp.Diff(want, got); diff != "" {
		t.Errorf("mismatch (-want +got):\n%s", diff)
	}
	var list AgentList
	w.do(ada, "GET", agents, "").want(200).into(&list)
	if a := list.Agents[1]; a.SkillDetails != nil || a.Provider != nil || len(a.Skills) != 4 {
		t.Errorf("a list shows profiles: got %+v, want SkillDetails nil, Provider nil, len(Skills) 4", a)
	}
	// A change keeps the other fields; empty values remove a field.
	w.do(ada, "PATCH", agents+"/scout", `{"version":"","icon_url":"","provider":null}`).want(200).into(&a)
	want.Version, want.IconURL, want.Provider, want.UpdatedAt = "", "", nil, a.UpdatedAt
	a.Provider = nil
	if diff := cmp.Diff(want.SkillDetails, a.SkillDetails); diff != "" || a.DocumentationURL != want.DocumentationURL {
		t.Errorf("%+v mismatch (-want +got):\n%s", a, diff)
	}
	body := w.do(ada, "PATCH", agents+"/scout", `{"skills":["go"]}`).want(200).Body
	for _, gone := range []string{"skill_details", "version", "icon_url", "provider"} {
		if strings.Contains(body, gone) {
			t.Errorf("the body has %s, want it removed: %s", gone, body)
		}
	}
}

func TestARestrictedKeySeesItsAgentsOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.do(w.admin("acme", "user:ada"), "POST", agents, `{"id":"scout","name":"Scout"}`).want(201)
	for _, scope := range []identity.Scope{identity.TasksRead, identity.A2AWrite, identity.Admin} {
		only := w.key("acme", "service:partner", scope, "agent:scout")
		var list AgentList
		w.do(only, "GET", agents, "").want(200).into(&list)
		if list.Total != 1 || len(list.Agents) != 1 || list.Agents[0].ID != "scout" {
			t.Errorf("%s: got %+v, want Total 1, len(Agents) 1, list.Agents[0].ID scout", scope, list)
		}
		w.do(only, "GET", agents+"/scout", "").want(200)
		w.do(only, "GET", agents+"/fixer", "").want(404)
		w.do(w.key("acme", "service:partner", scope, "agent:*"), "GET", agents+"/fixer", "").want(200)
	}
}

func TestBadAgentsNameWhatIsWrong(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.admin("acme", "user:ada")
	for body, want := range map[string][]string{
		`{}`:                                         {"/id", "/name"},
		`{"id":"UPPER","name":"x"}`:                  {"/id"},
		`{"id":7,"name":null,"x":1}`:                 {"/id", "/name", "/x"},
		`{"id":"a","name":"x","skills":["\t"]}`:      {"/skills/0"},
		`{"id":"a","name":"x","skills":"y"}`:         {"/skills"},
		`{"id":"a","name":"x","skills":[1,null,{}]}`: {"/skills/1", "/skills/0", "/skills/2/id"},
		`{"id":"a","name":"x","skills":["ok",{"id":"b","name":5,"what":1,"tags":["a","a"],"input_modes":["text"]}]}`: {
			"/skills/1/name", "/skills/1/what",
		},
		`{"id":"a","name":"x","skills":["ok",{"id":"b","tags":["a","a"],"input_modes":["text"]}]}`: {
			"/skills/1/tags/1",
			"/skills/1/input_modes/0",
		},
		`{"id":"a","name":"x","skills":["ok",{"id":"ok","description":"d"}]}`: {"/skills/1/id"},
		`{"id":"a","name":"x","version":"-","documentation_url":"ftp://a","icon_url":"https://u:p@a"}`: {
			"/version",
			"/documentation_url", "/icon_url",
		},
		`{"id":"a","name":"x","provider":{}}`:                                      {"/provider/organization", "/provider/url"},
		`{"id":"a","name":"x","provider":{"organization":"A"}}`:                    {"/provider/url"},
		`{"id":"a","name":"x","provider":null}`:                                    {"/provider"},
		`{"id":"a","name":"x","provider":{"organization":1,"url":"javascript:1"}}`: {"/provider/organization", "/provider/url"},
		`{"id":"a","name":"x","public":1}`:                                         {"/public"},
		`{"id":"a","name":"x","description":"` + strings.Repeat("x", 2001) + `"}`:  {"/description"},
	} {
		if diff := cmp.Diff(want, at(w.do(ada, "POST", agents, body).want(422).problem())); diff != "" {
			t.Errorf("%s: mismatch (-want +got):\n%s", body, diff)
		}
	}
	for body, want := range map[string][]string{
		`{}`:                   {""},
		`{"name":""}`:          {"/name"},
		`{"name":null}`:        {"/name"},
		`{"status":"away"}`:    {"/status"},
		`{"status":true}`:      {"/status"},
		`{"id":"x"}`:           {"/id"},
		`{"skills":["a","a"]}`: {"/skills/1"},
	} {
		if diff := cmp.Diff(want, at(w.do(ada, "PATCH", agents+"/fixer", body).want(422).problem())); diff != "" {
			t.Errorf("%s: mismatch (-want +got):\n%s", body, diff)
		}
	}
}

func TestAdminsSeeTheTasksOfTheOrgsAgents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const tasks = "/api/v1/orgs/acme/a2a/tasks"
	admin := w.key("acme", "user:boss", identity.Admin)
	first, second, third := w.send("ada", "t-1", "one"), w.send("bob", "t-1", "two"), w.send("ada", "t-2", "three")
	w.recall(third.UID)
	list := func(query string) (uids []string, next string) {
		var l OrgTaskList
		w.do(admin, "GET", tasks+query, "").want(200).into(&l)
		uids = []string{}
		for _, x := range l.Tasks {
			uids = append(uids, x.UID)
		}
		return uids, deref(l.NextCursor)
	}
	for query, want := range map[string][]string{
		"":                                {third.UID, second.UID, first.UID},
		"?state=canceled":                 {third.UID},
		"?state=working":                  {},
		"?agent=fixer&state=submitted":    {second.UID, first.UID},
		"?agent=nobody":                   {},
		"?context_id=" + second.ContextID: {second.UID},
	} {
		if got, next := list(query); !cmp.Equal(want, got) || next != "" {
			t.Errorf("%s: got %v %q, want %v, next empty", query, got, next, want)
		}
	}
	got, next := list("?limit=2")
	if !cmp.Equal(got, []string{third.UID, second.UID}) || next != second.UID {
		t.Errorf("got %v %q, want %v, next %v", got, next, []string{third.UID, second.UID}, second.UID)
	}
	if got, next := list("?limit=2&cursor=" + next); !cmp.Equal(got, []string{first.UID}) || next != "" {
		t.Errorf("got %v %q, want %v, next empty", got, next, []string{first.UID})
	}
	for _, query := range []string{
		"?limit=0", "?limit=101", "?state=done", "?agent=%00", "?context_id=a%00",
		"?cursor=%00", "?cursor=A", "?x=1",
	} {
		w.do(admin, "GET", tasks+query, "").want(422)
	}
	var one struct {
		OrgTask
		StatusMessage *struct{}        `json:"status_message"`
		History       []map[string]any `json:"history"`
		Artifacts     []any            `json:"artifacts"`
	}
	w.do(admin, "GET", tasks+"/"+first.UID, "").want(200).into(&one)
	if one.Sender != "acme/user:ada" || one.ID != "t-1" || one.Agent != "fixer" || one.State != string(task.Submitted) ||
		one.Attempt != 1 ||
		len(one.History) != 1 || one.Artifacts == nil || one.StatusMessage != nil || one.FollowupID != nil {
		t.Errorf("%+v", one)
	}
	for _, uid := range []string{newID(""), "x", "%00", "lease-x"} {
		w.do(admin, "GET", tasks+"/"+uid, "").want(404)
	}
}

// Lists show when a worker of each agent last polled, to members who may manage agents.
func TestAListOfAgentsSaysWhenAWorkerWasSeen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.admin("acme", "user:ada")
	w.do(ada, "POST", agents, `{"id":"scout","name":"Scout"}`).want(201)
	w.claim(w.key("acme", "agent:fixer", identity.A2AServe), `{"wait_seconds":0}`)
	var c AgentConnection
	w.do(ada, "GET", agents+"/fixer/connection", "").want(200).into(&c)
	if c.LastSeenAt == nil {
		t.Fatalf("got %+v, want LastSeenAt not nil", c)
	}
	for secret, want := range map[string]string{
		ada: *c.LastSeenAt,
		w.key("acme", "service:partner", identity.Admin, "agent:fixer"): *c.LastSeenAt,
		w.key("acme", "service:partner", identity.TasksRead):            "",
		w.key("acme", "agent:fixer", identity.A2AWrite):                 "",
	} {
		var list AgentList
		res := w.do(secret, "GET", agents, "").want(200)
		res.into(&list)
		if n := strings.Count(res.Body, `"last_seen_at":`); n != list.Total || list.Agents[0].ID != "fixer" ||
			deref(list.Agents[0].LastSeenAt) != want {
			t.Errorf("want %q: %s", want, res.Body)
		}
		if list.Total > 1 && list.Agents[1].LastSeenAt != nil {
			t.Errorf("got %+v, want LastSeenAt nil: it never had a worker", list.Agents[1])
		}
		var one Agent
		if w.do(secret, "GET", agents+"/fixer", "").want(200).into(&one); deref(one.LastSeenAt) != want {
			t.Errorf("want %q: %+v", want, one)
		}
	}
}
