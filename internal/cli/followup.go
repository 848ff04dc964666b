package cli

import (
	"fmt"
	"net/url"

	"github.com/parley-dev/parley/sdk/client"
)

type followupCmd struct {
	List   followupListCmd   `cmd:"" help:"List follow-ups, newest first."`
	Show   followupShowCmd   `cmd:"" help:"Show one follow-up."`
	Create followupCreateCmd `cmd:"" help:"Create a follow-up by hand."`
	Assign followupAssignCmd `cmd:"" help:"Give a follow-up to somebody, or to nobody."`
	Start  followupStartCmd  `cmd:"" help:"Mark a follow-up as in progress."`
	Done   followupDoneCmd   `cmd:"" help:"Mark a follow-up as done."`
	Cancel followupCancelCmd `cmd:"" help:"Cancel a follow-up."`
	Reopen followupReopenCmd `cmd:"" help:"Open a follow-up again."`
}

// Help is shown by parley followup --help.
func (followupCmd) Help() string {
	return examples("parley followup list --status open", "parley followup assign fup-01k… user:ada", "parley followup done fup-01k…")
}

func orNone(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

type followupListCmd struct {
	serverFlags `embed:""`
	paging      `embed:""`
	Status      *string `help:"open, in_progress, done, canceled or all (default)." placeholder:"STATUS"`
	Assignee    *string `help:"Only those of this principal, e.g. user:ada; none for those without one." placeholder:"REF"`
	Proposal    *string `help:"Only the one of this proposal." placeholder:"ID"`
}

// Help is shown by --help.
func (followupListCmd) Help() string {
	return examples("parley followup list --status open --assignee none", "parley followup list --proposal prop-01k… --json")
}

func (c *followupListCmd) Run(e *env) error {
	q := url.Values{}
	set(q, "status", c.Status)
	set(q, "assignee", c.Assignee)
	set(q, "proposal_id", c.Proposal)
	c.paging.add(q)
	list, done, err := ask(e, &c.serverFlags, func(api *client.Client, raw client.Option) (*client.Page[client.Followup], error) {
		return api.Followups.List(e.ctx, client.FollowupListParams{}, client.WithQuery(q), raw)
	})
	if done {
		return err
	}
	p := e.palette()
	t := table{
		head:   []string{"ID", "STATUS", "ASSIGNEE", "CREATED (UTC)", "TITLE"},
		colour: map[int]func(string) string{1: p.status},
	}
	for _, f := range list.Items {
		t.add(f.ID, string(f.Status), orNone(f.Assignee), when(f.CreatedAt), f.Title)
	}
	total := int(list.Total)
	return e.list(&t, p, "follow-up", "follow-ups", total, list.Number, c.more(list.Number, total))
}

// followup makes a call that returns a follow-up, and prints it, or its id alone.
func (f *serverFlags) followup(e *env, quiet bool, do func(*client.Client, client.Option) (*client.Followup, error)) error {
	fu, done, err := ask(e, f, do)
	if done {
		return err
	}
	if quiet {
		_, err := fmt.Fprintln(e.stdout, cleanLine(fu.ID))
		return err
	}
	return e.printFollowup(fu)
}

func (e *env) printFollowup(fu *client.Followup) error {
	rec := record{p: e.palette()}
	rec.heading(fu.Title)
	rec.field("id", cleanLine(fu.ID))
	rec.field("status", rec.p.status(cleanLine(string(fu.Status))))
	rec.field("assignee", cleanLine(orNone(fu.Assignee)))
	if fu.Task != nil {
		rec.field("a2a task", rec.p.status(cleanLine(string(fu.Task.State)))+", "+cleanLine(fu.Task.UID))
	}
	rec.field("proposal", cleanLine(orNone(fu.ProposalID)))
	rec.field("created", cleanLine(fu.CreatedBy)+", "+when(fu.CreatedAt)+" UTC")
	rec.field("updated", when(fu.UpdatedAt)+" UTC")
	rec.field("may become", cleanLine(joined(fu.AllowedTransitions)))
	rec.text("Description", fu.Description)
	_, err := e.stdout.Write([]byte(rec.b.String()))
	return err
}

// oneFollowup is a command about one follow-up.
type oneFollowup struct {
	serverFlags `embed:""`
	ID          string `arg:"" help:"Id of the follow-up, fup-…"`
}

func (c *oneFollowup) change(e *env, once client.Option, p client.FollowupPatch) error {
	return c.followup(e, false, func(api *client.Client, raw client.Option) (*client.Followup, error) {
		return api.Followups.Update(e.ctx, c.ID, p, once, raw)
	})
}

func (c *oneFollowup) become(e *env, once client.Option, status client.FollowupStatus) error {
	return c.change(e, once, client.FollowupPatch{Status: &status})
}

type followupShowCmd struct {
	oneFollowup `embed:""`
}

// Help is shown by --help.
func (followupShowCmd) Help() string { return examples("parley followup show fup-01k…") }

func (c *followupShowCmd) Run(e *env) error {
	return c.followup(e, false, func(api *client.Client, raw client.Option) (*client.Followup, error) {
		return api.Followups.Get(e.ctx, c.ID, raw)
	})
}

type followupCreateCmd struct {
	serverFlags `embed:""`
	onceFlag    `embed:""`
	quietFlag   `embed:""`
	Title       string `help:"One line that says what is to be done." required:"" placeholder:"TEXT"`
	Description string `help:"More of it; @FILE reads a file, @- stdin." placeholder:"TEXT"`
	Assignee    string `help:"user:ID or agent:ID." placeholder:"REF"`
}

// Help is shown by --help.
func (followupCreateCmd) Help() string {
	return examples("parley followup create --title 'Rotate the registry token' --assignee user:ada")
}

func (c *followupCreateCmd) Run(e *env) error {
	text, err := e.readText(c.Description)
	if err != nil {
		return err
	}
	creation := client.FollowupCreation{Title: c.Title, Description: text, Assignee: c.Assignee}
	return c.followup(e, c.Quiet, func(api *client.Client, raw client.Option) (*client.Followup, error) {
		return api.Followups.Create(e.ctx, creation, c.once(), raw)
	})
}

type followupAssignCmd struct {
	oneFollowup `embed:""`
	onceFlag    `embed:""`
	Assignee    string `arg:"" help:"user:ID, agent:ID, or none."`
}

// Help is shown by --help.
func (followupAssignCmd) Help() string {
	return "An agent gets the follow-up as a task, and the follow-up's status follows it. The key then also needs the scope svc:a2a:write.\n\n" +
		examples("parley followup assign fup-01k… user:ada", "parley followup assign fup-01k… agent:scout", "parley followup assign fup-01k… none")
}

func (c *followupAssignCmd) Run(e *env) error {
	to := c.Assignee
	if to == "none" {
		to = ""
	}
	return c.change(e, c.once(), client.FollowupPatch{Assignee: &to})
}

type followupStartCmd struct {
	oneFollowup `embed:""`
	onceFlag    `embed:""`
}

// Help is shown by --help.
func (followupStartCmd) Help() string { return examples("parley followup start fup-01k…") }

func (c *followupStartCmd) Run(e *env) error {
	return c.become(e, c.once(), client.FollowupInProgress)
}

type followupDoneCmd struct {
	oneFollowup `embed:""`
	onceFlag    `embed:""`
}

// Help is shown by --help.
func (followupDoneCmd) Help() string { return examples("parley followup done fup-01k…") }

func (c *followupDoneCmd) Run(e *env) error {
	return c.become(e, c.once(), client.FollowupDone)
}

type followupCancelCmd struct {
	oneFollowup `embed:""`
	onceFlag    `embed:""`
}

// Help is shown by --help.
func (followupCancelCmd) Help() string { return examples("parley followup cancel fup-01k…") }

func (c *followupCancelCmd) Run(e *env) error {
	return c.become(e, c.once(), client.FollowupCanceled)
}

type followupReopenCmd struct {
	oneFollowup `embed:""`
	onceFlag    `embed:""`
}

// Help is shown by --help.
func (followupReopenCmd) Help() string { return examples("parley followup reopen fup-01k…") }

func (c *followupReopenCmd) Run(e *env) error {
	return c.become(e, c.once(), client.FollowupOpen)
}
