package cli

import (
	"fmt"

	"github.com/parley-dev/parley/internal/app"
	"github.com/parley-dev/parley/internal/identity"
)

// orgFlag names the org that a command of the operator works on.
type orgFlag struct {
	Org string `help:"Org it belongs to." required:"" env:"PARLEY_ORG" placeholder:"ORG"`
}

// created prints the outcome of a command that made something.
func (e *env) created(asJSON bool, v any, format string, args ...any) error {
	if asJSON {
		return e.printJSON(v)
	}
	_, err := fmt.Fprintf(e.stdout, format, args...)
	return err
}

// all prints a list that has no pages.
func (e *env) all(asJSON bool, v any, t *table) error {
	if asJSON {
		return e.printJSON(v)
	}
	return t.write(e.stdout, e.palette())
}

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

func (f *StoreFlags) createMember(e *env, p identity.Principal, name string, admin bool) error {
	return f.with(e, func(op *app.Operator) error {
		m, err := op.Identity.CreateMember(e.ctx, p, name, admin)
		if err != nil {
			return notFound(err, "there is no org %q; parley org list shows all", p.Org)
		}
		return e.created(f.JSON, newMemberJSON(m), "created %s in org %s\n", m.Ref(), m.Org)
	})
}

func (f *StoreFlags) listMembers(e *env, org string, kind identity.Kind) error {
	return f.with(e, func(op *app.Operator) error {
		if err := knownOrg(e, op, org); err != nil {
			return err
		}
		members, err := op.Identity.Members(e.ctx, org, kind)
		if err != nil {
			return err
		}
		out := make([]memberJSON, len(members))
		t := table{head: []string{"ID", "ADMIN", "CREATED (UTC)", "NAME"}}
		for i, m := range members {
			out[i] = newMemberJSON(m)
			t.add(m.ID, yes(m.Admin), when(m.CreatedAt), m.Name)
		}
		return e.all(f.JSON, map[string]any{string(kind) + "s": out}, &t)
	})
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

type userCmd struct {
	Create  userCreateCmd  `cmd:"" help:"Create a user."`
	List    userListCmd    `cmd:"" help:"List the users of an org."`
	Promote userPromoteCmd `cmd:"" help:"Make a user an admin of the org."`
	Demote  userDemoteCmd  `cmd:"" help:"Take the admin role from a user, with every key that carries svc:admin:admin."`
}

// Help is shown by parley user --help.
func (userCmd) Help() string {
	return examples("parley user create ada --org main --name 'Ada Lovelace'", "parley user list --org main", "parley user demote ada --org main")
}

type userCreateCmd struct {
	StoreFlags `embed:""`
	orgFlag    `embed:""`
	ID         string `arg:"" help:"Id of the user: a-z, 0-9, '.', '_' and '-'."`
	Admin      bool   `help:"May administer the org when signed in. Keys carry their scopes by themselves."`
	Name       string `help:"Display name; the id if not given." placeholder:"NAME"`
}

// Help is shown by --help.
func (userCreateCmd) Help() string {
	return examples("parley user create ada --org main --admin --name 'Ada Lovelace'")
}

func (c *userCreateCmd) Run(e *env) error {
	return c.createMember(e, identity.Principal{Org: c.Org, Kind: identity.User, ID: c.ID}, c.Name, c.Admin)
}

type userListCmd struct {
	StoreFlags `embed:""`
	orgFlag    `embed:""`
}

// Help is shown by --help.
func (userListCmd) Help() string { return examples("parley user list --org main") }

func (c *userListCmd) Run(e *env) error { return c.listMembers(e, c.Org, identity.User) }

type serviceCmd struct {
	Create serviceCreateCmd `cmd:"" help:"Create a service."`
	List   serviceListCmd   `cmd:"" help:"List the services of an org."`
}

// Help is shown by parley service --help.
func (serviceCmd) Help() string {
	return examples("parley service create billing --org main", "parley service list --org main")
}

type serviceCreateCmd struct {
	StoreFlags `embed:""`
	orgFlag    `embed:""`
	ID         string `arg:"" help:"Id of the service: a-z, 0-9, '.', '_' and '-'."`
	Name       string `help:"Display name; the id if not given." placeholder:"NAME"`
}

// Help is shown by --help.
func (serviceCreateCmd) Help() string {
	return "A service is no member: with a scope it reads, but it neither submits nor votes.\n\n" +
		examples("parley service create billing --org main --name 'Billing system'")
}

func (c *serviceCreateCmd) Run(e *env) error {
	return c.createMember(e, identity.Principal{Org: c.Org, Kind: identity.Service, ID: c.ID}, c.Name, false)
}

type serviceListCmd struct {
	StoreFlags `embed:""`
	orgFlag    `embed:""`
}

// Help is shown by --help.
func (serviceListCmd) Help() string { return examples("parley service list --org main") }

func (c *serviceListCmd) Run(e *env) error { return c.listMembers(e, c.Org, identity.Service) }
