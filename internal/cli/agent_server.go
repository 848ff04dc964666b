package cli

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// agentRecord is what this program reads of an agent, from the card or from its org.
type agentRecord struct {
	ID          string    `json:"id"`
	Name        string    `json:"name"`
	Description string    `json:"description"`
	Skills      []string  `json:"skills"`
	Public      bool      `json:"public"`
	Disabled    bool      `json:"disabled"`
	Status      string    `json:"status"`
	Pinned      *string   `json:"pinned_status"`
	URL         string    `json:"url"`
	UpdatedAt   time.Time `json:"updated_at"`
}

type agentCardCmd struct {
	serverFlags `embed:""`
	After       string `help:"Start with the page that the \"next\" of another one names; with --json one page is shown." placeholder:"CURSOR"`
}

// Help is shown by --help.
func (agentCardCmd) Help() string {
	return "Without a key it shows the public agents; with one, also those of your org that the key reaches.\n\n" +
		examples("parley agent card", "parley agent card --server https://parley.example --json")
}

// Run shows one page as JSON, or all agents as a table.
func (c *agentCardCmd) Run(e *env) error {
	cl, err := c.anyClient(e)
	if err != nil {
		return err
	}
	p := e.palette()
	t := table{head: []string{"ID", "STATUS", "NAME", "SKILLS", "DESCRIPTION"}, colour: map[int]func(string) string{1: p.status}}
	n, first := 0, true
	for after := c.After; first || after != ""; first = false {
		var card struct {
			Name     string        `json:"name"`
			Version  string        `json:"version"`
			Protocol string        `json:"protocol"`
			Agents   []agentRecord `json:"agents"`
			Next     string        `json:"next"`
		}
		page := call{method: http.MethodGet, path: "/.well-known/agent.json", global: true}
		if after != "" {
			page.query = url.Values{"after": {after}}
		}
		raw, err := cl.into(e.ctx, page, &card)
		if err != nil || c.JSON {
			return e.rawOr(raw, err)
		}
		if first {
			if _, err := fmt.Fprintf(e.stdout, "%s %s, %s\n", cleanLine(card.Name), cleanLine(card.Version), cleanLine(card.Protocol)); err != nil {
				return err
			}
		}
		for _, a := range card.Agents {
			t.add(a.ID, a.Status, a.Name, strings.Join(a.Skills, ", "), a.Description)
		}
		n += len(card.Agents)
		after = card.Next
	}
	return e.list(&t, p, "agent", "agents", n, 1, false)
}

type agentStatusCmd struct {
	serverFlags `embed:""`
	ID          string `arg:"" optional:"" help:"Id of the agent; all of the org if not given."`
}

// Help is shown by --help.
func (agentStatusCmd) Help() string {
	return "An agent is offline without a worker, busy when all its workers are full, and else available, unless its status is pinned.\n\n" +
		examples("parley agent status", "parley agent status scout --json | jq -r .status")
}

func agentPath(id string) string { return "/agents/" + url.PathEscape(id) }

func (c *agentStatusCmd) Run(e *env) error {
	if c.ID != "" {
		return c.agent(e, call{method: http.MethodGet, path: agentPath(c.ID)})
	}
	var list struct {
		Agents []agentRecord `json:"agents"`
		Total  int           `json:"total"`
	}
	if done, err := c.ask(e, call{method: http.MethodGet, path: "/agents"}, &list); done {
		return err
	}
	p := e.palette()
	t := table{head: []string{"ID", "STATUS", "PUBLIC", "NAME", "SKILLS"}, colour: map[int]func(string) string{1: p.status}}
	for _, a := range list.Agents {
		t.add(a.ID, a.presence(), yes(a.Public), a.Name, strings.Join(a.Skills, ", "))
	}
	return e.list(&t, p, "agent", "agents", list.Total, 1, len(list.Agents) < list.Total)
}

func (a *agentRecord) presence() string {
	switch {
	case a.Disabled:
		return "disabled"
	case a.Pinned != nil:
		return a.Status + " (pinned)"
	}
	return a.Status
}

// agent sends a call that answers with an agent, and prints it.
func (f *serverFlags) agent(e *env, r call) error {
	var a agentRecord
	if done, err := f.ask(e, r, &a); done {
		return err
	}
	rec := record{p: e.palette()}
	rec.heading(a.Name)
	rec.field("id", cleanLine(a.ID))
	rec.field("status", rec.p.status(cleanLine(a.presence())))
	rec.field("skills", cleanLine(strings.Join(a.Skills, ", ")))
	rec.field("public", yes(a.Public))
	rec.field("address", f.base()+cleanLine(a.URL))
	rec.field("updated", when(a.UpdatedAt)+" UTC")
	rec.text("Description", a.Description)
	_, err := e.stdout.Write([]byte(rec.b.String()))
	return err
}

// oneAgent is a command that changes an agent.
type oneAgent struct {
	serverFlags `embed:""`
	ID          string `arg:"" help:"Id of the agent."`
}

func (c *oneAgent) change(e *env, fields map[string]any) error {
	// To set fields to values twice is the same as once.
	return c.agent(e, call{method: http.MethodPatch, path: agentPath(c.ID), send: fields, safe: true})
}

type agentUpdateCmd struct {
	oneAgent     `embed:""`
	Name         *string `help:"New display name." placeholder:"NAME"`
	Description  *string `help:"What the agent does; @FILE reads a file, @- stdin." placeholder:"TEXT"`
	profileFlags `embed:""`
	Public       *bool   `help:"Other orgs may reach the agent, too, or may not." negatable:""`
	Status       *string `help:"Pin the status to available, busy or offline; auto lets it follow the workers." placeholder:"STATUS"`
}

// Help is shown by --help.
func (agentUpdateCmd) Help() string {
	return "Skills that are given replace all. An empty value takes a version, a URL or the provider away. Needs the scope svc:admin:admin.\n\n" + examples(
		"parley agent update scout --description 'Watches deployments' --skill triage --skill go",
		"parley agent update scout --status offline",
		"parley agent update scout --status auto --no-public",
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
	if c.Public != nil {
		fields["public"] = *c.Public
	}
	if c.Status != nil {
		fields["status"] = c.Status
		if *c.Status == "auto" {
			fields["status"] = nil
		}
	}
	if len(fields) == 0 {
		return usage("nothing to change; give at least one of --name, --description, --skill, --skills-file, --agent-version, --documentation-url, --icon-url, --provider, --public and --status")
	}
	return c.change(e, fields)
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
