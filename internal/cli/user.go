package cli

import (
	"github.com/parley-dev/parley/internal/app"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/sdk/client"
)

type memberJSON struct {
	Ref       string  `json:"ref"`
	ID        string  `json:"id"`
	Kind      string  `json:"kind"`
	Org       string  `json:"org"`
	Name      string  `json:"name"`
	Admin     bool    `json:"admin"`
	CreatedAt *string `json:"created_at"`
}

func newMemberJSON(m identity.Member) memberJSON {
	return memberJSON{m.Ref(), m.ID, string(m.Kind), m.Org, m.Name, m.Admin, timestamp(m.CreatedAt)}
}

// createMember creates a user or a service on the server or on the store.
func (f *EitherFlags) createMember(e *env, m client.MemberCreation) error {
	r, err := f.remote(e)
	if err != nil {
		return err
	}
	if r != nil {
		return r.createMember(e, f.JSON, m)
	}
	return f.inOrg(e, &f.Org, func(op *app.Operator) error {
		p := identity.Principal{Org: f.Org, Kind: identity.Kind(m.Kind), ID: m.ID}
		made, err := op.Identity.CreateMember(e.ctx, p, m.Name, m.Admin)
		if err != nil {
			return err
		}
		return e.created(f.JSON, newMemberJSON(made), "created %s %q %s", made.Kind, made.ID, f.in(made.Org))
	})
}

// createMember creates a user or a service on the server.
func (r *remote) createMember(e *env, asJSON bool, m client.MemberCreation) error {
	made, done, err := askAt(e, r, asJSON, aboutOrg,
		func(api *client.Client, raw client.Option) (*client.Member, error) {
			return api.Members.Create(e.ctx, m, raw)
		})
	if done {
		return err
	}
	return e.say("created %s %q %s", made.Kind, made.ID, r.in(e))
}

// listMembers lists the users or the services of an org.
func (f *EitherFlags) listMembers(e *env, wide bool, kind identity.Kind) error {
	r, err := f.remote(e)
	if err != nil {
		return err
	}
	t := table{
		head: []string{"ID", "ADMIN", "CREATED (UTC)", "NAME"},
		drop: []string{"CREATED (UTC)", "ADMIN"},
		wide: wide,
	}
	name := string(kind) + "s"
	if r != nil {
		page := func(opts ...client.Option) (*client.Page[client.Member], error) {
			return r.Members.List(e.ctx, client.MemberListParams{Kind: string(kind)}, opts...)
		}
		list, err := everything("members", page, func(m *client.Member) {
			t.add(m.ID, yes(m.Admin), when(m.CreatedAt), m.Name)
		})
		if err != nil {
			return r.explain(e, aboutOrg, err)
		}
		return e.all(f.JSON, map[string]any{name: list}, &t)
	}
	return f.inOrg(e, &f.Org, func(op *app.Operator) error {
		members, err := op.Identity.Members(e.ctx, f.Org, kind)
		if err != nil {
			return err
		}
		out := make([]memberJSON, len(members))
		for i, m := range members {
			out[i] = newMemberJSON(m)
			t.add(m.ID, yes(m.Admin), when(m.CreatedAt), m.Name)
		}
		return e.all(f.JSON, map[string]any{name: out}, &t)
	})
}

type userCmd struct {
	Create  userCreateCmd  `cmd:"" help:"Create a user."`
	List    userListCmd    `cmd:"" help:"List the users of an org."`
	Promote userPromoteCmd `cmd:"" help:"Make a user an admin of the org."`
	Demote  userDemoteCmd  `cmd:"" help:"Take the admin role from a user, and revoke keys that carry svc:admin:admin."`
}

const adminHelp = "On a server this needs the scope svc:admin:admin.\n\n"

// Help is shown by parley user --help.
func (userCmd) Help() string {
	return adminHelp +
		examples("parley user create ada --name 'Ada Lovelace'", "parley user list", "parley user demote ada")
}

type userCreateCmd struct {
	EitherFlags `embed:""`
	ID          string `arg:"" help:"Id of the user: a-z, 0-9, '.', '_' and '-'."`
	Admin       bool   `help:"May administer the org when signed in. Keys carry their own scopes."`
	Name        string `help:"Display name; the id if not given." placeholder:"NAME"`
}

// Help is shown by --help.
func (userCreateCmd) Help() string {
	return adminHelp + "To let people choose their own password, invite them (parley invite create).\n\n" + examples(
		"parley user create ada --admin --name 'Ada Lovelace'",
		"parley user create ada --data ./parley-data --org main",
	)
}

func (c *userCreateCmd) Run(e *env) error {
	return c.createMember(e, client.MemberCreation{Kind: client.PrincipalKind(identity.User), ID: c.ID, Name: c.Name, Admin: c.Admin})
}

type userListCmd struct {
	EitherFlags `embed:""`
	wideFlag    `embed:""`
}

// Help is shown by --help.
func (userListCmd) Help() string {
	return adminHelp + examples("parley user list", "parley user list --data ./parley-data --org main")
}

func (c *userListCmd) Run(e *env) error { return c.listMembers(e, c.Wide, identity.User) }

type serviceCmd struct {
	Create serviceCreateCmd `cmd:"" help:"Create a service."`
	List   serviceListCmd   `cmd:"" help:"List the services of an org."`
}

// Help is shown by parley service --help.
func (serviceCmd) Help() string {
	return adminHelp + examples("parley service create billing", "parley service list")
}

type serviceCreateCmd struct {
	EitherFlags `embed:""`
	ID          string `arg:"" help:"Id of the service: a-z, 0-9, '.', '_' and '-'."`
	Name        string `help:"Display name; the id if not given." placeholder:"NAME"`
}

// Help is shown by --help.
func (serviceCreateCmd) Help() string {
	return "A service is not a member: with scopes it reads and calls agents, but it neither submits nor votes. " +
		adminHelp + examples("parley service create billing --name 'Billing system'")
}

func (c *serviceCreateCmd) Run(e *env) error {
	return c.createMember(e, client.MemberCreation{Kind: client.PrincipalKind(identity.Service), ID: c.ID, Name: c.Name})
}

type serviceListCmd struct {
	EitherFlags `embed:""`
	wideFlag    `embed:""`
}

// Help is shown by --help.
func (serviceListCmd) Help() string { return adminHelp + examples("parley service list") }

func (c *serviceListCmd) Run(e *env) error { return c.listMembers(e, c.Wide, identity.Service) }
