package cli

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/parley-dev/parley/sdk/client"
)

type proposalVoteCmd struct {
	serverFlags `embed:""`
	onceFlag    `embed:""`
	ID          string `arg:"" help:"Id of the proposal."`
	Vote        string `arg:"" help:"for or against."`
	Comment     string `help:"Why; @FILE reads a file, @- stdin." placeholder:"TEXT"`
}

// Help is shown by --help.
func (proposalVoteCmd) Help() string {
	return examples("parley proposal vote prop-01k… for", "parley proposal vote prop-01k… against --comment 'It hides the cause.'")
}

func (c *proposalVoteCmd) Run(e *env) error {
	comment, err := e.readText(c.Comment)
	if err != nil {
		return err
	}
	v, done, err := ask(e, &c.serverFlags, func(api *client.Client, raw client.Option) (*client.VoteResult, error) {
		return api.Proposals.Vote(e.ctx, c.ID, client.Ballot{Vote: client.Choice(c.Vote), Comment: comment}, c.once(), raw)
	})
	if done {
		return err
	}
	did := "voted"
	if v.Replaced {
		did = "changed your vote to"
	}
	_, err = fmt.Fprintf(e.stdout, "%s %s; %d for, %d against\n", did, cleanLine(string(v.Vote)), v.VotesFor, v.VotesAgainst)
	return err
}

type proposalWithdrawCmd struct {
	serverFlags `embed:""`
	ID          string `arg:"" help:"Id of the proposal."`
}

// Help is shown by --help.
func (proposalWithdrawCmd) Help() string { return examples("parley proposal withdraw prop-01k…") }

func (c *proposalWithdrawCmd) Run(e *env) error {
	v, done, err := ask(e, &c.serverFlags, func(api *client.Client, raw client.Option) (*client.VoteWithdrawal, error) {
		return api.Proposals.WithdrawVote(e.ctx, c.ID, raw)
	})
	if done {
		return err
	}
	_, err = fmt.Fprintf(e.stdout, "vote withdrawn; %d for, %d against\n", v.VotesFor, v.VotesAgainst)
	return err
}

type proposalVotesCmd struct {
	serverFlags `embed:""`
	paging      `embed:""`
	ID          string `arg:"" help:"Id of the proposal."`
}

// Help is shown by --help.
func (proposalVotesCmd) Help() string { return examples("parley proposal votes prop-01k…") }

func (c *proposalVotesCmd) Run(e *env) error {
	q := url.Values{}
	c.paging.add(q)
	list, done, err := ask(e, &c.serverFlags, func(api *client.Client, raw client.Option) (*client.Page[client.Vote], error) {
		return api.Proposals.Votes(e.ctx, c.ID, client.PageParams{}, client.WithQuery(q), raw)
	})
	if done {
		return err
	}
	t := table{head: []string{"VOTER", "VOTE", "VOTED (UTC)", "COMMENT"}}
	for _, v := range list.Items {
		t.add(v.Voter, string(v.Vote), when(v.VotedAt), v.Comment)
	}
	total := int(list.Total)
	return e.list(&t, e.palette(), "vote", "votes", total, list.Number, c.more(list.Number, total))
}

// more reports whether pages follow, where the server does not say it.
func (p paging) more(page, total int) bool {
	limit := 20
	if p.Limit != nil {
		limit = *p.Limit
	}
	return page*limit < total
}

type proposalResolveCmd struct {
	serverFlags `embed:""`
	onceFlag    `embed:""`
	ID          string `arg:"" help:"Id of the proposal."`
	Status      string `arg:"" help:"approved, rejected, resolved or open."`
	Note        string `help:"Why; required to reject. @FILE reads a file, @- stdin." aliases:"resolution-note" placeholder:"TEXT"`
}

// Help is shown by --help.
func (proposalResolveCmd) Help() string {
	return "Approving creates a follow-up; see parley followup. Needs the scope svc:admin:admin.\n\n" + examples(
		"parley proposal resolve prop-01k… approved --note 'Go ahead.'",
		"parley proposal resolve prop-01k… rejected --note 'We will drop that registry.'",
		"parley proposal resolve prop-01k… open",
	)
}

func (c *proposalResolveCmd) Run(e *env) error {
	note, err := e.readText(c.Note)
	if err != nil {
		return err
	}
	change := client.ProposalPatch{Status: new(client.ProposalStatus(c.Status)), ResolutionNote: given(note)}
	return c.record(e, false, func(api *client.Client, raw client.Option) (*client.Proposal, error) {
		return api.Proposals.Update(e.ctx, c.ID, change, c.once(), raw)
	})
}

type proposalHistoryCmd struct {
	serverFlags `embed:""`
	paging      `embed:""`
	ID          string `arg:"" help:"Id of the proposal."`
}

// Help is shown by --help.
func (proposalHistoryCmd) Help() string { return examples("parley proposal history prop-01k…") }

func (c *proposalHistoryCmd) Run(e *env) error {
	q := url.Values{}
	c.paging.add(q)
	list, done, err := ask(e, &c.serverFlags, func(api *client.Client, raw client.Option) (*client.Page[client.HistoryEntry], error) {
		return api.Proposals.History(e.ctx, c.ID, client.PageParams{}, client.WithQuery(q), raw)
	})
	if done {
		return err
	}
	t := table{head: []string{"#", "AT (UTC)", "WHO", "WHAT"}}
	for _, h := range list.Items {
		t.add(strconv.Itoa(h.Seq), when(h.At), h.Actor, whatHappened(&h))
	}
	total := int(list.Total)
	return e.list(&t, e.palette(), "entry", "entries", total, list.Number, c.more(list.Number, total))
}

// whatHappened says an entry in words.
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
