package web

import (
	"net/http"
	"strings"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/task"
)

// agentsView is the list of the org's agents.
type agentsView struct {
	Rows    []crewRow
	Query   string
	Total   int
	Manages bool // the member may manage agents, and sees their workers and queues
	Pager   pager
}

// crewRow is an agent with its workers and its queue, which only admins see.
type crewRow struct {
	agentRow
	dispatch.Crew
	Waiting string // number of waiting tasks
}

const agentsPerPage = 50

// agentsPage lists the agents, ordered by id.
func (v *visit) agentsPage() error {
	a, err := v.access(identity.ReadAgents)
	if err != nil {
		return err
	}
	ctx := v.r.Context()
	list, err := v.Agents.Visible(ctx, a)
	if err != nil {
		return err
	}
	presence, err := v.Workers.Presences(ctx)
	if err != nil {
		return err
	}
	form := v.r.URL.Query()
	view := agentsView{Query: strings.TrimSpace(form.Get("q")), Total: len(list), Manages: v.may(identity.ManageAgents)}
	for i := range list {
		if g := &list[i]; agentMatches(g, view.Query) {
			view.Rows = append(view.Rows, crewRow{agentRow: v.agentRow(g, presence(task.AgentKey{Org: g.Org, ID: g.ID}))})
		}
	}
	number, found := v.number("page"), len(view.Rows)
	from := min((number-1)*agentsPerPage, found)
	view.Rows = view.Rows[from:min(from+agentsPerPage, found)]
	view.Pager = v.pager(number, agentsPerPage, len(view.Rows), int64(found))
	if view.Manages {
		if err := v.addCrews(view.Rows); err != nil {
			return err
		}
	}
	return render(v, http.StatusOK, "agents", "Agents", view)
}

// agentMatches reports whether the agent's id, name or skills contain the words.
func agentMatches(g *agent.Agent, words string) bool {
	text := strings.ToLower(g.ID + " " + g.Name + " " + strings.Join(g.Skills, " "))
	for word := range strings.FieldsSeq(strings.ToLower(words)) {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}

// addCrews adds the workers and the queues of the agents.
func (v *visit) addCrews(list []crewRow) error {
	a, err := v.access(identity.ManageAgents)
	if err != nil {
		return err
	}
	ids := make([]string, len(list))
	for i := range list {
		ids[i] = list[i].ID
	}
	crews, err := v.Workers.Crews(v.r.Context(), a, ids)
	for i, id := range ids {
		list[i].Crew, list[i].Waiting = crews[id], queueLength(crews[id].Queued)
	}
	return err
}

// queueLength formats a number that is counted up to a limit.
func queueLength(n int) string {
	if n >= dispatch.MaxQueued {
		return count(dispatch.MaxQueued) + " or more"
	}
	return count(n)
}
