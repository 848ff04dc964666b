package cli

import (
	"errors"
	"strings"

	"github.com/parley-dev/parley/internal/app"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

const operatorHelp = "For the operator: works on the store, also while a server runs on it.\n\n"

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

// inOrg opens the store for a command that works in one org. The only org of a store need
// not be named.
func (f *StoreFlags) inOrg(e *env, org *string, do func(*app.Operator) error) error {
	return f.with(e, func(op *app.Operator) error {
		orgs, err := op.Identity.Orgs(e.ctx)
		if err != nil {
			return err
		}
		ids := make([]string, len(orgs))
		for i, o := range orgs {
			ids[i] = o.ID
		}
		switch {
		case *org == "" && len(ids) == 1:
			*org = ids[0]
		case *org == "":
			return usage("--org is needed: store %s has these orgs: %s", app.StoreName(f.Store), strings.Join(ids, ", "))
		}
		for _, id := range ids {
			if id == *org {
				return do(op)
			}
		}
		return f.notFound(errs.ErrNotFound, "org", *org, "")
	})
}

// notFound names what was not found. The domain does not, because it must not tell
// strangers what exists; the operator may know.
func (f *StoreFlags) notFound(err error, kind, id, org string) error {
	if err == nil || errs.KindOf(err) != errs.NotFound {
		return err
	}
	return errs.New(errs.NotFound, "resource.not_found", "%s", missing(kind, id, f.in(org), f.again(org)))
}

// again returns the flags that name the same store and org once more. A URL with a
// password is not repeated.
func (f *StoreFlags) again(org string) string {
	s := " --database …"
	if f.Database == "" {
		s = " --data " + app.ShellQuote(f.Data)
	}
	if org != "" {
		s += " --org " + org
	}
	return s
}
