package cli

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/parley-dev/parley/sdk/client"
)

type proposalCmd struct {
	List     proposalListCmd     `cmd:"" help:"List proposals, by default the open ones in the order of review."`
	Submit   proposalSubmitCmd   `cmd:"" help:"Submit a proposal."`
	Show     proposalShowCmd     `cmd:"" help:"Show one proposal."`
	Edit     proposalEditCmd     `cmd:"" help:"Change the text of a draft or an open proposal."`
	Vote     proposalVoteCmd     `cmd:"" help:"Vote for or against a proposal; a second vote replaces the first."`
	Withdraw proposalWithdrawCmd `cmd:"" help:"Take your vote back."`
	Votes    proposalVotesCmd    `cmd:"" help:"List the votes on a proposal."`
	Resolve  proposalResolveCmd  `cmd:"" help:"Change the status of a proposal: approve, reject, reopen, resolve or publish a draft."`
	History  proposalHistoryCmd  `cmd:"" help:"Show everything that happened to a proposal."`
}

// Help is shown by parley proposal --help.
func (proposalCmd) Help() string {
	return examples("parley proposal list", "parley proposal vote prop-01k… for", "parley proposal resolve prop-01k… approved")
}

type paging struct {
	Page  *int `help:"Page number, from 1." placeholder:"N"`
	Limit *int `help:"Results per page, at most 100." placeholder:"N"`
}

func (p paging) add(q url.Values) {
	set(q, "page", p.Page)
	set(q, "limit", p.Limit)
}

// set passes on what was given, an empty or senseless value included: the server
// judges it, and it must not turn into a default here.
func set[T string | int](q url.Values, name string, value *T) {
	if value != nil {
		q.Set(name, fmt.Sprint(*value))
	}
}

type proposalListCmd struct {
	serverFlags `embed:""`
	paging      `embed:""`
	Status      *string `help:"draft, open, approved, rejected, resolved or all." placeholder:"STATUS"`
	Category    *string `help:"Only this category." placeholder:"CATEGORY"`
	Priority    *string `help:"Only this priority: low, normal or high." placeholder:"PRIORITY"`
	SubmittedBy *string `help:"Only those by this principal, e.g. agent:scout." placeholder:"REF"`
	Search      *string `help:"Words that must all occur; the last may be the beginning of one." name:"search" short:"q" placeholder:"WORDS"`
	Sort        *string `help:"review (default), newest, oldest or votes." placeholder:"ORDER"`
	Cursor      *string `help:"Continue a list where --json said next_cursor." placeholder:"CURSOR"`
}

// Help is shown by --help.
func (proposalListCmd) Help() string {
	return examples(
		"parley proposal list",
		"parley proposal list --status all --category security --sort votes",
		"parley proposal list -q 'deploy retr' --json",
	)
}

func (c *proposalListCmd) Run(e *env) error {
	q := url.Values{}
	set(q, "status", c.Status)
	set(q, "category", c.Category)
	set(q, "priority", c.Priority)
	set(q, "submitted_by", c.SubmittedBy)
	set(q, "q", c.Search)
	set(q, "sort", c.Sort)
	set(q, "cursor", c.Cursor)
	c.paging.add(q)
	list, done, err := ask(e, &c.serverFlags, func(api *client.Client, raw client.Option) (*client.Page[client.ProposalItem], error) {
		return api.Proposals.List(e.ctx, client.ProposalListParams{}, client.WithQuery(q), raw)
	})
	if done {
		return err
	}
	p := e.palette()
	t := table{
		head:   []string{"ID", "PRIORITY", "CATEGORY", "STATUS", "FOR", "AGAINST", "SUBMITTED BY", "SUBMITTED (UTC)", "TITLE"},
		colour: map[int]func(string) string{3: p.status},
	}
	for _, r := range list.Items {
		t.add(r.ID, string(r.Priority), string(r.Category), string(r.Status), strconv.Itoa(r.VotesFor), strconv.Itoa(r.VotesAgainst),
			r.SubmittedBy, when(r.SubmittedAt), r.Title)
	}
	return e.list(&t, p, "proposal", "proposals", int(list.Total), list.Number, list.Next != "")
}

// list prints a table and what part of the whole it is.
func (e *env) list(t *table, p palette, one, many string, total, page int, more bool) error {
	noun := many
	if total == 1 {
		noun = one
	}
	if len(t.rows) == 0 {
		if total == 0 {
			_, err := fmt.Fprintf(e.stdout, "no %s\n", noun)
			return err
		}
		_, err := fmt.Fprintf(e.stdout, "page %d is past the end; there are %d %s\n", page, total, noun)
		return err
	}
	if err := t.write(e.stdout, p); err != nil {
		return err
	}
	foot := fmt.Sprintf("%d of %d %s", len(t.rows), total, noun)
	if page > 1 || more {
		foot += fmt.Sprintf(", page %d", page)
	}
	if more {
		foot += fmt.Sprintf("; more with --page %d", page+1)
	}
	_, err := fmt.Fprintln(e.stdout, p.dim(foot))
	return err
}

// joined lists names of any type.
func joined[T ~string](names []T) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = string(n)
	}
	return strings.Join(out, ", ")
}

// rawOr prints the server's JSON unless the call failed.
func (e *env) rawOr(raw []byte, err error) error {
	if err != nil {
		return err
	}
	return e.printRaw(raw)
}

type proposalShowCmd struct {
	serverFlags `embed:""`
	ID          string `arg:"" help:"Id of the proposal."`
}

// Help is shown by --help.
func (proposalShowCmd) Help() string {
	return examples("parley proposal show prop-01k…", "parley proposal show prop-01k… --json | jq -r .suggested_fix")
}

func (c *proposalShowCmd) Run(e *env) error {
	return c.record(e, false, func(api *client.Client, raw client.Option) (*client.Proposal, error) {
		return api.Proposals.Get(e.ctx, c.ID, raw)
	})
}

// quietFlag is for scripts: ID=$(parley proposal submit … --quiet).
type quietFlag struct {
	Quiet bool `help:"Print the id alone."`
}

// record makes a call that returns a whole proposal, and prints it, or its id alone.
func (f *serverFlags) record(e *env, quiet bool, do func(*client.Client, client.Option) (*client.Proposal, error)) error {
	p, done, err := ask(e, f, do)
	if done {
		return err
	}
	if quiet {
		_, err := fmt.Fprintln(e.stdout, cleanLine(p.ID))
		return err
	}
	return e.printProposal(p)
}

// followupOf says what became of the approval, and what is left to do.
func followupOf(p *client.Proposal) string {
	s := cleanLine(p.FollowupID)
	if p.FollowupStatus != "" {
		s += ", " + cleanLine(string(p.FollowupStatus))
	}
	if p.Resolvable {
		s += "; the proposal can be resolved"
	}
	return s
}

func (e *env) printProposal(p *client.Proposal) error {
	r := record{p: e.palette()}
	r.heading(p.Title)
	r.field("id", cleanLine(p.ID))
	r.field("status", r.p.status(cleanLine(string(p.Status))))
	r.field("priority", cleanLine(string(p.Priority)))
	r.field("category", cleanLine(string(p.Category)))
	r.field("submitted", cleanLine(p.SubmittedBy)+", "+when(p.SubmittedAt)+" UTC")
	votes := fmt.Sprintf("%d for, %d against", p.VotesFor, p.VotesAgainst)
	if p.MyVote != "" {
		votes += "; yours: " + cleanLine(string(p.MyVote))
	}
	r.field("votes", votes)
	if p.FollowupID != "" {
		r.field("follow-up", followupOf(p))
	}
	r.field("may become", cleanLine(joined(p.AllowedTransitions)))
	r.text("Problem", p.Problem)
	r.text("Suggested fix", p.SuggestedFix)
	r.text("Resolution note", p.ResolutionNote)
	_, err := e.stdout.Write([]byte(r.b.String()))
	return err
}
