package cli

import (
	"fmt"
	"strings"

	"github.com/parley-dev/parley/internal/app"
	"github.com/parley-dev/parley/internal/identity"
)

type adminCmd struct {
	Link adminLinkCmd `cmd:"" help:"Make a link with which a user sets a password."`
}

// Help is shown by parley admin --help.
func (adminCmd) Help() string { return examples("parley admin link --org main --user admin") }

type adminLinkCmd struct {
	StoreFlags `embed:""`
	orgFlag    `embed:""`
	User       string `help:"Id of the user." required:"" placeholder:"ID"`
	PublicURL  string `help:"Address under which people reach the server." default:"http://127.0.0.1:8080" env:"PARLEY_PUBLIC_URL" placeholder:"URL"`
}

// Help is shown by --help.
func (adminLinkCmd) Help() string {
	return "The link goes to stdout. It works once, for a day, and takes the place of any before it. Whoever has it can sign in as the user.\n\n" + examples(
		"parley admin link --org main --user admin",
		"parley admin link --org main --user ada --public-url https://parley.example",
	)
}

func (c *adminLinkCmd) Run(e *env) error {
	p, err := identity.ParseRef(c.Org, string(identity.User)+":"+c.User)
	if err != nil {
		return usageError{err}
	}
	return c.with(e, func(op *app.Operator) error {
		token, link, err := op.Accounts.NewLink(e.ctx, p)
		if err != nil {
			return notFound(err, "org %q has no %s; parley user list --org %s shows all", c.Org, p.Ref(), c.Org)
		}
		addr := strings.TrimRight(c.PublicURL, "/") + "/setup/" + token
		if c.JSON {
			return e.printJSON(map[string]any{"url": addr, "org": c.Org, "user": c.User, "expires_at": timestamp(link.ExpiresAt)})
		}
		_, err = fmt.Fprintln(e.stdout, addr)
		return err
	})
}
