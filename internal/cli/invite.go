package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/parley-dev/parley/sdk/client"
)

type inviteCmd struct {
	Create inviteCreateCmd `cmd:"" help:"Make an invitation and print its URL."`
	List   inviteListCmd   `cmd:"" help:"List the invitations of your org."`
	Revoke inviteRevokeCmd `cmd:"" help:"Revoke an invitation that was not accepted yet."`
}

// Help is shown by parley invite --help.
func (inviteCmd) Help() string {
	return needsAdmin +
		examples("parley invite create ada --name 'Ada Lovelace'", "parley invite list", "parley invite revoke inv-01k…")
}

type inviteCreateCmd struct {
	serverFlags `embed:""`
	User        string        `arg:"" help:"Id of the user that accepts it: a-z, 0-9, '.', '_' and '-'."`
	Name        string        `help:"Display name; the id if not given." placeholder:"NAME"`
	Admin       bool          `help:"The user may administer the org when signed in."`
	Expires     time.Duration `help:"How long it can be accepted, at most 30d; 7d if not given." placeholder:"DURATION"`
}

// Help is shown by --help.
func (inviteCreateCmd) Help() string {
	return "Only the URL goes to stdout; the rest goes to stderr. It is shown once. Anyone who has it can become the " +
		"user. " +
		needsAdmin + examples("parley invite create ada --name 'Ada Lovelace' --expires 2d")
}

func (c *inviteCreateCmd) Run(e *env) error {
	r, err := c.client(e)
	if err != nil {
		return err
	}
	creation := client.InvitationCreation{User: c.User, Name: c.Name, Admin: c.Admin, ExpiresInSeconds: seconds(c.Expires)}
	i, done, err := askAt(e, r, c.JSON, aboutOrg,
		func(api *client.Client, raw client.Option) (*client.Invitation, error) {
			return api.Invitations.Create(e.ctx, creation, raw)
		})
	if done {
		return err
	}
	if strings.HasPrefix(i.URL, "/") { // the server does not know its public URL
		i.URL = r.Server + i.URL
	}
	fmt.Fprintf(e.stderr, "created invitation %q for user:%s %s; it can be accepted until %s UTC\n",
		cleanLine(i.ID), cleanLine(i.User), r.in(e), when(i.ExpiresAt))
	_, err = fmt.Fprintln(e.stdout, cleanLine(i.URL))
	return err
}

type inviteListCmd struct {
	serverFlags `embed:""`
	cursorFlags `embed:""`
}

// Help is shown by --help.
func (inviteListCmd) Help() string {
	return "Newest first, without their URLs. " + needsAdmin + examples("parley invite list")
}

func (c *inviteListCmd) Run(e *env) error {
	list, done, err := ask(e, &c.serverFlags, aboutOrg,
		func(api *client.Client, raw client.Option) (*client.Page[client.Invitation], error) {
			return api.Invitations.List(e.ctx, client.CursorParams{}, client.WithQuery(c.query()), raw)
		})
	if done {
		return err
	}
	t := table{
		head: []string{"ID", "USER", "ADMIN", "STATE", "EXPIRES (UTC)", "BY"},
		ids:  "invitation",
		drop: []string{"ADMIN", "EXPIRES (UTC)"},
		wide: c.Wide,
	}
	for _, i := range list.Items {
		t.add(i.ID, i.User, yes(i.Admin), i.State, when(i.ExpiresAt), i.CreatedBy)
	}
	return e.pages(&t, "no invitations", list.Next)
}

type inviteRevokeCmd struct {
	serverFlags `embed:""`
	ID          string `arg:"" help:"Id of the invitation, inv-…, or a unique prefix of it."`
}

// Help is shown by --help.
func (inviteRevokeCmd) Help() string {
	return needsAdmin + examples("parley invite revoke inv-01k…")
}

func (c *inviteRevokeCmd) Run(e *env) error {
	r, err := c.client(e)
	if err != nil {
		return err
	}
	i, done, err := askAt(e, r, c.JSON, about("invitation", &c.ID),
		func(api *client.Client, raw client.Option) (*client.Invitation, error) {
			return api.Invitations.Revoke(e.ctx, c.ID, raw)
		})
	if done {
		return err
	}
	return e.say("revoked invitation %q %s", i.ID, r.in(e))
}
