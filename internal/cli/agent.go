package cli

import (
	"fmt"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/app"
)

type agentCmd struct {
	Create agentCreateCmd `cmd:"" help:"Register an agent (works on the store)."`
	List   agentListCmd   `cmd:"" help:"List the agents of an org (works on the store)."`

	Release agentReleaseCmd `cmd:"" help:"Make an agent private and free its public id for other orgs (works on the store)."`

	Card    agentCardCmd    `cmd:"" help:"Show the card of a running server: the agents that you can reach."`
	Status  agentStatusCmd  `cmd:"" help:"Show whether the agents of your org are there, on a running server."`
	Update  agentUpdateCmd  `cmd:"" help:"Change what an agent's card says, or pin its status, on a running server."`
	Disable agentDisableCmd `cmd:"" help:"Take an agent off the card; nobody can call it any more."`
	Enable  agentEnableCmd  `cmd:"" help:"Let a disabled agent be called again."`
}

// Help is shown by parley agent --help.
func (agentCmd) Help() string {
	return examples("parley agent create scout --org main --name Scout --skill triage", "parley agent card", "parley agent status scout")
}

type agentJSON struct {
	ID          string   `json:"id"`
	Ref         string   `json:"ref"`
	Org         string   `json:"org"`
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Skills      []string `json:"skills"`
	Public      bool     `json:"public"`
	PublicID    bool     `json:"public_id_held"`
	CreatedAt   *string  `json:"created_at"`
}

func newAgentJSON(a agent.Agent) agentJSON {
	skills := append([]string{}, a.Skills...) // never null
	return agentJSON{a.ID, "agent:" + a.ID, a.Org, a.Name, a.Description, skills, a.Public, a.PublicName, timestamp(a.CreatedAt)}
}

type agentCreateCmd struct {
	StoreFlags   `embed:""`
	orgFlag      `embed:""`
	ID           string `arg:"" help:"Id of the agent, unique in its org: a-z, 0-9, '.', '_' and '-'."`
	Name         string `help:"Display name." required:"" placeholder:"NAME"`
	Description  string `help:"What the agent does." placeholder:"TEXT"`
	profileFlags `embed:""`
	Public       bool `help:"Other orgs may reach the agent, too; its id must be free among the public agents of all orgs."`
}

// Help is shown by --help.
func (agentCreateCmd) Help() string {
	return examples("parley agent create scout --org main --name Scout --description 'Watches deployments' --skill triage --skill go",
		"parley agent create scout --org main --name Scout --skills-file skills.json --agent-version 1.4.0")
}

func (c *agentCreateCmd) Run(e *env) error {
	return c.with(e, func(op *app.Operator) error {
		a := agent.Agent{ID: c.ID, Org: c.Org, Name: c.Name, Description: c.Description, Public: c.Public}
		if err := c.apply(e, &a); err != nil {
			return err
		}
		a, err := op.Agents.Create(e.ctx, a)
		if err != nil {
			return notFound(err, "there is no org %q; parley org list shows all", c.Org)
		}
		return e.created(c.JSON, newAgentJSON(a), "created agent:%s in org %s\n", a.ID, a.Org)
	})
}

type agentListCmd struct {
	StoreFlags `embed:""`
	orgFlag    `embed:""`
}

// Help is shown by --help.
func (agentListCmd) Help() string { return examples("parley agent list --org main") }

func (c *agentListCmd) Run(e *env) error {
	return c.with(e, func(op *app.Operator) error {
		if err := knownOrg(e, op, c.Org); err != nil {
			return err
		}
		agents, err := op.Agents.List(e.ctx, c.Org)
		if err != nil {
			return err
		}
		out := make([]agentJSON, len(agents))
		t := table{head: []string{"ID", "PUBLIC", "CREATED (UTC)", "NAME", "SKILLS"}}
		for i, a := range agents {
			out[i] = newAgentJSON(a)
			t.add(a.ID, yes(a.Public), when(a.CreatedAt), a.Name, fmt.Sprint(a.Skills))
		}
		return e.all(c.JSON, map[string]any{"agents": out}, &t)
	})
}

type agentReleaseCmd struct {
	StoreFlags `embed:""`
	orgFlag    `embed:""`
	ID         string `arg:"" help:"Id of the agent."`
}

// Help is shown by --help.
func (agentReleaseCmd) Help() string {
	return "An agent that is or was public holds its id among the public agents of all orgs, so that no other org gets the tasks of its callers. " +
		"This makes the agent private and lets any org make an agent of that id public.\n\n" + examples("parley agent release scout --org main")
}

func (c *agentReleaseCmd) Run(e *env) error {
	return c.with(e, func(op *app.Operator) error {
		a, err := op.Agents.Release(e.ctx, c.Org, c.ID)
		if err != nil {
			return notFound(err, "there is no agent %q in org %q; parley agent list --org %s shows all", c.ID, c.Org, c.Org)
		}
		return e.created(c.JSON, newAgentJSON(a), "agent:%s of org %s is private; other orgs can use its id for a public agent\n", a.ID, a.Org)
	})
}
