package web

import (
	"cmp"
	"net/http"
	"strings"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/task"
)

func (p *Pages) mountCatalogue() {
	p.orgPages(map[string]handler{"GET /catalogue": (*visit).cataloguePage})
}

// catalogueView is the list of the agents that the member may reach, of all orgs.
type catalogueView struct {
	Words, Skill, Presence string // filters
	Own                    bool   // only agents of this org

	Presences []string
	Rows      []foundRow
	Pager     cursorLinks
	Filtered  bool
	Clear     string
}

// foundRow is an agent of the catalogue.
type foundRow struct {
	agent.Listed
	Href string
}

// Tone returns the style of the status.
func (r foundRow) Tone() string { return agentRow{Status: r.Status}.Tone() }

// By returns who offers the agent.
func (r foundRow) By() string {
	if r.Own {
		return "this org"
	}
	return cmp.Or(r.Profile.Provider.Organization, "another org")
}

// cataloguePage lists the agents that the member may reach: those of the org, and the public ones of
// other orgs.
func (v *visit) cataloguePage() error {
	a, err := v.access(identity.ReadAgents)
	if err != nil {
		return err
	}
	q := v.r.URL.Query()
	out := catalogueView{
		Words: strings.TrimSpace(q.Get("q")), Skill: strings.TrimSpace(q.Get("skill")), Presence: q.Get("presence"),
		Own: q.Get("from") == "own", Presences: agent.Presences, Clear: v.base() + "/catalogue",
	}
	out.Filtered = out.Words != "" || out.Skill != "" || out.Presence != "" || out.Own
	find := agent.Find{
		Words: out.Words, Skill: out.Skill, Presence: out.Presence, Cursor: q.Get("cursor"), Limit: agentsPerPage,
	}
	if out.Own {
		find.Org = v.member.Org
	}
	found, err := v.find(a, find)
	if err != nil {
		return renderForm(v, http.StatusOK, "catalogue", "Catalogue", out, err)
	}
	for i := range found.Agents {
		g := &found.Agents[i]
		out.Rows = append(out.Rows, foundRow{Listed: *g, Href: v.agentPath(g.ID)})
	}
	out.Pager = v.cursorPager(found.Next)
	return render(v, http.StatusOK, "catalogue", "Catalogue", out)
}

// find searches the catalogue.
func (v *visit) find(a identity.Access, f agent.Find) (agent.Found, error) {
	presence, err := v.Workers.Presences(v.r.Context())
	if err != nil {
		return agent.Found{}, err
	}
	f.Status = func(g *agent.Agent) string {
		return cmp.Or(g.Pinned, string(presence(task.AgentKey{Org: g.Org, ID: g.ID})))
	}
	return v.Catalogue.Find(v.r.Context(), a, f)
}

// publicView is the page of a public agent of another org.
type publicView struct {
	foundRow
	CardHref string
	MayCall  bool
	Tasks    []taskRow
	Message  string // value of the form that sends a task
}

// showPublicAgent shows the public agent of another org that the URL names.
func (v *visit) showPublicAgent(a identity.Access, message string, problem error) error {
	id := v.agentID()
	if !identity.ValidAgentID(id) {
		return errs.ErrNotFound
	}
	found, err := v.find(a, agent.Find{Words: id, Limit: 1}) // an agent with this id comes first
	if err != nil {
		return err
	}
	if len(found.Agents) == 0 || found.Agents[0].ID != id {
		return errs.ErrNotFound
	}
	g := found.Agents[0]
	view := publicView{
		foundRow: foundRow{Listed: g, Href: v.agentPath(id)}, MayCall: v.may(identity.CallAgent), Message: message,
		CardHref: "/a2a/" + id + "/.well-known/agent-card.json",
	}
	if view.MayCall {
		if view.Tasks, err = v.ownTasks(id); err != nil {
			return err
		}
	}
	return renderForm(v, http.StatusOK, "agent_public", g.Name, view, problem)
}
