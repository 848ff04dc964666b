package cli

import (
	"fmt"
	"time"

	"github.com/parley-dev/parley/sdk/client"
)

type clientUpdateCmd struct {
	serverFlags `embed:""`
	ID          string   `arg:"" help:"Id of the client, client-…"`
	Name        *string  `help:"What people read when they are asked." placeholder:"NAME"`
	Redirect    []string `help:"Where the answer may go; may be repeated. Those given replace all." placeholder:"URI" sep:"none"`
	Scope       []string `help:"Right that the program may ask for; may be repeated. Those given replace all." placeholder:"SCOPE"`
}

// Help is shown by --help.
func (clientUpdateCmd) Help() string {
	return "What is not given stays, and so does what people allowed the program. Tokens with a right that it may not have any more are refused within seconds, and a refresh yields what is left; " +
		"for a further right people are asked again. Needs the scope svc:admin:admin.\n\n" + examples(
		"parley client update client-01k… --redirect https://reports.example/done --redirect https://reports.example/callback",
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
	return c.showClient(e, func(api *client.Client, raw client.Option) (*client.OAuthClient, error) {
		return api.OAuthClients.Update(e.ctx, c.ID, change, raw)
	})
}

type clientRotateCmd struct {
	serverFlags `embed:""`
	ID          string        `arg:"" help:"Id of the client, client-…"`
	Overlap     time.Duration `help:"How long the old secret works beside the new one, at most 168h; not at all if not given." placeholder:"DURATION"`
}

// Help is shown by --help.
func (clientRotateCmd) Help() string {
	return "The client keeps its id, and all that people allowed it. The new secret alone goes to stdout, and the rest to stderr. It is shown this once. A second rotation ends the oldest secret at once, " +
		"whatever its overlap was. Needs the scope svc:admin:admin.\n\n" +
		examples("SECRET=$(parley client rotate client-01k… --overlap 1h)", "parley client rotate client-01k… --json")
}

func (c *clientRotateCmd) Run(e *env) error {
	r, done, err := ask(e, &c.serverFlags, func(api *client.Client, raw client.Option) (*client.OAuthClient, error) {
		return api.OAuthClients.Rotate(e.ctx, c.ID, client.KeyRotation{OverlapSeconds: int(c.Overlap / time.Second)}, raw)
	})
	if done {
		return err
	}
	old := "ended"
	if !r.OldSecretExpiresAt.IsZero() {
		old = "works until " + when(r.OldSecretExpiresAt) + " UTC"
	}
	fmt.Fprintf(e.stderr, "rotated the secret of %s (%s); the old one %s\n", cleanLine(r.ID), cleanLine(r.Name), old)
	_, err = fmt.Fprintln(e.stdout, cleanLine(r.Secret))
	return err
}
