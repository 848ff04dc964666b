package cli

import (
	"github.com/parley-dev/parley/internal/app"
	"github.com/parley-dev/parley/internal/config"
	"github.com/parley-dev/parley/internal/identity"
)

type orgCmd struct {
	Create orgCreateCmd `cmd:"" help:"Create an org."`
	List   orgListCmd   `cmd:"" help:"List all orgs."`
	Export orgExportCmd `cmd:"" help:"Write all data of one org to a file, while servers use the store."`
	Import orgImportCmd `cmd:"" help:"Add the org of an export to a store, also of the other engine."`
	Delete orgDeleteCmd `cmd:"" help:"Delete an org and everything of it."`
}

// Help is shown by parley org --help.
func (orgCmd) Help() string {
	return operatorHelp + examples("parley org create acme --name 'Acme Inc.'", "parley org list",
		"parley org export acme acme.backup", "parley org import acme.backup --data elsewhere")
}

type orgJSON struct {
	ID        string  `json:"id"`
	Name      string  `json:"name"`
	CreatedAt *string `json:"created_at"`
}

func newOrgJSON(o identity.Org) orgJSON { return orgJSON{o.ID, o.Name, timestamp(o.CreatedAt)} }

type orgCreateCmd struct {
	StoreFlags `embed:""`
	ID         string `arg:"" help:"Id of the org: a-z, 0-9 and '-'."`
	Name       string `help:"Display name; the id if not given." placeholder:"NAME"`
}

// Help is shown by --help.
func (orgCreateCmd) Help() string {
	return operatorHelp + examples(
		"parley org create acme --name 'Acme Inc.'",
		"parley org create acme --database postgres://parley@db/parley",
	)
}

func (c *orgCreateCmd) Run(e *env) error {
	// Only a store that was named is set up: a default must not create a folder where the
	// command happens to run.
	n := namingOf(e.kong)
	return c.open(e, max(n.data, n.database) > config.FromDefault, func(op *app.Operator) error {
		o, err := op.Identity.CreateOrg(e.ctx, c.ID, c.Name)
		if err != nil {
			return err
		}
		return e.created(c.JSON, newOrgJSON(o), "created org %q %s", o.ID, c.in(""))
	})
}

type orgListCmd struct {
	StoreFlags `embed:""`
	wideFlag   `embed:""`
}

// Help is shown by --help.
func (orgListCmd) Help() string {
	return operatorHelp + examples("parley org list", "parley org list --json")
}

func (c *orgListCmd) Run(e *env) error {
	return c.with(e, func(op *app.Operator) error {
		orgs, err := op.Identity.Orgs(e.ctx)
		if err != nil {
			return err
		}
		out := make([]orgJSON, len(orgs))
		t := table{head: []string{"ID", "CREATED (UTC)", "NAME"}, wide: c.Wide}
		for i, o := range orgs {
			out[i] = newOrgJSON(o)
			t.add(o.ID, when(o.CreatedAt), o.Name)
		}
		return e.all(c.JSON, map[string]any{"orgs": out}, &t)
	})
}
