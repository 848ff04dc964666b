package cli

import (
	"fmt"
	"strings"

	"github.com/parley-dev/parley/internal/app"
	"github.com/parley-dev/parley/internal/config"
	"github.com/parley-dev/parley/internal/identity"
)

type adminCmd struct {
	Link adminLinkCmd `cmd:"" help:"Make a link with which a user sets a password."`
}

// Help is shown by parley admin --help.
func (adminCmd) Help() string {
	return operatorHelp + examples("parley admin link --org main --user admin")
}

// orgFlag names the org that a command of the operator works in.
type orgFlag struct {
	Org string `help:"Org it belongs to; may be left out if the store has one org only." env:"PARLEY_ORG" placeholder:"ORG"`
}

type adminLinkCmd struct {
	StoreFlags `embed:""`
	orgFlag    `embed:""`
	User       string `help:"Id of the user." required:"" placeholder:"ID"`
	PublicURL  string `help:"${public_url}." env:"PARLEY_PUBLIC_URL" placeholder:"URL"`
}

// Help is shown by --help.
func (adminLinkCmd) Help() string {
	return operatorHelp + "The link goes to stdout. It works once, for a day, and replaces earlier links of the user. " +
		"Anyone who has it can sign in as the user.\n\n" + examples(
		"parley admin link --org main --user admin",
		"parley admin link --org main --user ada --public-url https://parley.example",
	)
}

func (c *adminLinkCmd) Run(e *env) error {
	p, err := identity.ParseRef(c.Org, string(identity.User)+":"+c.User)
	if err != nil {
		return usageError{err}
	}
	return c.inOrg(e, &c.Org, func(op *app.Operator) error {
		base, err := c.base()
		if err != nil {
			return err
		}
		p.Org = c.Org
		token, link, err := op.Accounts.NewLink(e.ctx, p)
		if err != nil {
			return c.notFound(err, "user", c.User, c.Org)
		}
		url := base + "/setup/" + token
		if c.JSON {
			return e.printJSON(map[string]any{
				"url": url, "org": c.Org, "user": c.User, "expires_at": timestamp(link.ExpiresAt),
			})
		}
		_, err = fmt.Fprintln(e.stdout, url)
		return err
	})
}

// base returns the URL that the link begins with.
func (c *adminLinkCmd) base() (string, error) {
	if err := config.CheckPublicURL(c.PublicURL); err != nil {
		return "", usage("%v", err)
	}
	if c.PublicURL != "" {
		return strings.TrimRight(c.PublicURL, "/"), nil
	}
	if base, ok := app.RunningServer(c.Store); ok {
		return base, nil
	}
	return "", usage("--public-url is needed: no running server was found on store %s, so its URL is unknown",
		app.StoreName(c.Store))
}
