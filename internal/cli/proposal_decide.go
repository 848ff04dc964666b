package cli

import (
	"strconv"
	"strings"

	"github.com/parley-dev/parley/sdk/client"
)

type proposalVoteCmd struct {
	oneProposal `embed:""`
	onceFlag    `embed:""`
	Vote        string `arg:"" help:"for or against."`
	Comment     string `help:"Why; @FILE reads a file, @- stdin." placeholder:"TEXT"`
}

// Help is shown by --help.
func (proposalVoteCmd) Help() string {
	return examples("parley proposal vote prop-01k… for",
		"parley proposal vote prop-01k… against --comment 'It hides the cause.'")
}

func (c *proposalVoteCmd) Run(e *env) error {
	comment, err := e.readText(c.Comment)
	if err != nil {
		return err
	}
	ballot := client.Ballot{Vote: client.Choice(c.Vote), Comment: comment}
	v, done, err := ask(e, &c.serverFlags, c.about(),
		func(api *client.Client, raw client.Option) (*client.VoteResult, error) {
			return api.Proposals.Vote(e.ctx, c.ID, ballot, c.once(), raw)
		})
	if done {
		return err
	}
	did := "voted"
	if v.Replaced {
		did = "changed your vote to"
	}
	return e.say("%s %s on proposal %q; %d for, %d against", did, v.Vote, c.ID, v.VotesFor, v.VotesAgainst)
}

type proposalWithdrawCmd struct {
	oneProposal `embed:""`
}

// Help is shown by --help.
func (proposalWithdrawCmd) Help() string { return examples("parley proposal withdraw prop-01k…") }

func (c *proposalWithdrawCmd) Run(e *env) error {
	v, done, err := ask(e, &c.serverFlags, c.about(),
		func(api *client.Client, raw client.Option) (*client.VoteWithdrawal, error) {
			return api.Proposals.WithdrawVote(e.ctx, c.ID, raw)
		})
	if done {
		return err
	}
	return e.say("withdrew your vote on proposal %q; %d for, %d against", c.ID, v.VotesFor, v.VotesAgainst)
}

type proposalVotesCmd struct {
	oneProposal `embed:""`
	pageFlags   `embed:""`
}

// Help is shown by --help.
func (proposalVotesCmd) Help() string { return examples("parley proposal votes prop-01k…") }

func (c *proposalVotesCmd) Run(e *env) error {
	list, done, err := ask(e, &c.serverFlags, c.about(),
		func(api *client.Client, raw client.Option) (*client.Page[client.Vote], error) {
			return api.Proposals.Votes(e.ctx, c.ID, client.PageParams{}, client.WithQuery(c.query()), raw)
		})
	if done {
		return err
	}
	t := table{head: []string{"VOTER", "VOTE", "VOTED (UTC)", "COMMENT"}, drop: []string{"VOTED (UTC)"}, wide: c.Wide}
	for _, v := range list.Items {
		t.add(v.Voter, string(v.Vote), when(v.VotedAt), v.Comment)
	}
	total := int(list.Total)
	return e.list(&t, "vote", "votes", total, list.Number, c.more(list.Number, total))
}

// proposalDecision is part of commands that change the status of a proposal.
type proposalDecision struct {
	oneProposal `embed:""`
	onceFlag    `embed:""`
	Note        string `help:"Why; @FILE reads a file, @- stdin." aliases:"resolution-note" placeholder:"TEXT"`
}

const decideHelp = "Needs the scope svc:admin:admin.\n\n"

// become changes the status and prints the proposal.
func (c *proposalDecision) become(e *env, status client.ProposalStatus) error {
	note, err := e.readText(c.Note)
	if err != nil {
		return err
	}
	change := client.ProposalPatch{Status: &status, ResolutionNote: given(note)}
	return c.record(e, false, c.about(), func(api *client.Client, raw client.Option) (*client.Proposal, error) {
		return api.Proposals.Update(e.ctx, c.ID, change, c.once(), raw)
	})
}

type proposalApproveCmd struct {
	proposalDecision `embed:""`
}

// Help is shown by --help.
func (proposalApproveCmd) Help() string {
	return "Approving creates a follow-up; see parley followup. " + decideHelp + examples(
		"parley proposal approve prop-01k…",
		"parley proposal approve prop-01k… --note 'Go ahead.'",
	)
}

func (c *proposalApproveCmd) Run(e *env) error { return c.become(e, client.ProposalApproved) }

type proposalRejectCmd struct {
	proposalDecision `embed:""`
}

// Help is shown by --help.
func (proposalRejectCmd) Help() string {
	return "A rejection needs a --note. " + decideHelp +
		examples("parley proposal reject prop-01k… --note 'We will drop that registry.'")
}

func (c *proposalRejectCmd) Run(e *env) error {
	if c.Note == "" {
		return usage("--note is needed: say why the proposal is rejected")
	}
	return c.become(e, client.ProposalRejected)
}

type proposalReopenCmd struct {
	proposalDecision `embed:""`
}

// Help is shown by --help.
func (proposalReopenCmd) Help() string {
	return "Votes are kept. " + decideHelp + examples("parley proposal reopen prop-01k…")
}

func (c *proposalReopenCmd) Run(e *env) error { return c.become(e, client.ProposalOpen) }

type proposalResolveCmd struct {
	proposalDecision `embed:""`
}

// Help is shown by --help.
func (proposalResolveCmd) Help() string {
	return decideHelp + examples(
		"parley proposal resolve prop-01k…",
		"parley proposal resolve prop-01k… --note 'Deployed on Monday.'",
	)
}

func (c *proposalResolveCmd) Run(e *env) error { return c.become(e, client.ProposalResolved) }

type proposalHistoryCmd struct {
	oneProposal `embed:""`
	pageFlags   `embed:""`
}

// Help is shown by --help.
func (proposalHistoryCmd) Help() string { return examples("parley proposal history prop-01k…") }

func (c *proposalHistoryCmd) Run(e *env) error {
	list, done, err := ask(e, &c.serverFlags, c.about(),
		func(api *client.Client, raw client.Option) (*client.Page[client.HistoryEntry], error) {
			return api.Proposals.History(e.ctx, c.ID, client.PageParams{}, client.WithQuery(c.query()), raw)
		})
	if done {
		return err
	}
	t := table{head: []string{"#", "AT (UTC)", "WHO", "WHAT"}, wide: c.Wide}
	for _, h := range list.Items {
		t.add(strconv.Itoa(h.Seq), when(h.At), h.Actor, whatHappened(&h))
	}
	total := int(list.Total)
	return e.list(&t, "entry", "entries", total, list.Number, c.more(list.Number, total))
}

// whatHappened describes an entry of the history.
func whatHappened(h *client.HistoryEntry) string {
	say := func(s, detail string) string {
		if detail != "" {
			return s + ": " + detail
		}
		return s
	}
	switch h.Kind {
	case "submitted":
		return "submitted as " + string(h.To)
	case "edited":
		fields := make([]string, len(h.Changes))
		for i, f := range h.Changes {
			fields[i] = f.Field
		}
		return "edited " + strings.Join(fields, ", ")
	case "status_changed":
		return say(string(h.From+" → "+h.To), h.Note)
	case "voted":
		return say("voted "+string(h.Vote), h.Comment)
	case "vote_withdrawn":
		return "withdrew the vote " + string(h.Vote)
	}
	return h.Kind
}
