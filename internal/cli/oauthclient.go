package cli

import (
	"fmt"
	"strings"

	"github.com/parley-dev/parley/sdk/client"
)

type clientCmd struct {
	Create clientCreateCmd `cmd:"" help:"Register a client and print its id."`
	List   clientListCmd   `cmd:"" help:"List the clients of your org."`
	Show   clientShowCmd   `cmd:"" help:"Show one client."`
	Update clientUpdateCmd `cmd:"" help:"Change the name, the redirect URIs or the scopes of a client."`
	Rotate clientRotateCmd `cmd:"" help:"Replace the secret of a client and print the new one."`
	Delete clientDeleteCmd `cmd:"" help:"Delete a client and all grants to it."`
}

// Help is shown by parley client --help.
func (clientCmd) Help() string {
	return "An OAuth 2.1 client is a program that members of your org may allow to act for them. " + needsAdmin + examples(
		"parley client create Reports --redirect https://reports.example/done --scope svc:tasks:read --confidential",
		"parley client list",
		"parley client update client-01k… --scope svc:tasks:read",
		"SECRET=$(parley client rotate client-01k… --overlap 1h)",
		"parley client delete client-01k…",
	)
}

type clientCreateCmd struct {
	serverFlags  `embed:""`
	Name         string   `arg:"" help:"Name on the consent page."`
	Redirect     []string `help:"Redirect URI; may be repeated: ${redirects}." required:"" placeholder:"URI" sep:"none"`
	Scope        []string `help:"Scope that the client may ask for; may be repeated: ${client_scopes}." placeholder:"SCOPE"`
	Confidential bool     `help:"The client can keep a secret: make one for it."`
}

// Help is shown by --help.
func (clientCreateCmd) Help() string {
	return "Only the client id goes to stdout, with --confidential followed by the secret on a second line; the rest " +
		"goes to stderr. The secret is shown once. " + needsAdmin + examples(
		"parley client create Editor --redirect http://127.0.0.1/done",
		"parley client create Reports --redirect https://reports.example/done --scope svc:tasks:read --confidential --json",
	)
}

func (c *clientCreateCmd) Run(e *env) error {
	creation := client.OAuthClientCreation{Name: c.Name, RedirectURIs: c.Redirect, Scopes: c.Scope}
	if c.Confidential {
		creation.Method = "client_secret_basic"
	}
	r, err := c.client(e)
	if err != nil {
		return err
	}
	made, done, err := askAt(e, r, c.JSON, aboutOrg,
		func(api *client.Client, raw client.Option) (*client.OAuthClient, error) {
			return api.OAuthClients.Create(e.ctx, creation, raw)
		})
	if done {
		return err
	}
	fmt.Fprintf(e.stderr, "registered client %q %s; it may ask for %s\n",
		cleanLine(made.Name), r.in(e), cleanLine(strings.Join(made.Scopes, " ")))
	lines := cleanLine(made.ID) + "\n"
	if made.Secret != "" {
		lines += cleanLine(made.Secret) + "\n"
	}
	_, err = e.stdout.Write([]byte(lines))
	return err
}

type clientListCmd struct {
	serverFlags `embed:""`
	wideFlag    `embed:""`
}

// Help is shown by --help.
func (clientListCmd) Help() string {
	return "Without their secrets. Clients that registered themselves belong to no org and are not listed. " + needsAdmin +
		examples("parley client list", "parley client list --json")
}

func (c *clientListCmd) Run(e *env) error {
	cl, err := c.client(e)
	if err != nil {
		return err
	}
	t := table{
		head: []string{"ID", "NAME", "SECRET", "CREATED (UTC)", "BY", "SCOPES"},
		ids:  "client",
		drop: []string{"CREATED (UTC)", "BY", "SECRET"},
		wide: c.Wide,
	}
	page := func(opts ...client.Option) (*client.Page[client.OAuthClient], error) {
		return cl.OAuthClients.List(e.ctx, client.CursorParams{}, opts...)
	}
	list, err := everything("clients", page, func(r *client.OAuthClient) {
		t.add(r.ID, r.Name, yes(r.Method != "none"), when(r.CreatedAt), r.CreatedBy, strings.Join(r.Scopes, " "))
	})
	if err != nil {
		return cl.explain(e, aboutOrg, err)
	}
	if c.JSON {
		return e.printJSON(map[string]any{"clients": list})
	}
	return e.list(&t, "client", "clients", len(list), 1, false)
}

type clientShowCmd struct {
	serverFlags `embed:""`
	ID          string `arg:"" help:"Id of the client, client-…, or a unique prefix of it."`
}

// Help is shown by --help.
func (clientShowCmd) Help() string {
	return "Without its secret. " + needsAdmin + examples("parley client show client-01k…", "parley client show client-01k… --json")
}

func (c *clientShowCmd) Run(e *env) error {
	return c.showClient(e, &c.ID, func(api *client.Client, raw client.Option) (*client.OAuthClient, error) {
		return api.OAuthClients.Get(e.ctx, c.ID, raw)
	})
}

// showClient makes a call about a client and prints the client.
func (f *serverFlags) showClient(
	e *env, id *string, do func(*client.Client, client.Option) (*client.OAuthClient, error),
) error {
	r, done, err := ask(e, f, about("client", id), do)
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
	ID          string `arg:"" help:"Id of the client, client-…, or a unique prefix of it."`
}

// Help is shown by --help.
func (clientDeleteCmd) Help() string {
	return "All grants to it end on all nodes within seconds. " + needsAdmin + examples("parley client delete client-01k…")
}

func (c *clientDeleteCmd) Run(e *env) error {
	r, err := c.client(e)
	if err != nil {
		return err
	}
	gone, done, err := askAt(e, r, c.JSON, about("client", &c.ID),
		func(api *client.Client, raw client.Option) (*client.OAuthClient, error) {
			return api.OAuthClients.Delete(e.ctx, c.ID, raw)
		})
	if done {
		return err
	}
	return e.say("deleted client %q %s", gone.ID, r.in(e))
}
