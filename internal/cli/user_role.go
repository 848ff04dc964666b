package cli

import (
	"fmt"

	"github.com/parley-dev/parley/internal/app"
	"github.com/parley-dev/parley/internal/identity"
)

// oneUser is a command of the operator that changes the role of a user.
type oneUser struct {
	StoreFlags `embed:""`
	orgFlag    `embed:""`
	ID         string `arg:"" help:"Id of the user."`
}

type roleJSON struct {
	memberJSON
	RevokedKeys []string `json:"revoked_keys"`
	Grants      []string `json:"narrowed_grants"`
}

// setAdmin changes the role, and says which credentials ended with it.
func (c *oneUser) setAdmin(e *env, admin bool) error {
	p := identity.Principal{Org: c.Org, Kind: identity.User, ID: c.ID}
	return c.with(e, func(op *app.Operator) error {
		out, err := op.Identity.SetAdmin(e.ctx, p, admin)
		if err != nil {
			return notFound(err, "there is no %s in org %q; parley user list shows all", p.Ref(), p.Org)
		}
		j := roleJSON{newMemberJSON(out.Member), []string{}, []string{}}
		for _, g := range out.End.Grants {
			j.Grants = append(j.Grants, g.ID)
		}
		for _, k := range out.End.Keys {
			j.RevokedKeys = append(j.RevokedKeys, k.ID)
		}
		if c.JSON {
			return e.printJSON(j)
		}
		state := "is an admin"
		if !admin {
			state = "is not an admin"
		}
		if _, err := fmt.Fprintf(e.stdout, "%s %s of org %s\n", p.Ref(), state, p.Org); err != nil {
			return err
		}
		for _, id := range j.RevokedKeys {
			if _, err := fmt.Fprintf(e.stdout, "revoked %s, which carried %s\n", id, identity.Admin); err != nil {
				return err
			}
		}
		for _, id := range j.Grants {
			if _, err := fmt.Fprintf(e.stdout, "took %s from %s, by which a program had it\n", identity.Admin, id); err != nil {
				return err
			}
		}
		return nil
	})
}

type userPromoteCmd struct {
	oneUser `embed:""`
}

// Help is shown by --help.
func (userPromoteCmd) Help() string { return examples("parley user promote ada --org main") }

func (c *userPromoteCmd) Run(e *env) error { return c.setAdmin(e, true) }

type userDemoteCmd struct {
	oneUser `embed:""`
}

// Help is shown by --help.
func (userDemoteCmd) Help() string {
	return "Revokes every key of the user that carries svc:admin:admin, and takes that scope from programs that act for the user. " +
		"Other keys keep working. The last enabled admin of an org cannot be demoted.\n\n" +
		examples("parley user demote ada --org main")
}

func (c *userDemoteCmd) Run(e *env) error { return c.setAdmin(e, false) }
