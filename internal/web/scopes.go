package web

import (
	"slices"
	"strings"
	"unicode"

	"github.com/parley-dev/parley/internal/identity"
)

// scopeWords describe a scope for people.
type scopeWords struct {
	Scope identity.Scope
	ID    string // id of its checkbox
	Name  string // in a form
	Short string // in a list: "reads"
	Opens string // what a key may do with it
	Yours string // what an OAuth client may do with it on behalf of a user
}

// allScopes lists all scopes in display order.
var allScopes = []scopeWords{
	{
		identity.TasksRead, "tasks-read", "Read", "reads",
		"Read proposals, votes, follow-ups and reported friction, and list the agents.",
		"Read proposals, votes and follow-ups",
	},
	{
		identity.TasksWrite, "tasks-write", "Write", "writes",
		"Submit and edit proposals, vote, work on follow-ups and report friction. A service cannot submit, vote or report.",
		"Submit and edit proposals, vote, and work on follow-ups in your name",
	},
	{
		identity.A2AWrite, "a2a-write", "Call agents", "calls agents",
		"Send tasks and messages to agents, follow and cancel them.",
		"Send tasks and messages to agents in your name",
	},
	{
		identity.A2AServe, "a2a-serve", "Work as an agent", "works as an agent",
		"Claim tasks of an agent and report on them. A key of an agent works for that agent; other keys work for the " +
			"agents that they name.",
		"Work as an agent",
	},
	{
		identity.Admin, "admin", "Administer the org", "administers",
		"Decide proposals, manage members, keys, clients and agents, read all tasks and the audit log. It does not " +
			"include the other rights.",
		"Administer the org: decide proposals, manage members, keys and agents",
	},
}

const agentPrefix = "agent:"

// may describes what scopes allow.
type may struct {
	Rights []scopeWords
	Agents []string // restriction to agents; empty: any
	Every  bool     // agent:* is among the scopes
	Admin  bool
}

func inWords(scopes identity.Scopes) may {
	out := may{Admin: scopes.Has(identity.Admin)}
	for _, w := range allScopes {
		if scopes.Has(w.Scope) {
			out.Rights = append(out.Rights, w)
		}
	}
	for _, s := range scopes {
		if id, ok := strings.CutPrefix(string(s), agentPrefix); ok {
			if id == "*" {
				out.Every = true
			} else {
				out.Agents = append(out.Agents, id)
			}
		}
	}
	return out
}

// Only returns the agents that the rights are restricted to, or "".
func (m may) Only() string {
	switch {
	case m.Every || len(m.Agents) == 0:
		return ""
	case len(m.Agents) <= 3:
		return strings.Join(m.Agents, ", ")
	}
	return strings.Join(m.Agents[:2], ", ") + " and " + plural(int64(len(m.Agents)-2), "other", "others")
}

// scopeForm is the part of a form that selects scopes.
type scopeForm struct {
	Rights []scopeBox
	Every  bool // agent:* is selected
	Agents []agentBox
	Others string // ids of selected agents without a checkbox
	Some   bool   // a restriction is selected
	More   bool   // the org has more agents than checkboxes
}

type scopeBox struct {
	scopeWords
	Checked bool
}

type agentBox struct {
	ID, Name string
	Checked  bool
	Works    bool // it needs workers, because it is not built in
}

// maxAgentBoxes limits the checkboxes; other agents are entered by id.
const maxAgentBoxes = 200

// newScopeForm returns the form with all scopes except the given ones.
func (v *visit) newScopeForm(chosen []string, without ...identity.Scope) (scopeForm, error) {
	var out scopeForm
	for _, w := range allScopes {
		if !slices.Contains(without, w.Scope) {
			out.Rights = append(out.Rights, scopeBox{w, slices.Contains(chosen, string(w.Scope))})
		}
	}
	var left []string // selected agents without a checkbox yet
	for _, s := range chosen {
		id, ok := strings.CutPrefix(s, agentPrefix)
		if !ok {
			continue
		}
		out.Some = true
		if id == "*" {
			out.Every = true
		} else {
			left = append(left, id)
		}
	}
	a, err := v.access(identity.ReadAgents)
	if err != nil {
		return out, err
	}
	agents, err := v.Agents.Visible(v.r.Context(), a)
	for i := range agents {
		g := &agents[i]
		at := slices.Index(left, g.ID)
		if g.Disabled && at < 0 {
			continue
		}
		if len(out.Agents) == maxAgentBoxes {
			out.More = true
			break
		}
		if at >= 0 {
			left = slices.Delete(left, at, at+1)
		}
		out.Agents = append(out.Agents, agentBox{ID: g.ID, Name: g.Name, Checked: at >= 0, Works: g.Builtin == ""})
	}
	out.Others = strings.Join(left, ", ")
	return out, err
}

// formScopes returns the scopes that a form selects, by checkboxes and by ids of agents.
func (v *visit) formScopes() []string {
	out := slices.Clone(v.r.PostForm["scopes"])
	typed := strings.FieldsFunc(v.r.PostFormValue("agents"), func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
	for _, id := range typed {
		out = append(out, agentPrefix+strings.TrimPrefix(id, agentPrefix))
	}
	return out
}

// anyRight reports whether one of the scopes is more than a restriction to agents.
func anyRight(scopes []string) bool {
	return slices.ContainsFunc(scopes, func(s string) bool { return !strings.HasPrefix(s, agentPrefix) })
}
