package cli

import (
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/sdk/client"
)

type memberCmd struct {
	List    memberListCmd    `cmd:"" help:"List the principals of your org."`
	Create  memberCreateCmd  `cmd:"" help:"Create a user or a service."`
	Disable memberDisableCmd `cmd:"" help:"Lock a principal out; all its keys stop working."`
	Enable  memberEnableCmd  `cmd:"" help:"Let a disabled principal in again; its live keys work again."`
	Promote memberPromoteCmd `cmd:"" help:"Make a user an admin of the org."`
	Demote  memberDemoteCmd  `cmd:"" help:"Take the admin role from a user, and revoke keys that carry svc:admin:admin."`
	Erase   memberEraseCmd   `cmd:"" help:"Replace a user by a pseudonym, for good."`
}

const needsAdmin = "Works on a server. Needs the scope svc:admin:admin.\n\n"

// Help is shown by parley member --help.
func (memberCmd) Help() string {
	return needsAdmin +
		examples("parley member list --kind user", "parley member create service:billing", "parley member disable user:ada")
}

func memberState(m *client.Member) string {
	if m.Disabled {
		return "disabled"
	}
	return "enabled"
}

type memberListCmd struct {
	serverFlags `embed:""`
	cursorFlags `embed:""`
	Kind        string `help:"Only users, agents or services." enum:"user,agent,service,all" default:"all" placeholder:"KIND"`
	State       string `help:"Only enabled or disabled ones." enum:"enabled,disabled,all" default:"all" placeholder:"STATE"`
}

// Help is shown by --help.
func (memberListCmd) Help() string {
	return needsAdmin + examples("parley member list", "parley member list --kind user --state disabled --json")
}

func (c *memberListCmd) Run(e *env) error {
	filter := client.MemberListParams{Kind: c.Kind, State: c.State}
	list, done, err := ask(e, &c.serverFlags, aboutOrg,
		func(api *client.Client, raw client.Option) (*client.Page[client.Member], error) {
			return api.Members.List(e.ctx, filter, client.WithQuery(c.query()), raw)
		})
	if done {
		return err
	}
	t := table{
		head: []string{"REF", "ADMIN", "STATE", "CREATED (UTC)", "NAME"},
		drop: []string{"CREATED (UTC)", "ADMIN"},
		wide: c.Wide,
	}
	for _, m := range list.Items {
		t.add(m.Ref, yes(m.Admin), memberState(&m), when(m.CreatedAt), m.Name)
	}
	return e.pages(&t, "no members", list.Next)
}

type memberCreateCmd struct {
	serverFlags `embed:""`
	Ref         string `arg:"" help:"user:ID or service:ID."`
	Name        string `help:"Display name; the id if not given." placeholder:"NAME"`
	Admin       bool   `help:"Users only: may administer the org when signed in."`
}

// Help is shown by --help.
func (memberCreateCmd) Help() string {
	return needsAdmin + "Agents are created with parley agent create. " +
		"To let people choose their own password, invite them (parley invite create).\n\n" +
		examples("parley member create service:billing --name 'Billing system'", "parley member create user:ada --admin")
}

func (c *memberCreateCmd) Run(e *env) error {
	p, err := identity.ParseRef(c.Org, c.Ref)
	if err != nil {
		return usageError{err}
	}
	if p.Kind == identity.Agent {
		return usage("parley member create creates users and services; create the agent with: parley agent create %s", p.ID)
	}
	r, err := c.client(e)
	if err != nil {
		return err
	}
	return r.createMember(e, c.JSON, client.MemberCreation{
		Kind: client.PrincipalKind(p.Kind), ID: p.ID, Name: c.Name, Admin: c.Admin,
	})
}

// oneMember is part of commands that change a principal.
type oneMember struct {
	serverFlags `embed:""`
	Ref         string `arg:"" help:"user:ID, agent:ID or service:ID."`
}

func (c *oneMember) disabled(e *env, yes bool, format string) error {
	return c.patch(e, client.MemberPatch{Disabled: &yes}, format)
}

// patch changes the principal and prints a line; format has its reference.
func (c *oneMember) patch(e *env, p client.MemberPatch, format string) error {
	r, err := c.client(e)
	if err != nil {
		return err
	}
	m, done, err := askAt(e, r, c.JSON, aboutMember(c.Ref),
		func(api *client.Client, raw client.Option) (*client.Member, error) {
			return api.Members.Update(e.ctx, c.Ref, p, raw)
		})
	if done {
		return err
	}
	return e.say(format+" %s", m.Ref, r.in(e))
}

type memberDisableCmd struct {
	oneMember `embed:""`
}

// Help is shown by --help.
func (memberDisableCmd) Help() string {
	return "All its keys stop working within seconds, and its streams end within ten. " + needsAdmin +
		examples("parley member disable user:ada")
}

func (c *memberDisableCmd) Run(e *env) error { return c.disabled(e, true, "disabled %s") }

type memberEnableCmd struct {
	oneMember `embed:""`
}

// Help is shown by --help.
func (memberEnableCmd) Help() string {
	return needsAdmin + examples("parley member enable user:ada")
}

func (c *memberEnableCmd) Run(e *env) error { return c.disabled(e, false, "enabled %s") }

type memberPromoteCmd struct {
	oneMember `embed:""`
}

// Help is shown by --help.
func (memberPromoteCmd) Help() string {
	return needsAdmin + examples("parley member promote user:ada")
}

func (c *memberPromoteCmd) Run(e *env) error {
	return c.patch(e, client.MemberPatch{Admin: new(true)}, "%s is an admin")
}

type memberDemoteCmd struct {
	oneMember `embed:""`
}

// Help is shown by --help.
func (memberDemoteCmd) Help() string {
	return demoteHelp + needsAdmin + examples("parley member demote user:ada")
}

func (c *memberDemoteCmd) Run(e *env) error {
	return c.patch(e, client.MemberPatch{Admin: new(false)}, "%s is not an admin")
}
