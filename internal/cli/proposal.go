package cli

import (
	"fmt"
	"strconv"

	"github.com/parley-dev/parley/sdk/client"
)

type proposalCmd struct {
	List     proposalListCmd     `cmd:"" help:"List proposals, by default the open ones in review order."`
	Submit   proposalSubmitCmd   `cmd:"" help:"Submit a proposal."`
	Show     proposalShowCmd     `cmd:"" help:"Show one proposal."`
	Edit     proposalEditCmd     `cmd:"" help:"Change the text of a draft or an open proposal."`
	Vote     proposalVoteCmd     `cmd:"" help:"Vote for or against a proposal; a second vote replaces the first."`
	Withdraw proposalWithdrawCmd `cmd:"" help:"Withdraw your vote."`
	Votes    proposalVotesCmd    `cmd:"" help:"List the votes on a proposal."`
	Approve  proposalApproveCmd  `cmd:"" help:"Approve an open proposal, which creates its follow-up."`
	Reject   proposalRejectCmd   `cmd:"" help:"Reject an open proposal."`
	Reopen   proposalReopenCmd   `cmd:"" help:"Open a rejected proposal again, or publish a draft."`
	Resolve  proposalResolveCmd  `cmd:"" help:"Resolve an approved proposal."`
	History  proposalHistoryCmd  `cmd:"" help:"Show everything that happened to a proposal."`
}

// Help is shown by parley proposal --help.
func (proposalCmd) Help() string {
	return examples("parley proposal list", "parley proposal vote prop-01k… for", "parley proposal approve prop-01k…")
}

type proposalListCmd struct {
	serverFlags `embed:""`
	pageFlags   `embed:""`
	Status      *string `help:"draft, open, approved, rejected, resolved or all." placeholder:"STATUS"`
	Category    *string `help:"Only this category." placeholder:"CATEGORY"`
	Priority    *string `help:"Only this priority: low, normal or high." placeholder:"PRIORITY"`
	SubmittedBy *string `help:"Only those by this principal, e.g. agent:scout." placeholder:"REF"`
	Search      *string `help:"Words that must all occur; the last may be the start of a word." name:"search" short:"q" placeholder:"WORDS"`
	Sort        *string `help:"review (default), newest, oldest, votes or, with --search, relevance (its default)." placeholder:"ORDER"`
	Cursor      *string `help:"Continue at the next_cursor of an earlier page, which --json shows." placeholder:"CURSOR"`
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
	q := c.query()
	set(q, "status", c.Status)
	set(q, "category", c.Category)
	set(q, "priority", c.Priority)
	set(q, "submitted_by", c.SubmittedBy)
	set(q, "q", c.Search)
	set(q, "sort", c.Sort)
	set(q, "cursor", c.Cursor)
	list, done, err := ask(e, &c.serverFlags, aboutOrg,
		func(api *client.Client, raw client.Option) (*client.Page[client.ProposalItem], error) {
			return api.Proposals.List(e.ctx, client.ProposalListParams{}, client.WithQuery(q), raw)
		})
	if done {
		return err
	}
	t := table{
		head: []string{
			"ID", "PRIORITY", "CATEGORY", "STATUS", "FOR", "AGAINST", "SUBMITTED BY", "SUBMITTED (UTC)", "TITLE",
		},
		ids:    "proposal",
		colour: map[int]func(string) string{3: e.palette().status},
		drop:   []string{"SUBMITTED (UTC)", "SUBMITTED BY", "CATEGORY", "PRIORITY"},
		wide:   c.Wide,
	}
	for _, r := range list.Items {
		t.add(r.ID, string(r.Priority), string(r.Category), string(r.Status),
			strconv.Itoa(r.VotesFor), strconv.Itoa(r.VotesAgainst), r.SubmittedBy, when(r.SubmittedAt), r.Title)
	}
	if list.Incomplete {
		fmt.Fprintln(e.stderr, "note: not all proposals are searched yet: the text index is being built; try again in some minutes")
	}
	noun := "proposals"
	if list.More {
		noun = "or more proposals"
	}
	return e.list(&t, "proposal", noun, int(list.Total), list.Number, list.Next != "")
}

// oneProposal is part of commands about one proposal.
type oneProposal struct {
	serverFlags `embed:""`
	ID          string `arg:"" help:"Id of the proposal, prop-…, or a unique prefix of it."`
}

func (c *oneProposal) about() subject { return about("proposal", &c.ID) }

type proposalShowCmd struct {
	oneProposal `embed:""`
}

// Help is shown by --help.
func (proposalShowCmd) Help() string {
	return examples("parley proposal show prop-01k…", "parley proposal show prop-01k… --json | jq -r .suggested_fix")
}

func (c *proposalShowCmd) Run(e *env) error {
	return c.record(e, false, c.about(), func(api *client.Client, raw client.Option) (*client.Proposal, error) {
		return api.Proposals.Get(e.ctx, c.ID, raw)
	})
}

// quietFlag is for scripts: ID=$(parley proposal submit … --quiet).
type quietFlag struct {
	Quiet bool `help:"Print only the id."`
}

// record makes a call that returns a whole proposal, and prints it, or only its id.
func (f *serverFlags) record(
	e *env, quiet bool, s subject, do func(*client.Client, client.Option) (*client.Proposal, error),
) error {
	p, done, err := ask(e, f, s, do)
	if done {
		return err
	}
	if quiet {
		_, err := fmt.Fprintln(e.stdout, cleanLine(p.ID))
		return err
	}
	return e.printProposal(p)
}

// followupOf describes the follow-up of an approved proposal.
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
