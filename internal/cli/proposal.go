package cli

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
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

// proposalRecord is what this program reads of a record or of a list item.
type proposalRecord struct {
	ID             string    `json:"id"`
	Title          string    `json:"title"`
	Category       string    `json:"category"`
	Problem        string    `json:"problem"`
	SuggestedFix   string    `json:"suggested_fix"`
	Priority       string    `json:"priority"`
	Status         string    `json:"status"`
	SubmittedBy    string    `json:"submitted_by"`
	SubmittedAt    time.Time `json:"submitted_at"`
	VotesFor       int       `json:"votes_for"`
	VotesAgainst   int       `json:"votes_against"`
	ResolutionNote string    `json:"resolution_note"`
	MyVote         *string   `json:"my_vote"`
	Next           []string  `json:"allowed_transitions"`
	FollowupID     *string   `json:"followup_id"`
	FollowupStatus *string   `json:"followup_status"`
	Resolvable     bool      `json:"resolvable"`
}

func proposalPath(id string, rest ...string) string {
	return strings.Join(append([]string{"/proposals", url.PathEscape(id)}, rest...), "/")
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
	var list struct {
		Proposals []proposalRecord `json:"proposals"`
		Total     int              `json:"total"`
		Page      int              `json:"page"`
		Next      *string          `json:"next_cursor"`
	}
	if done, err := c.ask(e, call{method: http.MethodGet, path: "/proposals", query: q}, &list); done {
		return err
	}
	p := e.palette()
	t := table{
		head:   []string{"ID", "PRIORITY", "CATEGORY", "STATUS", "FOR", "AGAINST", "SUBMITTED BY", "SUBMITTED (UTC)", "TITLE"},
		colour: map[int]func(string) string{3: p.status},
	}
	for _, r := range list.Proposals {
		t.add(r.ID, r.Priority, r.Category, r.Status, strconv.Itoa(r.VotesFor), strconv.Itoa(r.VotesAgainst),
			r.SubmittedBy, when(r.SubmittedAt), r.Title)
	}
	return e.list(&t, p, "proposal", "proposals", list.Total, list.Page, list.Next != nil)
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
	return c.record(e, call{method: http.MethodGet, path: proposalPath(c.ID)})
}

// quietFlag is for scripts: ID=$(parley proposal submit … --quiet).
type quietFlag struct {
	Quiet bool `help:"Print the id alone."`
}

// record sends a call that answers with a whole proposal, and prints it.
func (f *serverFlags) record(e *env, r call) error { return f.recordOrID(e, r, false) }

func (f *serverFlags) recordOrID(e *env, r call, quiet bool) error {
	var p proposalRecord
	if done, err := f.ask(e, r, &p); done {
		return err
	}
	if quiet {
		_, err := fmt.Fprintln(e.stdout, cleanLine(p.ID))
		return err
	}
	return e.printProposal(p)
}

// followup says what became of the approval, and what is left to do.
func (p *proposalRecord) followup() string {
	s := cleanLine(*p.FollowupID)
	if p.FollowupStatus != nil {
		s += ", " + cleanLine(*p.FollowupStatus)
	}
	if p.Resolvable {
		s += "; the proposal can be resolved"
	}
	return s
}

func (e *env) printProposal(p proposalRecord) error {
	r := record{p: e.palette()}
	r.heading(p.Title)
	r.field("id", cleanLine(p.ID))
	r.field("status", r.p.status(cleanLine(p.Status)))
	r.field("priority", cleanLine(p.Priority))
	r.field("category", cleanLine(p.Category))
	r.field("submitted", cleanLine(p.SubmittedBy)+", "+when(p.SubmittedAt)+" UTC")
	votes := fmt.Sprintf("%d for, %d against", p.VotesFor, p.VotesAgainst)
	if p.MyVote != nil {
		votes += "; yours: " + cleanLine(*p.MyVote)
	}
	r.field("votes", votes)
	if p.FollowupID != nil {
		r.field("follow-up", p.followup())
	}
	r.field("may become", cleanLine(strings.Join(p.Next, ", ")))
	r.text("Problem", p.Problem)
	r.text("Suggested fix", p.SuggestedFix)
	r.text("Resolution note", p.ResolutionNote)
	_, err := e.stdout.Write([]byte(r.b.String()))
	return err
}
