package cli

import (
	"github.com/parley-dev/parley/internal/app"
	"github.com/parley-dev/parley/internal/config"
)

type serveCmd struct {
	jsonFlag      `embed:""`
	Demo          bool `help:"Fill an empty store with a demo: a company with a month of history and agents at work."`
	config.Config `embed:""`
}

// Help is shown by --help.
func (serveCmd) Help() string {
	return "For the operator. The first start on an empty store creates the org main with the user admin, and prints " +
		"a first key.\n\nWith --demo, an empty store is filled with a company, and programs play its agents. Without " +
		"--data or --database, that store is a folder that is removed when the server stops." +
		"\n\nA flag takes precedence over its PARLEY_* variable, and a variable over the file of " +
		"--config.\n\n" + examples(
		"parley serve",
		"parley serve --demo",
		"parley serve --listen 0.0.0.0:8443 --tls-cert cert.pem --tls-key key.pem --data /var/lib/parley",
		"parley serve --acme parley.example --acme-email admin@parley.example --data /var/lib/parley",
		"parley serve --database postgres://parley@db/parley --public-url https://parley.example --log-format json",
	)
}

func (c *serveCmd) Run(e *env) error {
	c.CompleteACME(config.SourceOf(e.kong, "listen") != config.FromDefault)
	out := app.Output{Stdout: e.stdout, Stderr: e.stderr, JSON: c.JSON}
	if !c.Demo {
		return app.Run(e.ctx, c.Config, out)
	}
	temporary := c.Database == "" && config.SourceOf(e.kong, "data") == config.FromDefault
	return app.RunDemo(e.ctx, c.Config, temporary, out)
}

type migrateCmd struct {
	jsonFlag     `embed:""`
	config.Store `embed:""`
	DryRun       bool `help:"List pending migrations and the servers that use the store, and change nothing."`
	Force        bool `help:"Apply incompatible migrations while older servers use the store; those then refuse all requests."`
}

// Help is shown by --help.
func (migrateCmd) Help() string {
	return "For the operator: works on the store. Every start of the server migrates, too; run this to do it " +
		"separately. Compatible migrations may run beside older servers; an incompatible one is refused while any is " +
		"alive.\n\n" + examples(
		"parley migrate --dry-run",
		"parley migrate --database postgres://parley@db/parley",
		"parley migrate --force",
	)
}

func (c *migrateCmd) Run(e *env) error {
	if c.DryRun && c.Force {
		return usage("--dry-run and --force exclude each other: give one of them")
	}
	r, err := app.Migrate(e.ctx, c.Store, app.Migration{Force: c.Force, DryRun: c.DryRun})
	if err != nil {
		return err
	}
	out := newMigrationJSON(r, c.DryRun)
	if c.JSON {
		return e.printJSON(out)
	}
	return out.print(e.stdout, r)
}
