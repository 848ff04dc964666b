package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/app"
	"github.com/parley-dev/parley/internal/config"
	"github.com/parley-dev/parley/internal/identity"
)

type orgExportCmd struct {
	StoreFlags         `embed:""`
	Org                string `arg:"" help:"Id of the org."`
	Dest               string `arg:"" help:"New file, or a folder, where the file gets a name with the time; or - for stdout."`
	WithoutCredentials bool   `help:"Leave out keys, passwords, invitations, programs, webhooks and push configurations."`
}

// Help is shown by --help.
func (orgExportCmd) Help() string {
	return operatorHelp + "The export has everything of the org as of the moment in which the command began, and " +
		"nothing of other orgs. With the hashes of keys and passwords in it, agents and people keep working where it is " +
		"imported. Signing keys of webhooks and credentials are in it, too, and not encrypted, because the other store has other " +
		"keys: keep it safe and delete it afterwards, or use --without-credentials. Sessions and links that were not used yet are not in it.\n\n" + examples(
		"parley org export acme acme.backup",
		"parley org export acme /var/backups/parley/ --data /var/lib/parley",
		"parley org export acme - --database postgres://parley@db/parley | parley org import - --data elsewhere",
	)
}

func (c *orgExportCmd) Run(e *env) error {
	if err := e.checkDest(c.Dest, c.JSON); err != nil {
		return err
	}
	began := time.Now()
	p := e.progress()
	to := app.BackupTo{Dest: c.Dest, Stdout: e.stdout}
	b, err := app.ExportOrg(e.ctx, c.Store, c.Org, !c.WithoutCredentials, to, p.show)
	p.clear()
	if err != nil {
		return c.notFound(err, "org", c.Org, "")
	}
	return e.backedUp(&b, c.JSON, c.Dest, fmt.Sprintf("exported %d rows of the org %q", b.Rows, b.Org), began)
}

type orgImportCmd struct {
	StoreFlags         `embed:""`
	Src                string `arg:"" help:"File that parley org export wrote; or - for stdin."`
	As                 string `help:"Id that the org gets, if its own is taken." placeholder:"ID"`
	WithoutCredentials bool   `help:"Leave out keys, passwords, invitations, programs, webhooks and push configurations."`
}

// Help is shown by --help.
func (orgImportCmd) Help() string {
	return operatorHelp + "The store may have other orgs, may be in use, and may have another engine than the one of " +
		"the export. The org appears with everything, or not at all. Its secrets are encrypted under the key of this store. An export of an older version is brought up to " +
		"date.\n\n" + examples(
		"parley org import acme.backup --data /var/lib/parley",
		"parley org import acme.backup --database postgres://parley@db/parley",
		"parley org import acme.backup --as acme-copy --without-credentials",
	)
}

type orgImportJSON struct {
	Org        orgJSON          `json:"org"`
	ExportedAs string           `json:"exported_as"`
	Version    string           `json:"version"`
	Schema     int              `json:"schema"`
	Engine     string           `json:"engine"`
	CreatedAt  *string          `json:"created_at"`
	Rows       int64            `json:"rows"`
	Tables     map[string]int64 `json:"tables"`
	Store      string           `json:"store"`
	Seconds    float64          `json:"seconds"`
}

func (c *orgImportCmd) Run(e *env) error {
	from, done, err := e.source(c.Src)
	if err != nil {
		return err
	}
	defer done()
	n := namingOf(e.kong)
	how := app.OrgImport{
		As: c.As, WithoutSecrets: c.WithoutCredentials, Create: max(n.data, n.database) > config.FromDefault,
	}
	began := time.Now()
	p := e.progress()
	ctx := identity.WithOrigin(e.ctx, identity.Origin{Actor: identity.OperatorActor})
	r, err := app.ImportOrg(ctx, c.Store, from, how, p.show)
	p.clear()
	if err != nil {
		return err
	}
	out := orgImportJSON{
		Org: newOrgJSON(r.Org), ExportedAs: r.Header.Org, Version: r.Version, Schema: r.Schema, Engine: r.Engine,
		CreatedAt: timestamp(r.CreatedAt), Rows: r.Rows, Tables: r.Tables, Store: r.Store,
		Seconds: time.Since(began).Seconds(),
	}
	if c.JSON {
		return e.printJSON(out)
	}
	_, err = fmt.Fprintf(e.stdout,
		"imported the org %q (%d rows, exported %s by parley %s on a %s store) into %s, in %.1f s\n",
		r.Org.ID, r.Rows, r.CreatedAt.Format(time.RFC3339), cleanLine(r.Version), cleanLine(r.Engine), clean(r.Store),
		out.Seconds)
	return err
}

type orgDeleteCmd struct {
	StoreFlags `embed:""`
	Org        string `arg:"" help:"Id of the org."`
	Yes        bool   `help:"Do not ask."`
}

// Help is shown by --help.
func (orgDeleteCmd) Help() string {
	return operatorHelp + "At once all keys, sessions and programs of the org stop. Then its rows are deleted in small " +
		"steps, and the org last. Run the command again to continue after an interruption. It cannot be undone: export the " +
		"org first. People who are in other orgs stay there. Back-ups keep what they have.\n\n" + examples(
		"parley org delete acme",
		"parley org delete acme --yes --database postgres://parley@db/parley",
	)
}

type orgDeleteJSON struct {
	ID      string  `json:"id"`
	Deleted bool    `json:"deleted"`
	Seconds float64 `json:"seconds"`
}

func (c *orgDeleteCmd) Run(e *env) error {
	if !c.Yes {
		what := fmt.Sprintf("This deletes the org %q and everything of it, for good.", c.Org)
		if err := e.confirm(c.Org, what); err != nil {
			return err
		}
	}
	began := time.Now()
	p := e.progress()
	ctx := identity.WithOrigin(e.ctx, identity.Origin{Actor: identity.OperatorActor})
	err := app.DeleteOrg(ctx, c.Store, c.Org, p.show)
	p.clear()
	if err != nil {
		return c.notFound(err, "org", c.Org, "")
	}
	out := orgDeleteJSON{ID: c.Org, Deleted: true, Seconds: time.Since(began).Seconds()}
	if c.JSON {
		return e.printJSON(out)
	}
	_, err = fmt.Fprintf(e.stdout, "deleted the org %q from %s, in %.1f s\n", c.Org, clean(app.StoreName(c.Store)),
		out.Seconds)
	return err
}

// confirm asks a person at a terminal to type a name. Elsewhere --yes is needed.
func (e *env) confirm(name, what string) error {
	if f, ok := e.stdin.(*os.File); ok && !isTerminal(f) {
		return usage("stdin is not a terminal, so the command cannot ask; add --yes if you are sure")
	}
	if _, err := fmt.Fprintf(e.stderr, "%s Type %s to go on: ", what, name); err != nil {
		return err
	}
	line, err := bufio.NewReader(io.LimitReader(e.stdin, maxInput)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if strings.TrimSpace(line) != name {
		return usage("that is not %s: nothing was done", name)
	}
	return nil
}
