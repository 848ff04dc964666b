package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/parley-dev/parley/sdk/client"
)

type inviteCmd struct {
	Create inviteCreateCmd `cmd:"" help:"Make an invitation and print its address."`
	List   inviteListCmd   `cmd:"" help:"List the invitations of your org."`
	Revoke inviteRevokeCmd `cmd:"" help:"Revoke an invitation that nobody has accepted."`
}

// Help is shown by parley invite --help.
func (inviteCmd) Help() string {
	return "Needs the scope svc:admin:admin.\n\n" + examples("parley invite create ada --name 'Ada Lovelace'", "parley invite list", "parley invite revoke inv-01k…")
}

type inviteCreateCmd struct {
	serverFlags `embed:""`
	User        string        `arg:"" help:"Id of the user that accepts it: a-z, 0-9, '.', '_' and '-'."`
	Name        string        `help:"Display name; the id if not given." placeholder:"NAME"`
	Admin       bool          `help:"The user may administer the org when signed in."`
	Expires     time.Duration `help:"How long it can be accepted, at most 720h; 168h if not given." placeholder:"DURATION"`
}

// Help is shown by --help.
func (inviteCreateCmd) Help() string {
	return "The address alone goes to stdout, and the rest to stderr. It is shown this once, and whoever opens it first becomes the user. Needs the scope svc:admin:admin.\n\n" +
		examples("parley invite create ada --name 'Ada Lovelace' --expires 48h")
}

func (c *inviteCreateCmd) Run(e *env) error {
	creation := client.InvitationCreation{User: c.User, Name: c.Name, Admin: c.Admin, ExpiresInSeconds: seconds(c.Expires)}
	i, done, err := ask(e, &c.serverFlags, func(api *client.Client, raw client.Option) (*client.Invitation, error) {
		return api.Invitations.Create(e.ctx, creation, raw)
	})
	if done {
		return err
	}
	if strings.HasPrefix(i.URL, "/") { // the server does not know by which name others know it
		i.URL = c.base() + i.URL
	}
	fmt.Fprintf(e.stderr, "created %s for user:%s; it can be accepted until %s UTC\n", cleanLine(i.ID), cleanLine(i.User), when(i.ExpiresAt))
	_, err = fmt.Fprintln(e.stdout, cleanLine(i.URL))
	return err
}

// seconds rounds up, so that a short time does not become none.
func seconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }

type inviteListCmd struct {
	serverFlags `embed:""`
	pageFlags   `embed:""`
}

// Help is shown by --help.
func (inviteListCmd) Help() string {
	return "Newest first, without their addresses. Needs the scope svc:admin:admin.\n\n" + examples("parley invite list")
}

func (c *inviteListCmd) Run(e *env) error {
	list, done, err := ask(e, &c.serverFlags, func(api *client.Client, raw client.Option) (*client.Page[client.Invitation], error) {
		return api.Invitations.List(e.ctx, client.CursorParams{}, client.WithQuery(c.query()), raw)
	})
	if done {
		return err
	}
	t := table{head: []string{"ID", "USER", "ADMIN", "STATE", "EXPIRES (UTC)", "BY"}}
	for _, i := range list.Items {
		t.add(i.ID, i.User, yes(i.Admin), i.State, when(i.ExpiresAt), i.CreatedBy)
	}
	return e.pages(&t, "no invitations", list.Next)
}

type inviteRevokeCmd struct {
	serverFlags `embed:""`
	ID          string `arg:"" help:"Id of the invitation, inv-…"`
}

// Help is shown by --help.
func (inviteRevokeCmd) Help() string {
	return "Needs the scope svc:admin:admin.\n\n" + examples("parley invite revoke inv-01k…")
}

func (c *inviteRevokeCmd) Run(e *env) error {
	i, done, err := ask(e, &c.serverFlags, func(api *client.Client, raw client.Option) (*client.Invitation, error) {
		return api.Invitations.Revoke(e.ctx, c.ID, raw)
	})
	if done {
		return err
	}
	_, err = fmt.Fprintf(e.stdout, "revoked %s\n", cleanLine(i.ID))
	return err
}
