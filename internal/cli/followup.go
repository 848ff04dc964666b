package cli

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
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

// followupRecord is what this program reads of a task.
type followupRecord struct {
	ID          string    `json:"id"`
	Title       string    `json:"title"`
	Description string    `json:"description"`
	ProposalID  *string   `json:"proposal_id"`
	Status      string    `json:"status"`
	Assignee    *string   `json:"assignee"`
	CreatedBy   string    `json:"created_by"`
	CreatedAt   time.Time `json:"created_at"`
	UpdatedAt   time.Time `json:"updated_at"`
	Next        []string  `json:"allowed_transitions"`
	Task        *struct {
		UID   string `json:"uid"`
		State string `json:"state"`
	} `json:"a2a_task"`
}

func orNone(s *string) string {
	if s == nil || *s == "" {
		return "-"
	}
	return *s
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
	var list struct {
		Followups []followupRecord `json:"followups"`
		Total     int              `json:"total"`
		Page      int              `json:"page"`
	}
	if done, err := c.ask(e, call{method: http.MethodGet, path: "/followups", query: q}, &list); done {
		return err
	}
	p := e.palette()
	t := table{
		head:   []string{"ID", "STATUS", "ASSIGNEE", "CREATED (UTC)", "TITLE"},
		colour: map[int]func(string) string{1: p.status},
	}
	for _, f := range list.Followups {
		t.add(f.ID, f.Status, orNone(f.Assignee), when(f.CreatedAt), f.Title)
	}
	return e.list(&t, p, "follow-up", "follow-ups", list.Total, list.Page, c.more(list.Page, list.Total))
}

// followup sends a call that answers with a follow-up, and prints it, or its id alone.
func (f *serverFlags) followup(e *env, r call, quiet bool) error {
	var fu followupRecord
	if done, err := f.ask(e, r, &fu); done {
		return err
	}
	if quiet {
		_, err := fmt.Fprintln(e.stdout, cleanLine(fu.ID))
		return err
	}
	return e.printFollowup(fu)
}

func (e *env) printFollowup(fu followupRecord) error {
	rec := record{p: e.palette()}
	rec.heading(fu.Title)
	rec.field("id", cleanLine(fu.ID))
	rec.field("status", rec.p.status(cleanLine(fu.Status)))
	rec.field("assignee", cleanLine(orNone(fu.Assignee)))
	if fu.Task != nil {
		rec.field("a2a task", rec.p.status(cleanLine(fu.Task.State))+", "+cleanLine(fu.Task.UID))
	}
	rec.field("proposal", cleanLine(orNone(fu.ProposalID)))
	rec.field("created", cleanLine(fu.CreatedBy)+", "+when(fu.CreatedAt)+" UTC")
	rec.field("updated", when(fu.UpdatedAt)+" UTC")
	rec.field("may become", cleanLine(strings.Join(fu.Next, ", ")))
	rec.text("Description", fu.Description)
	_, err := e.stdout.Write([]byte(rec.b.String()))
	return err
}

// oneFollowup is a command about one follow-up.
type oneFollowup struct {
	serverFlags `embed:""`
	ID          string `arg:"" help:"Id of the follow-up, fup-…"`
}

func (c *oneFollowup) path() string { return "/followups/" + url.PathEscape(c.ID) }

func (c *oneFollowup) change(e *env, once string, field, value string) error {
	return c.followup(e, call{method: http.MethodPatch, path: c.path(), send: map[string]string{field: value}, once: once}, false)
}

type followupShowCmd struct {
	oneFollowup `embed:""`
}

// Help is shown by --help.
func (followupShowCmd) Help() string { return examples("parley followup show fup-01k…") }

func (c *followupShowCmd) Run(e *env) error {
	return c.followup(e, call{method: http.MethodGet, path: c.path()}, false)
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
	fields := map[string]string{"title": c.Title}
	if c.Description != "" {
		text, err := e.readText(c.Description)
		if err != nil {
			return err
		}
		fields["description"] = text
	}
	if c.Assignee != "" {
		fields["assignee"] = c.Assignee
	}
	return c.followup(e, call{method: http.MethodPost, path: "/followups", send: fields, once: c.once()}, c.Quiet)
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
	return c.change(e, c.once(), "assignee", to)
}

type followupStartCmd struct {
	oneFollowup `embed:""`
	onceFlag    `embed:""`
}

// Help is shown by --help.
func (followupStartCmd) Help() string { return examples("parley followup start fup-01k…") }

func (c *followupStartCmd) Run(e *env) error { return c.change(e, c.once(), "status", "in_progress") }

type followupDoneCmd struct {
	oneFollowup `embed:""`
	onceFlag    `embed:""`
}

// Help is shown by --help.
func (followupDoneCmd) Help() string { return examples("parley followup done fup-01k…") }

func (c *followupDoneCmd) Run(e *env) error { return c.change(e, c.once(), "status", "done") }

type followupCancelCmd struct {
	oneFollowup `embed:""`
	onceFlag    `embed:""`
}

// Help is shown by --help.
func (followupCancelCmd) Help() string { return examples("parley followup cancel fup-01k…") }

func (c *followupCancelCmd) Run(e *env) error { return c.change(e, c.once(), "status", "canceled") }

type followupReopenCmd struct {
	oneFollowup `embed:""`
	onceFlag    `embed:""`
}

// Help is shown by --help.
func (followupReopenCmd) Help() string { return examples("parley followup reopen fup-01k…") }

func (c *followupReopenCmd) Run(e *env) error { return c.change(e, c.once(), "status", "open") }
