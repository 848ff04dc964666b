package cli

import (
	"fmt"

	"github.com/parley-dev/parley/internal/app"
	"github.com/parley-dev/parley/internal/config"
)

type serveCmd struct {
	jsonFlag      `embed:""`
	config.Config `embed:""`
}

// Help is shown by --help.
func (serveCmd) Help() string {
	return "The first start on an empty store creates the org main with the user admin, and prints a first key.\n\n" +
		"Settings come from flags, else from PARLEY_* variables, else from the file named with --config.\n\n" + examples(
		"parley serve",
		"parley serve --listen 0.0.0.0:8443 --tls-cert cert.pem --tls-key key.pem --data /var/lib/parley",
		"parley serve --database postgres://parley@db/parley --public-url https://parley.example --log-format json",
	)
}

func (c *serveCmd) Run(e *env) error {
	return app.Run(e.ctx, c.Config, app.Output{Stdout: e.stdout, Stderr: e.stderr, JSON: c.JSON})
}

type migrateCmd struct {
	jsonFlag     `embed:""`
	config.Store `embed:""`
}

// Help is shown by --help.
func (migrateCmd) Help() string {
	return "Every start of the server does this, too; run it alone to separate the two.\n\n" + examples(
		"parley migrate",
		"parley migrate --database postgres://parley@db/parley",
	)
}

func (c *migrateCmd) Run(e *env) error {
	engine, err := app.Migrate(e.ctx, c.Store)
	if err != nil {
		return err
	}
	if c.JSON {
		return e.printJSON(map[string]string{"engine": engine, "status": "up to date"})
	}
	_, err = fmt.Fprintf(e.stdout, "The %s store is up to date.\n", engine)
	return err
}

type versionCmd struct {
	jsonFlag `embed:""`
}

// Help is shown by --help.
func (versionCmd) Help() string { return examples("parley version", "parley version --json") }

func (c *versionCmd) Run(e *env) error {
	if c.JSON {
		return e.printJSON(map[string]string{"version": app.Version()})
	}
	_, err := fmt.Fprintln(e.stdout, "parley "+app.Version())
	return err
}
