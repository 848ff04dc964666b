package cli

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/parley-dev/parley/internal/identity"
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

type memberRecord struct {
	Ref       string    `json:"ref"`
	Kind      string    `json:"kind"`
	Name      string    `json:"name"`
	Admin     bool      `json:"admin"`
	Disabled  bool      `json:"disabled"`
	CreatedAt time.Time `json:"created_at"`
}

func (m *memberRecord) state() string {
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
	var list struct {
		Members []memberRecord `json:"members"`
		Next    *string        `json:"next_cursor"`
	}
	query := c.query()
	query.Set("kind", c.Kind)
	query.Set("state", c.State)
	if done, err := c.ask(e, call{method: http.MethodGet, path: "/members", query: query}, &list); done {
		return err
	}
	t := table{head: []string{"REF", "ADMIN", "STATE", "CREATED (UTC)", "NAME"}}
	for _, m := range list.Members {
		t.add(m.Ref, yes(m.Admin), m.state(), when(m.CreatedAt), m.Name)
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
	fields := map[string]any{"kind": string(p.Kind), "id": p.ID}
	if c.Name != "" {
		fields["name"] = c.Name
	}
	if c.Admin {
		fields["admin"] = true
	}
	return c.member(e, http.MethodPost, "/members", fields, false, "created %s\n")
}

// member sends a call that answers with a member, and says what became of it.
func (f *serverFlags) member(e *env, method, path string, fields map[string]any, safe bool, format string) error {
	var m memberRecord
	if done, err := f.ask(e, call{method: method, path: path, send: fields, safe: safe}, &m); done {
		return err
	}
	_, err := fmt.Fprintf(e.stdout, format, cleanLine(m.Ref))
	return err
}

// oneMember is a command that changes a principal.
type oneMember struct {
	serverFlags `embed:""`
	Ref         string `arg:"" help:"user:ID, agent:ID or service:ID."`
}

func (c *oneMember) disabled(e *env, yes bool, format string) error {
	return c.patch(e, map[string]any{"disabled": yes}, format)
}

func (c *oneMember) patch(e *env, fields map[string]any, format string) error {
	// To set a field to a value twice is the same as once.
	return c.member(e, http.MethodPatch, "/members/"+url.PathEscape(c.Ref), fields, true, format)
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
