package cli

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
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
	send := struct {
		Vote    string `json:"vote"`
		Comment string `json:"comment,omitempty"`
	}{c.Vote, comment}
	var v struct {
		Vote         string `json:"vote"`
		VotesFor     int    `json:"votes_for"`
		VotesAgainst int    `json:"votes_against"`
		Replaced     bool   `json:"replaced"`
	}
	if done, err := c.ask(e, call{method: http.MethodPost, path: proposalPath(c.ID, "vote"), send: send, once: c.once()}, &v); done {
		return err
	}
	did := "voted"
	if v.Replaced {
		did = "changed your vote to"
	}
	_, err = fmt.Fprintf(e.stdout, "%s %s; %d for, %d against\n", did, cleanLine(v.Vote), v.VotesFor, v.VotesAgainst)
	return err
}

type proposalWithdrawCmd struct {
	serverFlags `embed:""`
	ID          string `arg:"" help:"Id of the proposal."`
}

// Help is shown by --help.
func (proposalWithdrawCmd) Help() string { return examples("parley proposal withdraw prop-01k…") }

func (c *proposalWithdrawCmd) Run(e *env) error {
	var v struct {
		VotesFor     int `json:"votes_for"`
		VotesAgainst int `json:"votes_against"`
	}
	if done, err := c.ask(e, call{method: http.MethodDelete, path: proposalPath(c.ID, "vote")}, &v); done {
		return err
	}
	_, err := fmt.Fprintf(e.stdout, "vote withdrawn; %d for, %d against\n", v.VotesFor, v.VotesAgainst)
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
	var list struct {
		Votes []struct {
			Voter   string    `json:"voter"`
			Vote    string    `json:"vote"`
			Comment string    `json:"comment"`
			VotedAt time.Time `json:"voted_at"`
		} `json:"votes"`
		Total int `json:"total"`
		Page  int `json:"page"`
	}
	if done, err := c.ask(e, call{method: http.MethodGet, path: proposalPath(c.ID, "votes"), query: q}, &list); done {
		return err
	}
	t := table{head: []string{"VOTER", "VOTE", "VOTED (UTC)", "COMMENT"}}
	for _, v := range list.Votes {
		t.add(v.Voter, v.Vote, when(v.VotedAt), v.Comment)
	}
	return e.list(&t, e.palette(), "vote", "votes", list.Total, list.Page, c.more(list.Page, list.Total))
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
	send := struct {
		Status string `json:"status"`
		Note   string `json:"resolution_note,omitempty"`
	}{c.Status, note}
	return c.record(e, call{method: http.MethodPatch, path: proposalPath(c.ID), send: send, once: c.once()})
}

type proposalHistoryCmd struct {
	serverFlags `embed:""`
	paging      `embed:""`
	ID          string `arg:"" help:"Id of the proposal."`
}

// Help is shown by --help.
func (proposalHistoryCmd) Help() string { return examples("parley proposal history prop-01k…") }

type historyEntry struct {
	Seq     int64     `json:"seq"`
	At      time.Time `json:"at"`
	Actor   string    `json:"actor"`
	Kind    string    `json:"kind"`
	From    string    `json:"from"`
	To      string    `json:"to"`
	Note    string    `json:"note"`
	Vote    string    `json:"vote"`
	Comment string    `json:"comment"`
	Changes []struct {
		Field string `json:"field"`
	} `json:"changes"`
}

func (c *proposalHistoryCmd) Run(e *env) error {
	q := url.Values{}
	c.paging.add(q)
	var list struct {
		History []historyEntry `json:"history"`
		Total   int            `json:"total"`
		Page    int            `json:"page"`
	}
	if done, err := c.ask(e, call{method: http.MethodGet, path: proposalPath(c.ID, "history"), query: q}, &list); done {
		return err
	}
	t := table{head: []string{"#", "AT (UTC)", "WHO", "WHAT"}}
	for _, h := range list.History {
		t.add(strconv.FormatInt(h.Seq, 10), when(h.At), h.Actor, h.what())
	}
	return e.list(&t, e.palette(), "entry", "entries", list.Total, list.Page, c.more(list.Page, list.Total))
}

// what says an entry in words.
func (h *historyEntry) what() string {
	say := func(s, detail string) string {
		if detail != "" {
			return s + ": " + detail
		}
		return s
	}
	switch h.Kind {
	case "submitted":
		return "submitted as " + h.To
	case "edited":
		fields := make([]string, len(h.Changes))
		for i, f := range h.Changes {
			fields[i] = f.Field
		}
		return "edited " + strings.Join(fields, ", ")
	case "status_changed":
		return say(h.From+" → "+h.To, h.Note)
	case "voted":
		return say("voted "+h.Vote, h.Comment)
	case "vote_withdrawn":
		return "withdrew the vote " + h.Vote
	}
	return h.Kind
}
