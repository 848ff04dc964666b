package cli

import (
	"fmt"
	"strings"

	"github.com/parley-dev/parley/sdk/client"
)

type agentCardCmd struct {
	serverFlags `embed:""`
	wideFlag    `embed:""`
	After       string `help:"Start after this page: the value of next in the JSON of the page before." placeholder:"CURSOR"`
}

// Help is shown by --help.
func (agentCardCmd) Help() string {
	return "Without a key or login it shows the public agents; with one, also those of your org that you may call. " +
		"With --json it prints one page.\n\n" +
		examples("parley agent card", "parley agent card --server https://parley.example --json")
}

func (c *agentCardCmd) Run(e *env) error {
	cl, err := c.anyClient(e)
	if err != nil {
		return err
	}
	if err := cl.checkOrg(e); err != nil {
		return err
	}
	t := table{
		head:   []string{"ID", "STATUS", "NAME", "SKILLS", "DESCRIPTION"},
		colour: map[int]func(string) string{1: e.palette().status},
		drop:   []string{"NAME", "SKILLS"},
		wide:   c.Wide,
	}
	n, first := 0, true
	for page := (client.PlatformCardParams{After: c.After}); first || page.After != ""; first = false {
		card, done, err := askAt(e, cl, c.JSON, aboutOrg,
			func(api *client.Client, raw client.Option) (*client.PlatformCard, error) {
				return api.PlatformCard(e.ctx, page, raw)
			})
		if done {
			return err
		}
		if first {
			if err := e.say("%s %s, %s", card.Name, card.Version, card.Protocol); err != nil {
				return err
			}
		}
		for _, a := range card.Agents {
			t.add(a.ID, string(a.Status), a.Name, strings.Join(a.Skills, ", "), a.Description)
		}
		n += len(card.Agents)
		page.After = card.Next
	}
	return e.list(&t, "agent", "agents", n, 1, false)
}

type agentStatusCmd struct {
	serverFlags `embed:""`
	wideFlag    `embed:""`
	ID          string `arg:"" optional:"" help:"Id of the agent; all of the org if not given."`
}

// Help is shown by --help.
func (agentStatusCmd) Help() string {
	return "An agent without workers is offline; one whose workers have no free capacity is busy; any other is " +
		"available. An admin can pin the status.\n\n" +
		examples("parley agent status", "parley agent status scout --json | jq -r .status")
}

func (c *agentStatusCmd) Run(e *env) error {
	if c.ID != "" {
		return c.agent(e, &c.ID, func(api *client.Client, raw client.Option) (*client.Agent, error) {
			return api.Agents.Get(e.ctx, c.ID, raw)
		})
	}
	list, done, err := ask(e, &c.serverFlags, aboutOrg,
		func(api *client.Client, raw client.Option) (*client.Page[client.Agent], error) {
			return api.Agents.List(e.ctx, raw)
		})
	if done {
		return err
	}
	t := table{
		head:   []string{"ID", "STATUS", "PUBLIC", "NAME", "SKILLS"},
		colour: map[int]func(string) string{1: e.palette().status},
		drop:   []string{"PUBLIC", "NAME"},
		wide:   c.Wide,
	}
	for _, a := range list.Items {
		t.add(a.ID, presence(&a), yes(a.Public), a.Name, strings.Join(a.Skills, ", "))
	}
	total := int(list.Total)
	return e.list(&t, "agent", "agents", total, 1, len(list.Items) < total)
}

func presence(a *client.Agent) string {
	switch {
	case a.Disabled:
		return "disabled"
	case a.PinnedStatus != "":
		return string(a.Status) + " (pinned)"
	}
	return string(a.Status)
}

// agent makes a call about an agent and prints the agent.
func (f *serverFlags) agent(
	e *env, id *string, do func(*client.Client, client.Option) (*client.Agent, error),
) error {
	r, err := f.client(e)
	if err != nil {
		return err
	}
	a, done, err := askAt(e, r, f.JSON, about("agent", id), do)
	if done {
		return err
	}
	rec := record{p: e.palette()}
	rec.heading(a.Name)
	rec.field("id", cleanLine(a.ID))
	rec.field("status", rec.p.status(cleanLine(presence(a))))
	rec.field("skills", cleanLine(strings.Join(a.Skills, ", ")))
	rec.field("public", yes(a.Public))
	rec.field("url", r.Server+cleanLine(a.URL))
	if p := a.Policy; p != nil && p.Timeout > 0 {
		rec.field("timeout", p.Timeout.String())
	}
	if p := a.Policy; p != nil && p.Retry != nil {
		rec.field("attempts", fmt.Sprintf("%d, the second after %s", p.Retry.MaxAttempts, p.Retry.Backoff))
	}
	rec.relay(a)
	rec.field("updated", when(a.UpdatedAt)+" UTC")
	rec.text("Description", a.Description)
	_, err = e.stdout.Write([]byte(rec.b.String()))
	return err
}

// oneAgent is part of commands that change an agent.
type oneAgent struct {
	serverFlags `embed:""`
	ID          string `arg:"" help:"Id of the agent."`
}

func (c *oneAgent) change(e *env, fields map[string]any) error {
	return c.agent(e, &c.ID, func(api *client.Client, raw client.Option) (*client.Agent, error) {
		return api.Agents.Update(e.ctx, c.ID, client.AgentPatch{}, client.WithBody(fields), raw)
	})
}

type agentUpdateCmd struct {
	oneAgent     `embed:""`
	Name         *string `help:"New display name." placeholder:"NAME"`
	Description  *string `help:"What the agent does; @FILE reads a file, @- stdin." placeholder:"TEXT"`
	profileFlags `embed:""`
	policyFlags  `embed:""`
	relayFlags   `embed:""`
	Public       *bool   `help:"Whether other orgs may call the agent, too." negatable:""`
	Status       *string `help:"Pin the status to available, busy or offline; auto lets it follow the workers." placeholder:"STATUS"`
}

// Help is shown by --help.
func (agentUpdateCmd) Help() string {
	return "The skills given replace all others. An empty value removes a version, a URL or the provider. " +
		"Needs the scope svc:admin:admin.\n\n" + examples(
		"parley agent update scout --description 'Watches deployments' --skill triage --skill go",
		"parley agent update scout --public --quota 100/day",
		"parley agent update scout --status offline",
		"parley agent update scout --status auto --no-public",
		"parley agent update scout --timeout 1h --retries 2 --backoff 30s",
	)
}

func (c *agentUpdateCmd) Run(e *env) error {
	fields := map[string]any{}
	if c.Name != nil {
		fields["name"] = *c.Name
	}
	if c.Description != nil {
		text, err := e.readText(*c.Description)
		if err != nil {
			return err
		}
		fields["description"] = text
	}
	if err := c.profileFlags.fields(e, fields); err != nil {
		return err
	}
	if err := c.relay(e, fields); err != nil {
		return err
	}
	if c.Public != nil {
		fields["public"] = *c.Public
	}
	if c.Status != nil {
		fields["status"] = c.Status
		if *c.Status == "auto" {
			fields["status"] = nil
		}
	}
	if c.given() {
		if err := c.policyFields(e, fields); err != nil {
			return err
		}
	}
	if len(fields) == 0 {
		return usage("nothing to change; give at least one of --name, --description, --skill, --skills-file, " +
			"--agent-version, --documentation-url, --icon-url, --provider, --relay, --credential, --quota, --public, --status, " +
			"--timeout, --retries and --backoff")
	}
	return c.change(e, fields)
}

// policyFields adds the policy that the agent has with the given flags.
func (c *agentUpdateCmd) policyFields(e *env, fields map[string]any) error {
	r, err := c.client(e)
	if err != nil {
		return err
	}
	a, _, err := askAt(e, r, false, about("agent", &c.ID), func(api *client.Client, raw client.Option) (*client.Agent, error) {
		return api.Agents.Get(e.ctx, c.ID, raw)
	})
	if err != nil {
		return err
	}
	return c.policyFlags.fields(a.Policy, fields)
}

type agentDisableCmd struct {
	oneAgent `embed:""`
}

// Help is shown by --help.
func (agentDisableCmd) Help() string {
	return "Needs the scope svc:admin:admin.\n\n" + examples("parley agent disable scout")
}

func (c *agentDisableCmd) Run(e *env) error { return c.change(e, map[string]any{"disabled": true}) }

type agentEnableCmd struct {
	oneAgent `embed:""`
}

// Help is shown by --help.
func (agentEnableCmd) Help() string {
	return "Needs the scope svc:admin:admin.\n\n" + examples("parley agent enable scout")
}

func (c *agentEnableCmd) Run(e *env) error { return c.change(e, map[string]any{"disabled": false}) }
