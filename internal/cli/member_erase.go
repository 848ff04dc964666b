package cli

import (
	"fmt"

	"github.com/parley-dev/parley/internal/app"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/sdk/client"
)

type memberEraseCmd struct {
	EitherFlags `embed:""`
	Ref         string `arg:"" help:"user:ID."`
	Yes         bool   `help:"Do not ask."`
}

// Help is shown by --help.
func (memberEraseCmd) Help() string {
	return "For a person who must not be named any more. The id, the name, the e-mail address and every way to sign in " +
		"go; keys, sessions and programs end. Proposals, votes and comments stay, under a pseudonym that is printed. Texts " +
		"that people wrote are not changed. It cannot be undone. Run it again to continue after an interruption. " + adminHelp + examples(
		"parley member erase user:ada",
		"parley member erase user:ada --yes --data ./parley-data --org main",
	)
}

func (c *memberEraseCmd) Run(e *env) error {
	p, err := identity.ParseRef(c.Org, c.Ref)
	if err != nil {
		return usageError{err}
	}
	r, err := c.remote(e)
	if err != nil {
		return err
	}
	if !c.Yes {
		if err := e.confirm(p.Ref(), fmt.Sprintf("This erases %s for good.", p.Ref())); err != nil {
			return err
		}
	}
	if r != nil {
		m, done, err := askAt(e, r, c.JSON, aboutMember(c.Ref),
			func(api *client.Client, raw client.Option) (*client.Member, error) {
				return api.Members.Erase(e.ctx, c.Ref, raw)
			})
		if done {
			return err
		}
		return e.say("erased %s, who is %s now, %s", p.Ref(), m.Ref, r.in(e))
	}
	return c.inOrg(e, &c.Org, func(op *app.Operator) error {
		p.Org = c.Org
		m, err := op.Identity.EraseMember(e.ctx, p)
		if err != nil {
			return c.notFound(err, string(p.Kind), p.ID, c.Org)
		}
		return e.created(c.JSON, newMemberJSON(m), "erased %s, who is %s now, %s", p.Ref(), m.Ref(), c.in(c.Org))
	})
}
