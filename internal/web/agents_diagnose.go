package web

import (
	"time"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/task"
)

// connecting is how far the connection of a worker is, in words.
type connecting struct {
	Agent     agent.Agent
	Href      string // of the agent
	Connected bool
	Waits     bool   // it may change by itself, so it is asked for again
	Problem   string // what is wrong, by a name: for styles and tests
	Title     string
	Text      string
	Key       *identity.Key // that the words are about
	MayManage bool
}

// connectFacts are what is known of an agent and those who may work for it.
type connectFacts struct {
	Agent     *agent.Agent
	Presence  task.Presence
	Keys      []identity.Key // of the agent, newest first
	KnowsKeys bool           // false: the member may not read them
	Now       time.Time
}

// usedLately is how fresh the last use of a key must be to say that a program runs with it.
const usedLately = 2 * time.Minute

// diagnose says whether a worker is connected and, if not, what is most likely wrong.
func diagnose(f connectFacts) connecting {
	g := f.Agent
	switch {
	case g.Builtin != "":
		return connecting{
			Connected: true, Title: "Nothing to connect",
			Text: g.Name + " is built into the server, which does its tasks itself.",
		}
	case g.Disabled:
		return connecting{
			Problem: "disabled", Title: g.Name + " is disabled",
			Text: "Its keys do not work, and nobody can work for it. Enable it first.",
		}
	case f.Presence != task.Offline && g.Pinned != "" && g.Pinned != string(f.Presence):
		return connecting{
			Connected: true, Problem: "pinned", Title: "Connected, but the status is pinned",
			Text: "A worker is there, yet everybody sees “" + g.Pinned + "”, because an admin pinned the status.",
		}
	case f.Presence != task.Offline:
		return connecting{Connected: true, Title: "Connected", Text: "A worker is there, and waits for tasks."}
	case !f.KnowsKeys:
		return connecting{Waits: true, Title: "No worker yet", Text: "An admin of your org makes the key that a worker needs."}
	}
	out := diagnoseKeys(f)
	out.Waits = true
	if g.Pinned != "" {
		out.Text += " Beside that, the status is pinned to “" + g.Pinned + "”: that is what everybody sees."
	}
	return out
}

// diagnoseKeys finds the reason in the keys: the first one that could be wrong.
func diagnoseKeys(f connectFacts) connecting {
	name := f.Agent.Name
	var live, serving []identity.Key
	for i := range f.Keys {
		k := f.Keys[i]
		if !k.Live(f.Now) {
			continue
		}
		live = append(live, k)
		if k.Scopes.Has(identity.A2AServe) && k.Scopes.ReachesAgent(f.Agent.ID) {
			serving = append(serving, k)
		}
	}
	switch {
	case len(f.Keys) == 0:
		return connecting{Problem: "no-key", Title: "There is no key yet", Text: "Make one below, then start a program with it."}
	case len(live) == 0:
		return connecting{
			Problem: "ended", Title: "Its keys have ended", Key: &f.Keys[0],
			Text: "Every key of " + name + " is revoked or expired. Make a new one below.",
		}
	case len(serving) == 0:
		return wrongKey(f, live)
	}
	latest := serving[0]
	for _, k := range serving {
		if k.LastUsedAt.After(latest.LastUsedAt) {
			latest = k
		}
	}
	switch {
	case latest.LastUsedAt.IsZero():
		return neverUsed(f, live, latest)
	case f.Now.Sub(latest.LastUsedAt) < usedLately:
		return connecting{
			Problem: "other-agent", Title: "The key is used, but not to work for " + name, Key: &latest,
			Text: "A program came with it a moment ago and claimed no task of " + name + ". Does it name another agent, or another server?",
		}
	}
	return connecting{
		Problem: "gone", Title: "No worker at the moment", Key: &latest,
		Text: "One was there before. Tasks wait until it is back.",
	}
}

// neverUsed is about a good key that no program came with. If another key of the agent was used
// since, the program may hold that one.
func neverUsed(f connectFacts, live []identity.Key, good identity.Key) connecting {
	for i := range live {
		if k := live[i]; !k.Scopes.Has(identity.A2AServe) && k.LastUsedAt.After(good.CreatedAt) {
			return wrongKey(f, []identity.Key{k})
		}
	}
	return connecting{
		Problem: "never-used", Title: "Waiting: the key was never used", Key: &good,
		Text: "Start the program with PARLEY_KEY set. If it runs, it uses another key or another server.",
	}
}

// wrongKey is about keys with which nobody can work for the agent.
func wrongKey(f connectFacts, live []identity.Key) connecting {
	k := live[0]
	for _, other := range live {
		if other.LastUsedAt.After(k.LastUsedAt) {
			k = other
		}
	}
	if k.Scopes.Has(identity.A2AServe) {
		return connecting{
			Problem: "other-agent", Title: "Its key is for another agent", Key: &k,
			Text: "The scopes of the key restrict it to other agents, so it cannot claim tasks of " + f.Agent.Name + ". Make a new one below.",
		}
	}
	return connecting{
		Problem: "wrong-scope", Title: "Its key lacks the scope to work", Key: &k,
		Text: "To claim tasks a key needs " + string(identity.A2AServe) + ". Make a new one below.",
	}
}
