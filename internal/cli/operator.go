package cli

import (
	"errors"
	"time"

	"github.com/parley-dev/parley/internal/app"
	"github.com/parley-dev/parley/internal/config"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

// StoreFlags are part of every command that works on the store itself. The name is
// exported because kong looks for hooks, and config.Store has some, in exported
// fields only.
type StoreFlags struct {
	jsonFlag     `embed:""`
	config.Store `embed:""`
}

// with opens the store for one command.
func (f *StoreFlags) with(e *env, do func(*app.Operator) error) error {
	return f.open(e, false, do)
}

func (f *StoreFlags) open(e *env, create bool, do func(*app.Operator) error) error {
	op, err := app.OpenOperator(e.ctx, f.Store, create)
	if err != nil {
		return err
	}
	e.ctx = identity.WithOrigin(e.ctx, identity.Origin{Actor: identity.OperatorActor})
	return errors.Join(do(op), op.Close())
}

// notFound says what was not found, which the domain keeps to itself because it
// must not tell strangers; the operator is none.
func notFound(err error, format string, args ...any) error {
	if err != nil && errs.KindOf(err) == errs.NotFound {
		return errs.New(errs.NotFound, "resource.not_found", format, args...)
	}
	return err
}

type orgCmd struct {
	Create orgCreateCmd `cmd:"" help:"Create an org."`
	List   orgListCmd   `cmd:"" help:"List all orgs."`
}

// Help is shown by parley org --help.
func (orgCmd) Help() string {
	return examples("parley org create acme --name 'Acme Inc.'", "parley org list")
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
	return examples("parley org create acme --name 'Acme Inc.'", "parley org create acme --database postgres://parley@db/parley")
}

func (c *orgCreateCmd) Run(e *env) error {
	return c.open(e, true, func(op *app.Operator) error {
		o, err := op.Identity.CreateOrg(e.ctx, c.ID, c.Name)
		if err != nil {
			return err
		}
		return e.created(c.JSON, newOrgJSON(o), "created org %s\n", o.ID)
	})
}

type orgListCmd struct {
	StoreFlags `embed:""`
}

// Help is shown by --help.
func (orgListCmd) Help() string { return examples("parley org list", "parley org list --json") }

func (c *orgListCmd) Run(e *env) error {
	return c.with(e, func(op *app.Operator) error {
		orgs, err := op.Identity.Orgs(e.ctx)
		if err != nil {
			return err
		}
		out := make([]orgJSON, len(orgs))
		t := table{head: []string{"ID", "CREATED (UTC)", "NAME"}}
		for i, o := range orgs {
			out[i] = newOrgJSON(o)
			t.add(o.ID, when(o.CreatedAt), o.Name)
		}
		return e.all(c.JSON, map[string]any{"orgs": out}, &t)
	})
}

// knownOrg refuses an org that does not exist: the empty list of a mistyped one
// would look like an answer.
func knownOrg(e *env, op *app.Operator, id string) error {
	orgs, err := op.Identity.Orgs(e.ctx)
	if err != nil {
		return err
	}
	for _, o := range orgs {
		if o.ID == id {
			return nil
		}
	}
	return noOrg(id)
}

func noOrg(id string) error {
	return errs.New(errs.NotFound, "resource.not_found", "there is no org %q; parley org list shows all", id)
}

// expiry turns --expires into a time.
func expiry(d time.Duration) (time.Time, error) {
	switch {
	case d < 0:
		return time.Time{}, usage("--expires must lie in the future")
	case d == 0:
		return time.Time{}, nil
	}
	return app.Now().Add(d), nil
}
