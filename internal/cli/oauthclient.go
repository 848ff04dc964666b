package cli

import (
	"fmt"
	"strings"

	"github.com/parley-dev/parley/sdk/client"
)

type clientCmd struct {
	Create clientCreateCmd `cmd:"" help:"Register a program and print its client id."`
	List   clientListCmd   `cmd:"" help:"List the programs that were registered in your org."`
	Show   clientShowCmd   `cmd:"" help:"Show one of them."`
	Update clientUpdateCmd `cmd:"" help:"Change the name, the addresses or the rights of one."`
	Rotate clientRotateCmd `cmd:"" help:"Replace the secret of one and print the new one."`
	Delete clientDeleteCmd `cmd:"" help:"Delete one, with all that people allowed it."`
}

// Help is shown by parley client --help.
func (clientCmd) Help() string {
	return "A client is a program that members of your org may allow to act for them, by OAuth 2.1. Needs the scope svc:admin:admin.\n\n" + examples(
		"parley client create Reports --redirect https://reports.example/done --scope svc:tasks:read --confidential",
		"parley client list",
		"parley client update client-01k… --scope svc:tasks:read",
		"SECRET=$(parley client rotate client-01k… --overlap 1h)",
		"parley client delete client-01k…",
	)
}

type clientCreateCmd struct {
	serverFlags  `embed:""`
	Name         string   `arg:"" help:"What people read when they are asked."`
	Redirect     []string `help:"Where the answer may go; may be repeated. https, http to the person's own machine, or a scheme like com.example.app:/done." required:"" placeholder:"URI" sep:"none"`
	Scope        []string `help:"Right that the program may ask for; may be repeated. svc:tasks:read, svc:tasks:write, svc:a2a:write, svc:admin:admin, agent:ID or agent:*; all but svc:admin:admin if not given." placeholder:"SCOPE"`
	Confidential bool     `help:"The program can keep a secret: make one for it."`
}

// Help is shown by --help.
func (clientCreateCmd) Help() string {
	return "The client id alone goes to stdout, and the rest to stderr; with --confidential the secret is the second line. It is shown this once. Needs the scope svc:admin:admin.\n\n" + examples(
		"parley client create Editor --redirect http://127.0.0.1/done",
		"parley client create Reports --redirect https://reports.example/done --scope svc:tasks:read --confidential --json",
	)
}

func (c *clientCreateCmd) Run(e *env) error {
	creation := client.OAuthClientCreation{Name: c.Name, RedirectURIs: c.Redirect, Scopes: c.Scope}
	if c.Confidential {
		creation.Method = "client_secret_basic"
	}
	made, done, err := ask(e, &c.serverFlags, func(api *client.Client, raw client.Option) (*client.OAuthClient, error) {
		return api.OAuthClients.Create(e.ctx, creation, raw)
	})
	if done {
		return err
	}
	fmt.Fprintf(e.stderr, "registered %s in org %s; it may ask for %s\n", cleanLine(made.Name), cleanLine(c.Org), cleanLine(strings.Join(made.Scopes, " ")))
	lines := cleanLine(made.ID) + "\n"
	if made.Secret != "" {
		lines += cleanLine(made.Secret) + "\n"
	}
	_, err = e.stdout.Write([]byte(lines))
	return err
}

type clientListCmd struct {
	serverFlags `embed:""`
}

// Help is shown by --help.
func (clientListCmd) Help() string {
	return "Without their secrets. Programs that registered themselves belong to no org and are not listed. Needs the scope svc:admin:admin.\n\n" +
		examples("parley client list", "parley client list --json")
}

func (c *clientListCmd) Run(e *env) error {
	cl, err := c.client(e)
	if err != nil {
		return err
	}
	t := table{head: []string{"ID", "NAME", "SECRET", "CREATED (UTC)", "BY", "SCOPES"}}
	page := func(opts ...client.Option) (*client.Page[client.OAuthClient], error) {
		return cl.OAuthClients.List(e.ctx, client.CursorParams{}, opts...)
	}
	list, err := all("clients", page, func(r *client.OAuthClient) {
		t.add(r.ID, r.Name, yes(r.Method != "none"), when(r.CreatedAt), r.CreatedBy, strings.Join(r.Scopes, " "))
	})
	if err != nil {
		return err
	}
	if c.JSON {
		return e.printJSON(map[string]any{"clients": list})
	}
	return e.list(&t, e.palette(), "client", "clients", len(list), 1, false)
}

type clientShowCmd struct {
	serverFlags `embed:""`
	ID          string `arg:"" help:"Id of the client, client-…"`
}

// Help is shown by --help.
func (clientShowCmd) Help() string {
	return "Without its secret. Needs the scope svc:admin:admin.\n\n" + examples("parley client show client-01k…", "parley client show client-01k… --json")
}

func (c *clientShowCmd) Run(e *env) error {
	return c.showClient(e, func(api *client.Client, raw client.Option) (*client.OAuthClient, error) {
		return api.OAuthClients.Get(e.ctx, c.ID, raw)
	})
}

// showClient makes a call that returns a client, and prints it.
func (f *serverFlags) showClient(e *env, do func(*client.Client, client.Option) (*client.OAuthClient, error)) error {
	r, done, err := ask(e, f, do)
	if done {
		return err
	}
	rec := record{p: e.palette()}
	rec.heading(r.ID)
	rec.field("name", cleanLine(r.Name))
	rec.field("scopes", cleanLine(strings.Join(r.Scopes, " ")))
	rec.field("redirects", cleanLine(strings.Join(r.RedirectURIs, " ")))
	rec.field("method", cleanLine(r.Method))
	if !r.OldSecretExpiresAt.IsZero() {
		rec.field("old secret", "until "+when(r.OldSecretExpiresAt)+" UTC")
	}
	rec.field("created", when(r.CreatedAt)+" UTC by "+cleanLine(r.CreatedBy))
	_, err = e.stdout.Write([]byte(rec.b.String()))
	return err
}

type clientDeleteCmd struct {
	serverFlags `embed:""`
	ID          string `arg:"" help:"Id of the client, client-…"`
}

// Help is shown by --help.
func (clientDeleteCmd) Help() string {
	return "All that people allowed it ends, on all nodes, within seconds. Needs the scope svc:admin:admin.\n\n" + examples("parley client delete client-01k…")
}

func (c *clientDeleteCmd) Run(e *env) error {
	r, done, err := ask(e, &c.serverFlags, func(api *client.Client, raw client.Option) (*client.OAuthClient, error) {
		return api.OAuthClients.Delete(e.ctx, c.ID, raw)
	})
	if done {
		return err
	}
	_, err = fmt.Fprintf(e.stdout, "deleted %s\n", cleanLine(r.ID))
	return err
}
