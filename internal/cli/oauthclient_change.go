package cli

import (
	"fmt"
	"time"

	"github.com/parley-dev/parley/sdk/client"
)

type clientUpdateCmd struct {
	serverFlags `embed:""`
	ID          string   `arg:"" help:"Id of the client, client-…, or a unique prefix of it."`
	Name        *string  `help:"Name on the consent page." placeholder:"NAME"`
	Redirect    []string `help:"Redirect URI; may be repeated. Those given replace all others." placeholder:"URI" sep:"none"`
	Scope       []string `help:"Scope that the client may ask for; may be repeated. Those given replace all others." placeholder:"SCOPE"`
}

// Help is shown by --help.
func (clientUpdateCmd) Help() string {
	return "What is not given stays, and so do grants. Tokens with a scope that the client lost are refused within " +
		"seconds, and a refresh returns the scopes that are left. People are asked again before a new scope is granted. " +
		needsAdmin + examples(
		"parley client update client-01k… --redirect https://reports.example/done --redirect "+
			"https://reports.example/callback",
		"parley client update client-01k… --name 'Monthly reports' --scope svc:tasks:read --json",
	)
}

func (c *clientUpdateCmd) Run(e *env) error {
	if c.Name == nil && c.Redirect == nil && c.Scope == nil {
		return usage("nothing to change; give at least one of --name, --redirect and --scope")
	}
	change := client.OAuthClientPatch{Name: c.Name}
	if c.Redirect != nil {
		change.RedirectURIs = &c.Redirect
	}
	if c.Scope != nil {
		change.Scopes = &c.Scope
	}
	return c.showClient(e, &c.ID, func(api *client.Client, raw client.Option) (*client.OAuthClient, error) {
		return api.OAuthClients.Update(e.ctx, c.ID, change, raw)
	})
}

type clientRotateCmd struct {
	serverFlags `embed:""`
	ID          string        `arg:"" help:"Id of the client, client-…, or a unique prefix of it."`
	Overlap     time.Duration `help:"How long the old secret keeps working, at most 7d; not at all if not given." placeholder:"DURATION"`
}

// Help is shown by --help.
func (clientRotateCmd) Help() string {
	return "The client keeps its id and its grants. Only the new secret goes to stdout; the rest goes to stderr. It is " +
		"shown once. A second rotation ends the oldest secret at once, even during its overlap. " + needsAdmin +
		examples("SECRET=$(parley client rotate client-01k… --overlap 1h)", "parley client rotate client-01k… --json")
}

func (c *clientRotateCmd) Run(e *env) error {
	rotation := client.KeyRotation{OverlapSeconds: seconds(c.Overlap)}
	at, err := c.client(e)
	if err != nil {
		return err
	}
	r, done, err := askAt(e, at, c.JSON, about("client", &c.ID),
		func(api *client.Client, raw client.Option) (*client.OAuthClient, error) {
			return api.OAuthClients.Rotate(e.ctx, c.ID, rotation, raw)
		})
	if done {
		return err
	}
	old := "ended"
	if !r.OldSecretExpiresAt.IsZero() {
		old = "works until " + when(r.OldSecretExpiresAt) + " UTC"
	}
	fmt.Fprintf(e.stderr, "rotated the secret of client %q (%s) %s; the old one %s\n",
		cleanLine(r.ID), cleanLine(r.Name), at.in(e), old)
	_, err = fmt.Fprintln(e.stdout, cleanLine(r.Secret))
	return err
}
