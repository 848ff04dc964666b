package cli

import (
	"fmt"
	"net/url"
	"strconv"

	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/sdk/client"
)

type memberCmd struct {
	List    memberListCmd    `cmd:"" help:"List the principals of your org."`
	Create  memberCreateCmd  `cmd:"" help:"Create a user or a service."`
	Disable memberDisableCmd `cmd:"" help:"Refuse a principal everywhere, whatever its keys."`
	Enable  memberEnableCmd  `cmd:"" help:"Let a disabled principal in again; its live keys work again."`
	Promote memberPromoteCmd `cmd:"" help:"Make a user an admin of the org."`
	Demote  memberDemoteCmd  `cmd:"" help:"Take the admin role from a user, with every key that carries svc:admin:admin."`
}

// Help is shown by parley member --help.
func (memberCmd) Help() string {
	return "Needs the scope svc:admin:admin.\n\n" +
		examples("parley member list --kind user", "parley member create service:billing", "parley member disable user:ada")
}

func memberState(m *client.Member) string {
	if m.Disabled {
		return "disabled"
	}
	return "enabled"
}

func (f *pageFlags) query() url.Values {
	q := url.Values{}
	if f.Limit != 0 {
		q.Set("limit", strconv.Itoa(f.Limit))
	}
	if f.Cursor != "" {
		q.Set("cursor", f.Cursor)
	}
	return q
}

type memberListCmd struct {
	serverFlags `embed:""`
	pageFlags   `embed:""`
	Kind        string `help:"Only users, agents or services." enum:"user,agent,service,all" default:"all" placeholder:"KIND"`
	State       string `help:"Only enabled or disabled ones." enum:"enabled,disabled,all" default:"all" placeholder:"STATE"`
}

// Help is shown by --help.
func (memberListCmd) Help() string {
	return "Needs the scope svc:admin:admin.\n\n" + examples("parley member list", "parley member list --kind user --state disabled --json")
}

func (c *memberListCmd) Run(e *env) error {
	list, done, err := ask(e, &c.serverFlags, func(api *client.Client, raw client.Option) (*client.Page[client.Member], error) {
		return api.Members.List(e.ctx, client.MemberListParams{Kind: c.Kind, State: c.State}, client.WithQuery(c.query()), raw)
	})
	if done {
		return err
	}
	t := table{head: []string{"REF", "ADMIN", "STATE", "CREATED (UTC)", "NAME"}}
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
	return "Needs the scope svc:admin:admin. Agents are created with parley agent create; people are better invited with parley invite create.\n\n" +
		examples("parley member create service:billing --name 'Billing system'", "parley member create user:ada --admin")
}

func (c *memberCreateCmd) Run(e *env) error {
	p, err := identity.ParseRef(c.Org, c.Ref)
	if err != nil {
		return usageError{err}
	}
	creation := client.MemberCreation{Kind: client.PrincipalKind(p.Kind), ID: p.ID, Name: c.Name, Admin: c.Admin}
	return c.member(e, "created %s\n", func(api *client.Client, raw client.Option) (*client.Member, error) {
		return api.Members.Create(e.ctx, creation, raw)
	})
}

// member makes a call that returns a member, and says what became of it.
func (f *serverFlags) member(e *env, format string, do func(*client.Client, client.Option) (*client.Member, error)) error {
	m, done, err := ask(e, f, do)
	if done {
		return err
	}
	_, err = fmt.Fprintf(e.stdout, format, cleanLine(m.Ref))
	return err
}

// oneMember is a command that changes a principal.
type oneMember struct {
	serverFlags `embed:""`
	Ref         string `arg:"" help:"user:ID, agent:ID or service:ID."`
}

func (c *oneMember) disabled(e *env, yes bool, format string) error {
	return c.patch(e, client.MemberPatch{Disabled: &yes}, format)
}

func (c *oneMember) patch(e *env, p client.MemberPatch, format string) error {
	return c.member(e, format, func(api *client.Client, raw client.Option) (*client.Member, error) {
		return api.Members.Update(e.ctx, c.Ref, p, raw)
	})
}

type memberDisableCmd struct {
	oneMember `embed:""`
}

// Help is shown by --help.
func (memberDisableCmd) Help() string {
	return "All its keys stop working within seconds, and its streams end within ten. Needs the scope svc:admin:admin.\n\n" +
		examples("parley member disable user:ada")
}

func (c *memberDisableCmd) Run(e *env) error { return c.disabled(e, true, "disabled %s\n") }

type memberEnableCmd struct {
	oneMember `embed:""`
}

// Help is shown by --help.
func (memberEnableCmd) Help() string {
	return "Needs the scope svc:admin:admin.\n\n" + examples("parley member enable user:ada")
}

func (c *memberEnableCmd) Run(e *env) error { return c.disabled(e, false, "enabled %s\n") }

type memberPromoteCmd struct {
	oneMember `embed:""`
}

// Help is shown by --help.
func (memberPromoteCmd) Help() string {
	return "Needs the scope svc:admin:admin.\n\n" + examples("parley member promote user:ada")
}

func (c *memberPromoteCmd) Run(e *env) error {
	return c.patch(e, client.MemberPatch{Admin: new(true)}, "%s is an admin\n")
}

type memberDemoteCmd struct {
	oneMember `embed:""`
}

// Help is shown by --help.
func (memberDemoteCmd) Help() string {
	return "Revokes every key of the user that carries svc:admin:admin, and takes that scope from programs that act for the user. " +
		"Other keys keep working. The last enabled admin of an org cannot be demoted. Needs the scope svc:admin:admin.\n\n" +
		examples("parley member demote user:ada")
}

func (c *memberDemoteCmd) Run(e *env) error {
	return c.patch(e, client.MemberPatch{Admin: new(false)}, "%s is not an admin\n")
}
