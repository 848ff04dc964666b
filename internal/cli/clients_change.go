package cli

import (
	"fmt"
	"net/http"
	"time"
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
	fields := map[string]any{}
	if c.Name != nil {
		fields["name"] = *c.Name
	}
	if c.Redirect != nil {
		fields["redirect_uris"] = c.Redirect
	}
	if c.Scope != nil {
		fields["scopes"] = c.Scope
	}
	if len(fields) == 0 {
		return usage("nothing to change; give at least one of --name, --redirect and --scope")
	}
	return c.showClient(e, call{method: http.MethodPatch, path: clientPath(c.ID), send: fields, once: newOnce()})
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
	var r clientRecord
	// It is sent once: whether it was carried out cannot be told from a lost answer.
	send := map[string]any{"overlap_seconds": int(c.Overlap / time.Second)}
	if done, err := c.ask(e, call{method: http.MethodPost, path: clientPath(c.ID) + "/rotate", send: send}, &r); done {
		return err
	}
	old := "ended"
	if r.OldSecretExpiresAt != nil {
		old = "works until " + when(*r.OldSecretExpiresAt) + " UTC"
	}
	fmt.Fprintf(e.stderr, "rotated the secret of %s (%s); the old one %s\n", cleanLine(r.ID), cleanLine(r.Name), old)
	secret := ""
	if r.Secret != nil {
		secret = *r.Secret
	}
	_, err := fmt.Fprintln(e.stdout, cleanLine(secret))
	return err
}
