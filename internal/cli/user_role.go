package cli

import (
	"fmt"

	"github.com/parley-dev/parley/internal/app"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/sdk/client"
)

// OneUser is part of commands that change the role of a user. It is exported for the same
// reason as StoreFlags.
type OneUser struct {
	EitherFlags `embed:""`
	ID          string `arg:"" help:"Id of the user."`
}

type roleJSON struct {
	memberJSON
	RevokedKeys []string `json:"revoked_keys"`
	Grants      []string `json:"narrowed_grants"`
}

// setAdmin changes the role. On a store it also lists the credentials that ended with it.
func (c *OneUser) setAdmin(e *env, admin bool) error {
	state := "is an admin"
	if !admin {
		state = "is not an admin"
	}
	r, err := c.remote(e)
	if err != nil {
		return err
	}
	if r != nil {
		_, done, err := askAt(e, r, c.JSON, about("user", &c.ID),
			func(api *client.Client, raw client.Option) (*client.Member, error) {
				return api.Members.Update(e.ctx, "user:"+c.ID, client.MemberPatch{Admin: &admin}, raw)
			})
		if done {
			return err
		}
		return e.say("user %q %s %s", c.ID, state, r.in(e))
	}
	return c.inOrg(e, &c.Org, func(op *app.Operator) error {
		out, err := op.Identity.SetAdmin(e.ctx, identity.Principal{Org: c.Org, Kind: identity.User, ID: c.ID}, admin)
		if err != nil {
			return c.notFound(err, "user", c.ID, c.Org)
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
		said := fmt.Sprintf("user %q %s %s\n", c.ID, state, c.in(c.Org))
		for _, id := range j.RevokedKeys {
			said += fmt.Sprintf("revoked %s, which carried %s\n", id, identity.Admin)
		}
		for _, id := range j.Grants {
			said += fmt.Sprintf("took %s from %s, a grant to a program\n", identity.Admin, id)
		}
		_, err = fmt.Fprint(e.stdout, said)
		return err
	})
}

type userPromoteCmd struct {
	OneUser `embed:""`
}

// Help is shown by --help.
func (userPromoteCmd) Help() string { return adminHelp + examples("parley user promote ada") }

func (c *userPromoteCmd) Run(e *env) error { return c.setAdmin(e, true) }

type userDemoteCmd struct {
	OneUser `embed:""`
}

const demoteHelp = "Revokes every key of the user that carries svc:admin:admin, and takes that scope from programs that " +
	"act for the user. Other keys keep working. The last enabled admin of an org cannot be demoted. "

// Help is shown by --help.
func (userDemoteCmd) Help() string {
	return demoteHelp + adminHelp + examples("parley user demote ada", "parley user demote ada --data ./parley-data")
}

func (c *userDemoteCmd) Run(e *env) error { return c.setAdmin(e, false) }
