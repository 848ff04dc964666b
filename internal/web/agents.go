package web

import (
	"net/http"
	"slices"
	"strings"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/task"
)

func (p *Pages) mountAgents() {
	p.orgPages(map[string]handler{
		"GET /agents":                    (*visit).agentsPage,
		"GET /agents/new":                (*visit).newAgentPage,
		"POST /agents":                   (*visit).createAgent,
		"GET /agents/{id}":               (*visit).agentPage,
		"POST /agents/{id}":              (*visit).editAgent,
		"POST /agents/{id}/state":        (*visit).disableAgent,
		"POST /agents/{id}/status":       (*visit).pinAgent,
		"GET /agents/{id}/connect":       (*visit).connectPage,
		"GET /agents/{id}/connect/state": (*visit).connectState,
		"POST /agents/{id}/connect":      (*visit).makeWorkerKey,
		"POST /agents/{id}/tasks":        (*visit).sendTask,
		"GET /agents/{id}/tasks/{task}":  (*visit).taskPage,
		"POST /agents/{id}/tasks/{task}": (*visit).replyToTask,

		"GET /agents/{id}/tasks/{task}/outputs/{artifact}/{part}": (*visit).taskOutput,
		"POST /agents/{id}/tasks/{task}/cancel":                   (*visit).cancelTask,
		"POST /agents/{id}/tasks/{task}/again":                    (*visit).sendAgain,
		"GET /agents/{id}/tasks/{task}/json":                      (*visit).taskJSON,
	})
}

// agentPath returns the page of an agent. "/agents/new" is the page to register one, so the page
// of an agent with the id "new" is prefixed with a character that no id starts with.
func (v *visit) agentPath(id string) string {
	if id == "new" {
		id = "~new"
	}
	return v.base() + "/agents/" + id
}

// agentID returns the agent in the URL.
func (v *visit) agentID() string { return strings.TrimPrefix(v.r.PathValue("id"), "~") }

// agentRow is an agent with its status.
type agentRow struct {
	agent.Agent
	Href   string
	Status string // available, busy, offline or disabled
}

// Tone returns the style of the status.
func (r agentRow) Tone() string {
	switch r.Status {
	case string(dispatch.Available):
		return "ok"
	case string(dispatch.Busy):
		return "busy"
	case disabledStatus:
		return "high"
	}
	return ""
}

const disabledStatus = "disabled"

func (v *visit) agentRow(g *agent.Agent, presence dispatch.Presence) agentRow {
	row := agentRow{Agent: *g, Href: v.agentPath(g.ID), Status: string(presence)}
	switch {
	case g.Disabled:
		row.Status = disabledStatus
	case g.Pinned != "":
		row.Status = g.Pinned
	}
	return row
}

// agentForm has the values of the form that registers or changes an agent.
type agentForm struct {
	ID, Name, Description string
	Skills                string // separated by commas
	Public                bool
}

func (v *visit) agentForm() agentForm {
	return agentForm{
		ID: v.value("id"), Name: v.value("name"), Description: v.text("description"), Skills: v.value("skills"),
		Public: v.value("visibility") == "public",
	}
}

// skills parses the tags.
func (f *agentForm) skills() []agent.Skill {
	out := []agent.Skill{}
	for tag := range strings.FieldsFuncSeq(f.Skills, func(r rune) bool { return r == ',' || r == '\n' }) {
		if tag = strings.TrimSpace(tag); tag != "" {
			out = append(out, agent.PlainSkill(tag))
		}
	}
	return out
}

func (v *visit) newAgentPage() error {
	if _, err := v.access(identity.ManageAgents); err != nil {
		return err
	}
	return render(v, http.StatusOK, "agent_new", "Register an agent", agentForm{})
}

// createAgent registers an agent, and redirects to the page to connect its worker.
func (v *visit) createAgent() error {
	a, err := v.access(identity.ManageAgents)
	if err != nil {
		return v.audited(identity.AgentCreate, v.value("id"), err)
	}
	form := v.agentForm()
	created := agent.Agent{
		ID: form.ID, Org: v.member.Org, Name: form.Name, Description: form.Description,
		Public: form.Public,
	}
	created.Describe(form.skills())
	err = checkAgent(&created)
	ctx, once, beginErr := v.begin()
	if beginErr != nil {
		return beginErr
	}
	if err == nil {
		created, err = v.Agents.Create(ctx, a, created)
	}
	if err != nil {
		err = v.audited(identity.AgentCreate, form.ID, err)
		return renderForm(v, http.StatusOK, "agent_new", "Register an agent", form, err)
	}
	said := created.Name + " is registered. Connect its worker next."
	if once.Replayed() {
		said = ""
	}
	return v.done(v.agentPath(created.ID)+"/connect", said)
}

// checkAgent validates an agent including its id.
func checkAgent(g *agent.Agent) error {
	var wrong []errs.Field
	if !identity.ValidAgentID(g.ID) {
		wrong = append(wrong, errs.Field{
			Path:    errs.At("id"),
			Message: "must have 1 to 64 of a-z, 0-9, '.', '_' and '-', and start with a letter or digit",
		})
	}
	if err := g.Validate(); err != nil {
		wrong = append(wrong, errs.As(err).Fields...)
	}
	if len(wrong) > 0 {
		return errs.InvalidFields(wrong...)
	}
	return nil
}

// agentView is the page of an agent.
type agentView struct {
	agentRow
	Rich      []agent.Skill // skills with more than a tag, which this page cannot edit
	CardHref  string        // empty if a browser cannot open the card
	Form      agentForm
	Editing   bool // the form was sent and failed
	MayManage bool
	MayCall   bool
	Presences []string
	Worker    *connecting // for members who may manage agents
	Queued    string      // number of waiting tasks, for the same
	Failures  []failureRow
	Tasks     []taskRow
	Message   string // value of the form that sends a task
}

// ownAgent returns the agent in the URL.
func (v *visit) ownAgent(action identity.Action) (agent.Agent, error) {
	a, err := v.access(action)
	if err != nil {
		return agent.Agent{}, err
	}
	return v.Agents.Get(v.r.Context(), a, v.agentID())
}

func (v *visit) agentPage() error { return v.showAgent(nil, "", nil) }

// showAgent shows the page of an agent, with the values of a form that failed.
func (v *visit) showAgent(typed *agentForm, message string, problem error) error {
	ctx := v.r.Context()
	a, err := v.access(identity.ReadAgents)
	if err != nil {
		return err
	}
	g, err := v.Agents.Get(ctx, a, v.agentID())
	if err != nil {
		return err
	}
	if g.Profile, err = v.Agents.Profile(ctx, a, g.ID); err != nil {
		return err
	}
	presence, err := v.Workers.Presence(ctx, task.AgentKey{Org: g.Org, ID: g.ID})
	if err != nil {
		return err
	}
	view := agentView{
		agentRow: v.agentRow(&g, presence), Rich: g.Rich(&g.Profile),
		MayManage: v.may(identity.ManageAgents), MayCall: v.may(identity.CallAgent) && !g.Disabled,
		Presences: agent.Presences, Message: message,
		Form: agentForm{
			ID: g.ID, Name: g.Name, Description: g.Description, Skills: strings.Join(g.Skills, ", "),
			Public: g.Public,
		},
	}
	if g.Public && !g.Disabled { // the card of a private agent requires an API key
		view.CardHref = "/a2a/" + g.ID + "/.well-known/agent-card.json"
	}
	if typed != nil {
		view.Form, view.Editing = *typed, true
	}
	if err := v.health(&g, &view); err != nil {
		return err
	}
	if view.MayCall {
		if view.Tasks, err = v.ownTasks(g.ID); err != nil {
			return err
		}
	}
	return renderForm(v, http.StatusOK, "agent", g.Name, view, problem)
}

// editAgent changes the entry of an agent.
func (v *visit) editAgent() error {
	g, err := v.ownAgent(identity.ManageAgents)
	if err != nil {
		return v.audited(identity.AgentUpdate, v.agentID(), err)
	}
	form := v.agentForm()
	form.ID = g.ID
	edit := agent.Edit{Name: &form.Name, Description: &form.Description, Public: &form.Public}
	if _, ok := v.r.PostForm["skills"]; ok {
		skills := form.skills()
		edit.Skills = &skills
	}
	if err := v.updateAgent(g.ID, edit); err != nil {
		return v.showAgent(&form, "", err)
	}
	return v.done(v.agentPath(g.ID), "The agent was changed.")
}

// updateAgent changes an agent once per form.
func (v *visit) updateAgent(id string, e agent.Edit) error {
	a, err := v.access(identity.ManageAgents)
	if err != nil {
		return err
	}
	ctx, _, err := v.begin()
	if err == nil {
		_, err = v.Agents.Update(ctx, a, id, e)
	}
	return v.audited(identity.AgentUpdate, id, err)
}

// disableAgent disables or enables an agent.
func (v *visit) disableAgent() error {
	g, err := v.ownAgent(identity.ManageAgents)
	if err != nil {
		return v.audited(identity.AgentUpdate, v.agentID(), err)
	}
	disabled := v.value("disabled") == "true"
	said := g.Name + " is enabled."
	if disabled {
		said = g.Name + " is disabled: it cannot be called or worked for, and its tasks stay queued."
	}
	if err := v.updateAgent(g.ID, agent.Edit{Disabled: &disabled}); err != nil {
		return v.showAgent(nil, "", err)
	}
	return v.back(v.agentPath(g.ID), said)
}

// pinAgent pins or unpins the status of an agent.
func (v *visit) pinAgent() error {
	g, err := v.ownAgent(identity.ManageAgents)
	if err != nil {
		return v.audited(identity.AgentUpdate, v.agentID(), err)
	}
	status := v.value("status")
	said := "The status is pinned: " + g.Name + " shows as " + status + ", whatever its workers do."
	if status == "" {
		said = "The status follows the workers again."
	} else if !slices.Contains(agent.Presences, status) {
		said = ""
	}
	if err := v.updateAgent(g.ID, agent.Edit{Pinned: &status}); err != nil {
		return v.showAgent(nil, "", err)
	}
	return v.back(v.agentPath(g.ID), said)
}
