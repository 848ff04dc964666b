package cli

import (
	"fmt"

	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/sdk/client"
)

type followupCmd struct {
	List   followupListCmd   `cmd:"" help:"List follow-ups, newest first."`
	Show   followupShowCmd   `cmd:"" help:"Show one follow-up."`
	Create followupCreateCmd `cmd:"" help:"Create a follow-up by hand."`
	Assign followupAssignCmd `cmd:"" help:"Assign a follow-up to a user or an agent, or unassign it."`
	Start  followupStartCmd  `cmd:"" help:"Mark a follow-up as in progress."`
	Done   followupDoneCmd   `cmd:"" help:"Mark a follow-up as done."`
	Cancel followupCancelCmd `cmd:"" help:"Cancel a follow-up."`
	Reopen followupReopenCmd `cmd:"" help:"Open a follow-up again."`
}

// Help is shown by parley followup --help.
func (followupCmd) Help() string {
	return examples("parley followup list --status open", "parley followup assign fup-01k… user:ada",
		"parley followup done fup-01k…")
}

type followupListCmd struct {
	serverFlags `embed:""`
	pageFlags   `embed:""`
	Status      *string `help:"open, in_progress, done, canceled or all (default)." placeholder:"STATUS"`
	Assignee    *string `help:"Only those assigned to this principal, e.g. user:ada; none: those that are not assigned." placeholder:"REF"`
	Proposal    *string `help:"Only the one of this proposal; a unique prefix of the id will do." placeholder:"ID"`
}

// Help is shown by --help.
func (followupListCmd) Help() string {
	return examples("parley followup list --status open --assignee none",
		"parley followup list --proposal prop-01k… --json")
}

func (c *followupListCmd) Run(e *env) error {
	s := aboutOrg
	if c.Proposal != nil {
		s = about("proposal", c.Proposal)
	}
	list, done, err := ask(e, &c.serverFlags, s,
		func(api *client.Client, raw client.Option) (*client.Page[client.Followup], error) {
			q := c.query()
			set(q, "status", c.Status)
			set(q, "assignee", c.Assignee)
			set(q, "proposal_id", c.Proposal)
			list, err := api.Followups.List(e.ctx, client.FollowupListParams{}, client.WithQuery(q), raw)
			if err == nil && list.Total == 0 && c.Proposal != nil {
				_, err = api.Proposals.Get(e.ctx, *c.Proposal) // it may not exist
			}
			return list, err
		})
	if done {
		return err
	}
	t := table{
		head:   []string{"ID", "STATUS", "ASSIGNEE", "CREATED (UTC)", "TITLE"},
		ids:    "follow-up",
		colour: map[int]func(string) string{1: e.palette().status},
		drop:   []string{"CREATED (UTC)", "ASSIGNEE"},
		wide:   c.Wide,
	}
	for _, f := range list.Items {
		t.add(f.ID, string(f.Status), orNone(f.Assignee), when(f.CreatedAt), f.Title)
	}
	total := int(list.Total)
	return e.list(&t, "follow-up", "follow-ups", total, list.Number, c.more(list.Number, total))
}

// followup makes a call that returns a follow-up, and prints it, or only its id. An error
// names the assignee that does not exist.
func (f *serverFlags) followup(
	e *env, quiet bool, s subject, assignee string, do func(*client.Client, client.Option) (*client.Followup, error),
) error {
	r, err := f.client(e)
	if err != nil {
		return err
	}
	fu, done, err := askAt(e, r, f.JSON, s, do)
	if done {
		return r.missingPrincipal(e, err, "assignee", assignee)
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

// oneFollowup is part of commands about one follow-up.
type oneFollowup struct {
	serverFlags `embed:""`
	ID          string `arg:"" help:"Id of the follow-up, fup-…, or a unique prefix of it."`
}

func (c *oneFollowup) change(e *env, once client.Option, p client.FollowupPatch) error {
	assignee := ""
	if p.Assignee != nil {
		assignee = *p.Assignee
	}
	return c.followup(e, false, about("follow-up", &c.ID), assignee,
		func(api *client.Client, raw client.Option) (*client.Followup, error) {
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
	return c.followup(e, false, about("follow-up", &c.ID), "",
		func(api *client.Client, raw client.Option) (*client.Followup, error) {
			return api.Followups.Get(e.ctx, c.ID, raw)
		})
}

type followupCreateCmd struct {
	serverFlags `embed:""`
	onceFlag    `embed:""`
	quietFlag   `embed:""`
	Title       string `help:"What is to be done, in one line." required:"" placeholder:"TEXT"`
	Description string `help:"Details; @FILE reads a file, @- stdin." placeholder:"TEXT"`
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
	return c.followup(e, c.Quiet, aboutOrg, c.Assignee,
		func(api *client.Client, raw client.Option) (*client.Followup, error) {
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
	return "An agent receives the follow-up as a task, and the follow-up's status follows the task. " +
		"Assigning to an agent also needs the scope svc:a2a:write.\n\n" + examples(
		"parley followup assign fup-01k… user:ada",
		"parley followup assign fup-01k… agent:scout",
		"parley followup assign fup-01k… none",
	)
}

func (c *followupAssignCmd) Run(e *env) error {
	to := c.Assignee
	if to == "none" {
		to = ""
	} else if p, err := identity.ParseRef("", to); err != nil || p.Kind == identity.Service {
		return usage("ASSIGNEE must be user:ID, agent:ID or none; it is %q", to)
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
