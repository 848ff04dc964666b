package cli

import (
	"strings"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/app"
	"github.com/parley-dev/parley/sdk/client"
)

type agentCmd struct {
	Create  agentCreateCmd  `cmd:"" help:"Register an agent."`
	List    agentListCmd    `cmd:"" help:"List the agents of an org."`
	Find    agentFindCmd    `cmd:"" help:"Find agents to call by words, skill and status."`
	Card    agentCardCmd    `cmd:"" help:"List the agents that you can call, of all orgs."`
	Status  agentStatusCmd  `cmd:"" help:"Show whether the agents of your org have workers."`
	Usage   agentUsageCmd   `cmd:"" help:"Show what is used of the quotas of agents."`
	Update  agentUpdateCmd  `cmd:"" help:"Change an agent's card, or pin its status."`
	Disable agentDisableCmd `cmd:"" help:"Take an agent off the card; it cannot be called any more."`
	Enable  agentEnableCmd  `cmd:"" help:"Let a disabled agent be called again."`
	Refresh agentRefreshCmd `cmd:"" help:"Read the card of a relay's remote agent now."`
	Release agentReleaseCmd `cmd:"" help:"Free the public id of an agent for other orgs (operator)."`
}

// Help is shown by parley agent --help.
func (agentCmd) Help() string {
	return examples(
		"parley agent create scout --name Scout --skill triage",
		"parley agent find customs tariff",
		"parley agent status scout",
	)
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
	return agentJSON{
		a.ID, "agent:" + a.ID, a.Org, a.Name, a.Description, skills, a.Public, a.PublicName, timestamp(a.CreatedAt),
	}
}

type agentCreateCmd struct {
	EitherFlags  `embed:""`
	ID           string `arg:"" help:"Id of the agent, unique in its org: a-z, 0-9, '.', '_' and '-'."`
	Name         string `help:"Display name; a relay has that of its remote agent by default." placeholder:"NAME"`
	Description  string `help:"What the agent does." placeholder:"TEXT"`
	profileFlags `embed:""`
	policyFlags  `embed:""`
	relayFlags   `embed:""`
	Public       bool `help:"Other orgs may call the agent, too; its id must be free among the public agents of all orgs."`
}

// Help is shown by --help.
func (agentCreateCmd) Help() string {
	return "On a server this needs the scope svc:admin:admin.\n\n" + examples(
		"parley agent create scout --name Scout --description 'Watches deployments' --skill triage --skill go",
		"parley agent create scout --name Scout --skills-file skills.json --agent-version 1.4.0",
		"parley agent create scout --name Scout --timeout 1h --retries 2 --backoff 30s",
		"parley agent create scout --name Scout --data ./parley-data --org main",
		"parley agent create tariffs --relay https://agents.example/a2a/tariffs --credential @token.txt",
	)
}

func (c *agentCreateCmd) Run(e *env) error {
	switch {
	case c.Name == "" && c.Relay == "":
		return usage("missing flags: --name=NAME, or --relay=URL for an agent whose work a remote agent does")
	case c.Relay == "" && c.Credential != "":
		return usage("--credential goes with --relay")
	}
	r, err := c.remote(e)
	if err != nil {
		return err
	}
	if r != nil {
		return c.post(e, r)
	}
	if c.relays() {
		return usage("--relay needs a server, which reads the card of the remote agent; give --server and a key")
	}
	return c.inOrg(e, &c.Org, func(op *app.Operator) error {
		a := agent.Agent{ID: c.ID, Org: c.Org, Name: c.Name, Description: c.Description, Public: c.Public}
		if err := c.apply(e, &a); err != nil {
			return err
		}
		if a.Policy, err = c.policyFlags.policy(); err != nil {
			return err
		}
		a, err := op.Agents.Create(e.ctx, a)
		if err != nil {
			return err
		}
		return e.created(c.JSON, newAgentJSON(a), "created agent %q %s", a.ID, c.in(a.Org))
	})
}

// post creates the agent on a server.
func (c *agentCreateCmd) post(e *env, r *remote) error {
	fields := map[string]any{"id": c.ID}
	if c.Name != "" {
		fields["name"] = c.Name
	}
	if err := c.relay(e, fields); err != nil {
		return err
	}
	if c.Description != "" {
		fields["description"] = c.Description
	}
	if c.Public {
		fields["public"] = true
	}
	if err := c.profileFlags.fields(e, fields); err != nil {
		return err
	}
	if err := c.policyFlags.fields(nil, fields); err != nil {
		return err
	}
	a, done, err := askAt(e, r, c.JSON, aboutOrg, func(api *client.Client, raw client.Option) (*client.Agent, error) {
		return api.Agents.Create(e.ctx, client.AgentCreation{}, client.WithBody(fields), raw)
	})
	if done {
		return err
	}
	return e.say("created agent %q %s", a.ID, r.in(e))
}

type agentListCmd struct {
	EitherFlags `embed:""`
	wideFlag    `embed:""`
}

// Help is shown by --help.
func (agentListCmd) Help() string {
	return examples("parley agent list", "parley agent list --data ./parley-data --org main")
}

func (c *agentListCmd) Run(e *env) error {
	r, err := c.remote(e)
	if err != nil {
		return err
	}
	t := table{head: []string{"ID", "PUBLIC", "CREATED (UTC)", "NAME", "SKILLS"}, drop: []string{"CREATED (UTC)", "PUBLIC"}, wide: c.Wide}
	if r != nil {
		return c.get(e, r, &t)
	}
	return c.inOrg(e, &c.Org, func(op *app.Operator) error {
		agents, err := op.Agents.List(e.ctx, c.Org)
		if err != nil {
			return err
		}
		out := make([]agentJSON, len(agents))
		for i, a := range agents {
			out[i] = newAgentJSON(a)
			t.add(a.ID, yes(a.Public), when(a.CreatedAt), a.Name, strings.Join(a.Skills, ", "))
		}
		return e.all(c.JSON, map[string]any{"agents": out}, &t)
	})
}

// get lists the agents of an org on a server.
func (c *agentListCmd) get(e *env, r *remote, t *table) error {
	list, done, err := askAt(e, r, c.JSON, aboutOrg,
		func(api *client.Client, raw client.Option) (*client.Page[client.Agent], error) {
			return api.Agents.List(e.ctx, raw)
		})
	if done {
		return err
	}
	for _, a := range list.Items {
		t.add(a.ID, yes(a.Public), when(a.CreatedAt), a.Name, strings.Join(a.Skills, ", "))
	}
	total := int(list.Total)
	return e.list(t, "agent", "agents", total, 1, len(list.Items) < total)
}

type agentReleaseCmd struct {
	StoreFlags `embed:""`
	orgFlag    `embed:""`
	ID         string `arg:"" help:"Id of the agent."`
}

// Help is shown by --help.
func (agentReleaseCmd) Help() string {
	return operatorHelp + "An agent that is or was public holds its id among the public agents of all orgs, so that " +
		"no other org receives the tasks of its callers. This makes the agent private and lets any org use the id for a " +
		"public agent.\n\n" +
		examples("parley agent release scout --org main")
}

func (c *agentReleaseCmd) Run(e *env) error {
	return c.inOrg(e, &c.Org, func(op *app.Operator) error {
		a, err := op.Agents.Release(e.ctx, c.Org, c.ID)
		if err != nil {
			return c.notFound(err, "agent", c.ID, c.Org)
		}
		return e.created(c.JSON, newAgentJSON(a),
			"agent %q %s is private; other orgs can use its id for a public agent", a.ID, c.in(a.Org))
	})
}
