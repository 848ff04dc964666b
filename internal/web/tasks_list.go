package web

import (
	"net/http"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/task"
)

func (p *Pages) mountTasks() {
	p.orgPages(map[string]handler{
		"GET /tasks":                                 (*visit).tasksPage,
		"GET /tasks/{uid}":                           (*visit).orgTaskPage,
		"GET /tasks/{uid}/json":                      (*visit).orgTaskJSON,
		"POST /tasks/{uid}/rerun":                    (*visit).rerunOrgTask,
		"GET /tasks/{uid}/outputs/{artifact}/{part}": (*visit).orgTaskOutput,
	})
}

// orgTaskPath returns the page of a task of one of the org's agents.
func (v *visit) orgTaskPath(uid string) string { return v.base() + "/tasks/" + uid }

// age is a choice of when a task was sent.
type age struct {
	Value, Name string
	within      time.Duration // sent within this time, or
	before      time.Duration // sent earlier than that
}

// stateQueued is the choice of tasks that wait for a worker, whatever their state.
const stateQueued = "queued"

const oneDay = 24 * time.Hour

var ages = []age{
	{"1h", "Last hour", time.Hour, 0},
	{"24h", "Last 24 hours", oneDay, 0},
	{"7d", "Last 7 days", 7 * oneDay, 0},
	{"30d", "Last 30 days", 30 * oneDay, 0},
	{"older-1h", "Older than an hour", 0, time.Hour},
	{"older-24h", "Older than a day", 0, oneDay},
	{"older-7d", "Older than 7 days", 0, 7 * oneDay},
}

// tasksView is the list of the tasks of the org's agents.
type tasksView struct {
	Agent, State, Sender, Age string // filters

	Agents   []agent.Agent
	States   []task.State
	Ages     []age
	Rows     []orgTaskRow
	Partial  bool // the search stopped; older tasks may match
	Searched int
	Pager    cursorLinks
	Filtered bool
	Clear    string
}

// orgTaskRow is a task in the list.
type orgTaskRow struct {
	task.Task
	Href, AgentHref string
	From            string // ref of the sender
	FromOrg         string // org of the sender, if it is another one
}

// Tone returns the style of the state.
func (r orgTaskRow) Tone() string { return stateTone(r.State) }

// tasksPage lists the tasks of the org's agents, newest first.
func (v *visit) tasksPage() error {
	a, err := v.access(identity.ReadTasks)
	if err != nil {
		return err
	}
	q := v.r.URL.Query()
	out := tasksView{
		Agent: strings.TrimSpace(q.Get("agent")), State: q.Get("state"), Sender: strings.TrimSpace(q.Get("sender")),
		Age: q.Get("age"), States: task.States, Ages: ages, Clear: v.base() + "/tasks", Searched: dispatch.MaxSearched,
	}
	out.Filtered = out.Agent != "" || out.State != "" || out.Sender != "" || out.Age != ""
	if err := v.addAgentChoices(&out); err != nil {
		return err
	}
	search, err := out.search(v.member.Org, q.Get("cursor"), v.Now())
	if err != nil {
		return renderForm(v, http.StatusOK, "tasks", "Tasks", out, err)
	}
	found, err := v.Tasks.SearchOrgTasks(v.r.Context(), a, search)
	if err != nil {
		return renderForm(v, http.StatusOK, "tasks", "Tasks", out, err)
	}
	for i := range found.Tasks {
		out.Rows = append(out.Rows, v.orgTaskRow(&found.Tasks[i]))
	}
	out.Partial, out.Pager = found.Partial, v.cursorPager(found.Next)
	return render(v, http.StatusOK, "tasks", "Tasks", out)
}

// addAgentChoices adds the agents that tasks can be filtered by.
func (v *visit) addAgentChoices(out *tasksView) error {
	a, err := v.access(identity.ReadAgents)
	if err != nil {
		return err
	}
	out.Agents, err = v.Agents.Visible(v.r.Context(), a)
	known := out.Agent == ""
	for i := range out.Agents {
		known = known || out.Agents[i].ID == out.Agent
	}
	if !known {
		out.Agents = append(out.Agents, agent.Agent{ID: out.Agent, Name: out.Agent})
	}
	return err
}

// search returns what the filters ask for.
func (t *tasksView) search(org, cursor string, now time.Time) (dispatch.Search, error) {
	s := dispatch.Search{Agent: t.Agent, State: task.State(t.State), Before: cursor, Limit: adminPerPage}
	if t.State == stateQueued {
		s.State, s.Queued = "", true
	}
	if t.Sender != "" {
		var err error
		if s.Sender, err = dispatch.ParseSender(org, t.Sender); err != nil {
			return s, err
		}
	}
	if t.Age == "" {
		return s, nil
	}
	for _, choice := range ages {
		switch {
		case choice.Value != t.Age:
		case choice.within > 0:
			s.From = now.Add(-choice.within)
			return s, nil
		default:
			s.Until = now.Add(-choice.before)
			return s, nil
		}
	}
	return s, fieldError("age", "must be one of the choices")
}

func (v *visit) orgTaskRow(t *task.Task) orgTaskRow {
	row := orgTaskRow{Task: *t, Href: v.orgTaskPath(t.UID), AgentHref: v.agentPath(t.Agent), From: t.Sender.Ref()}
	if t.Sender.Org != v.member.Org {
		row.FromOrg = t.Sender.Org
	}
	return row
}
