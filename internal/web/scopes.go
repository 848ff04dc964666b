package web

import (
	"slices"
	"strings"
	"unicode"

	"github.com/parley-dev/parley/internal/identity"
)

// scopeWords are a scope as people read it.
type scopeWords struct {
	Scope identity.Scope
	ID    string // of its control
	Name  string // in a form
	Short string // in a list: "reads"
	Opens string // what a key with it may do
	Yours string // what a program with it may do in somebody's name
}

// allScopes is every scope in the order in which it is shown.
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
		"Claim tasks of an agent and report on them. An agent's key works for that agent; a key of anybody else works for the " +
			"agents that it names.",
		"Work as an agent",
	},
	{
		identity.Admin, "admin", "Administer the org", "administers",
		"Decide proposals, manage members, keys, clients and agents, read all tasks and the audit log. It implies none of the " +
			"other rights.",
		"Administer the org: decide proposals, manage members, keys and agents",
	},
}

const agentPrefix = "agent:"

// may is what scopes allow, in words.
type may struct {
	Rights []scopeWords
	Agents []string // only these; empty: any
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

// Only says to which agents the rights are restricted; empty: to none.
func (m may) Only() string {
	switch {
	case m.Every || len(m.Agents) == 0:
		return ""
	case len(m.Agents) <= 3:
		return strings.Join(m.Agents, ", ")
	}
	return strings.Join(m.Agents[:2], ", ") + " and " + plural(int64(len(m.Agents)-2), "other", "others")
}

// scopeForm is the part of a form with which scopes are chosen.
type scopeForm struct {
	Rights []scopeBox
	Every  bool // agent:* is chosen
	Agents []agentBox
	Others string // ids of chosen agents that have no box
	Some   bool   // a restriction is chosen
	More   bool   // the org has more agents than there are boxes
}

type scopeBox struct {
	scopeWords
	Checked bool
}

type agentBox struct {
	ID, Name string
	Checked  bool
	Works    bool // workers do its work; a built-in agent needs none
}

// maxAgentBoxes bounds the boxes; others are typed.
const maxAgentBoxes = 200

// newScopeForm offers the scopes but those that are left out.
func (v *visit) newScopeForm(chosen []string, without ...identity.Scope) (scopeForm, error) {
	var out scopeForm
	for _, w := range allScopes {
		if !slices.Contains(without, w.Scope) {
			out.Rights = append(out.Rights, scopeBox{w, slices.Contains(chosen, string(w.Scope))})
		}
	}
	var left []string // chosen agents without a box yet
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

// formScopes are the scopes that a form has chosen, by boxes and by ids of agents.
func (v *visit) formScopes() []string {
	out := slices.Clone(v.r.PostForm["scopes"])
	typed := strings.FieldsFunc(v.r.PostFormValue("agents"), func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
	for _, id := range typed {
		out = append(out, agentPrefix+strings.TrimPrefix(id, agentPrefix))
	}
	return out
}

// anyRight reports whether a scope is more than a restriction to agents.
func anyRight(scopes []string) bool {
	return slices.ContainsFunc(scopes, func(s string) bool { return !strings.HasPrefix(s, agentPrefix) })
}
