package web

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/policy"
	"github.com/parley-dev/parley/internal/task"
)

func (p *Pages) mountAgents() {
	p.orgPages(map[string]handler{
		"GET /agents":                    (*visit).agentsPage,
		"GET /agents/new":                (*visit).newAgentPage,
		"POST /agents":                   (*visit).createAgent,
		"GET /agents/{id}":               (*visit).agentPage,
		"POST /agents/{id}":              (*visit).editAgent,
		"POST /agents/{id}/remote":       (*visit).changeRemote,
		"POST /agents/{id}/refresh":      (*visit).readCard,
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

// Absent says what is missing while the agent is offline.
func (r agentRow) Absent() string {
	if r.IsRelay() {
		return "the remote agent is down"
	}
	return "no worker is connected"
}

// IsRelay reports whether a remote agent does its work.
func (r agentRow) IsRelay() bool { return r.Builtin == agent.Relayed }

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
	Deadline  string      // of tasks whose sender gives none, such as 1h; empty: none
	Attempts  string      // of the same, in words
	Relay     *relayView  // nil: the agent is no relay
	Worker    *connecting // for members who may manage agents
	Queued    string      // number of waiting tasks, for the same
	Failures  []failureRow
	Callers   []agent.Usage // other orgs that used the quota in this period, for the same
	Tasks     []taskRow
	Message   string // value of the form that sends a task
}

// attemptsOf says in words how often a task is tried whose sender sets nothing.
func attemptsOf(p policy.Policy) string {
	r := p.Retries()
	if r.Attempts == 1 {
		return "1"
	}
	cause := "failed or lost"
	switch {
	case !r.Failed:
		cause = "lost"
	case !r.Lost:
		cause = "failed"
	}
	out := fmt.Sprintf("up to %d if %s", r.Attempts, cause)
	if r.Backoff > 0 {
		out += ", first wait " + span(r.Backoff)
	}
	return out
}

// agentExtras are the values of a form on the page of an agent that failed.
type agentExtras struct {
	Typed   *agentForm // of the form that changes the entry
	Remote  *relayForm // of the form that changes the remote agent
	Message string     // of the form that sends a task
}

// ownAgent returns the agent in the URL.
func (v *visit) ownAgent(action identity.Action) (agent.Agent, error) {
	a, err := v.access(action)
	if err != nil {
		return agent.Agent{}, err
	}
	return v.Agents.Get(v.r.Context(), a, v.agentID())
}

func (v *visit) agentPage() error { return v.showAgent(agentExtras{}, nil) }

// showAgent shows the page of an agent, with the values of a form that failed.
func (v *visit) showAgent(part agentExtras, problem error) error {
	ctx := v.r.Context()
	a, err := v.access(identity.ReadAgents)
	if err != nil {
		return err
	}
	g, err := v.Agents.Get(ctx, a, v.agentID())
	if errs.KindOf(err) == errs.NotFound {
		return v.showPublicAgent(a, part.Message, problem)
	}
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
		Presences: agent.Presences, Message: part.Message, Form: newAgentForm(&g),
		Deadline: span(g.Policy.Timeout), Attempts: attemptsOf(g.Policy),
	}
	if g.Public && !g.Disabled { // the card of a private agent requires an API key
		view.CardHref = "/a2a/" + g.ID + "/.well-known/agent-card.json"
	}
	if part.Typed != nil {
		view.Form, view.Editing = *part.Typed, true
	}
	if g.Builtin == agent.Relayed {
		if view.Relay, err = v.relayView(a, g.ID, part.Remote); err != nil {
			return err
		}
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

// updateAgent changes an agent once per form.
func (v *visit) updateAgent(id string, e agent.Edit) error {
	a, err := v.access(identity.ManageAgents)
	if err != nil {
		return err
	}
	ctx, _, err := v.begin()
	if err == nil {
		var edited agent.Agent
		if edited, err = v.Agents.Update(ctx, a, id, e); err == nil {
			v.Relays.Edited(&edited)
		}
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
		return v.showAgent(agentExtras{}, err)
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
	said := "The status is pinned: " + g.Name + " shows as " + status + ", whatever happens."
	if status == "" {
		said = "The status follows the workers again."
		if g.Builtin == agent.Relayed {
			said = "The status follows the remote agent again."
		}
	} else if !slices.Contains(agent.Presences, status) {
		said = ""
	}
	if err := v.updateAgent(g.ID, agent.Edit{Pinned: &status}); err != nil {
		return v.showAgent(agentExtras{}, err)
	}
	return v.back(v.agentPath(g.ID), said)
}
