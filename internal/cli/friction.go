package cli

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

type frictionCmd struct {
	List   frictionListCmd   `cmd:"" help:"List what was reported, the latest first."`
	Show   frictionShowCmd   `cmd:"" help:"Show one friction with its evidence."`
	Report frictionReportCmd `cmd:"" help:"Report that something got in the way; enough reports file a proposal."`
}

// Help is shown by parley friction --help.
func (frictionCmd) Help() string {
	return examples(
		"parley friction report registry:timeout --title 'The registry times out' --category reliability --problem 'Pulls of large images fail.' --evidence @error.log",
		"parley friction list", "parley friction show registry:timeout")
}

// frictionRecord is what this program reads of a friction.
type frictionRecord struct {
	Fingerprint  string    `json:"fingerprint"`
	Title        string    `json:"title"`
	Category     string    `json:"category"`
	Problem      string    `json:"problem"`
	SuggestedFix string    `json:"suggested_fix"`
	Priority     string    `json:"priority"`
	Count        int64     `json:"count"`
	ProposalID   *string   `json:"proposal_id"`
	FirstAt      time.Time `json:"first_at"`
	LastAt       time.Time `json:"last_at"`
	LastBy       string    `json:"last_by"`
	Evidence     []struct {
		Reporter   string    `json:"reporter"`
		Occurrence *string   `json:"occurrence"`
		Evidence   string    `json:"evidence"`
		At         time.Time `json:"at"`
	} `json:"evidence"`
}

type frictionListCmd struct {
	serverFlags `embed:""`
	Limit       int    `help:"Results on a page; 20 if not given, 100 at most." placeholder:"N"`
	Cursor      string `help:"Continue a list where the page before ended." placeholder:"CURSOR"`
}

// Help is shown by --help.
func (frictionListCmd) Help() string {
	return examples("parley friction list", "parley friction list --limit 100 --json")
}

func (c *frictionListCmd) Run(e *env) error {
	q := url.Values{}
	if c.Limit != 0 {
		q.Set("limit", strconv.Itoa(c.Limit))
	}
	if c.Cursor != "" {
		q.Set("cursor", c.Cursor)
	}
	var list struct {
		Friction []frictionRecord `json:"friction"`
		Next     *string          `json:"next_cursor"`
	}
	if done, err := c.ask(e, call{method: http.MethodGet, path: "/friction", query: q}, &list); done {
		return err
	}
	t := table{head: []string{"FINGERPRINT", "COUNT", "LAST (UTC)", "PROPOSAL", "TITLE"}}
	for _, f := range list.Friction {
		t.add(f.Fingerprint, strconv.FormatInt(f.Count, 10), when(f.LastAt), orNone(f.ProposalID), f.Title)
	}
	return e.pages(&t, "nothing was reported", list.Next)
}

type frictionShowCmd struct {
	serverFlags `embed:""`
	Fingerprint string `arg:"" help:"What makes reports the same friction."`
}

// Help is shown by --help.
func (frictionShowCmd) Help() string { return examples("parley friction show registry:timeout") }

func (c *frictionShowCmd) Run(e *env) error {
	var f frictionRecord
	if done, err := c.ask(e, call{method: http.MethodGet, path: "/friction/" + url.PathEscape(c.Fingerprint)}, &f); done {
		return err
	}
	rec := record{p: e.palette()}
	rec.heading(f.Title)
	rec.field("fingerprint", cleanLine(f.Fingerprint))
	rec.field("category", cleanLine(f.Category))
	rec.field("priority", cleanLine(f.Priority))
	rec.field("reports", strconv.FormatInt(f.Count, 10))
	rec.field("proposal", cleanLine(orNone(f.ProposalID)))
	rec.field("first", when(f.FirstAt)+" UTC")
	rec.field("last", cleanLine(f.LastBy)+", "+when(f.LastAt)+" UTC")
	rec.text("Problem", f.Problem)
	if f.SuggestedFix != "" {
		rec.text("Suggested fix", f.SuggestedFix)
	}
	for _, r := range f.Evidence {
		head := cleanLine(r.Reporter) + ", " + when(r.At) + " UTC"
		if r.Occurrence != nil {
			head += ", " + cleanLine(*r.Occurrence)
		}
		rec.text(head, r.Evidence)
	}
	_, err := e.stdout.Write([]byte(rec.b.String()))
	return err
}

type frictionReportCmd struct {
	serverFlags  `embed:""`
	onceFlag     `embed:""`
	Fingerprint  string `arg:"" help:"What makes reports the same friction, such as registry:timeout."`
	Title        string `help:"One line that names it." placeholder:"TEXT"`
	Category     string `help:"reliability, performance, security, process, feature or documentation." placeholder:"CATEGORY"`
	Problem      string `help:"What gets in the way; @FILE reads a file, @- stdin." placeholder:"TEXT"`
	SuggestedFix string `help:"What to do about it, if you know; @FILE reads a file, @- stdin." aliases:"fix" placeholder:"TEXT"`
	Evidence     string `help:"What you saw this time; @FILE reads a file, @- stdin." placeholder:"TEXT"`
	Occurrence   string `help:"Your own name for this time, such as a job's id: it counts once, however often you report it." placeholder:"ID"`
	Priority     string `help:"low, normal (default) or high." placeholder:"PRIORITY"`
}

// Help is shown by --help.
func (frictionReportCmd) Help() string {
	return examples(
		"parley friction report registry:timeout --title 'The registry times out' --category reliability --problem 'Pulls of large images fail.' --evidence @error.log",
		"parley friction report ci:flaky --title 'Flaky test' --category process --problem 'It fails now and then.' --occurrence \"$CI_JOB_ID\" --json",
	)
}

func (c *frictionReportCmd) Run(e *env) error {
	var missing []string
	for _, f := range []struct{ flag, value string }{{"--title", c.Title}, {"--category", c.Category}, {"--problem", c.Problem}} {
		if f.value == "" {
			missing = append(missing, f.flag)
		}
	}
	if len(missing) > 0 {
		return usage("missing %s", strings.Join(missing, ", "))
	}
	report := map[string]string{"fingerprint": c.Fingerprint, "title": c.Title, "category": c.Category}
	for name, text := range map[string]string{"problem": c.Problem, "suggested_fix": c.SuggestedFix, "evidence": c.Evidence} {
		text, err := e.readText(text)
		if err != nil {
			return err
		}
		if text != "" {
			report[name] = text
		}
	}
	for name, text := range map[string]string{"occurrence": c.Occurrence, "priority": c.Priority} {
		if text != "" {
			report[name] = text
		}
	}
	var out struct {
		Count      int64   `json:"count"`
		Threshold  int64   `json:"threshold"`
		Counted    bool    `json:"counted"`
		Filed      bool    `json:"filed"`
		ProposalID *string `json:"proposal_id"`
	}
	if done, err := c.ask(e, call{method: http.MethodPost, path: "/friction", send: report, once: c.once()}, &out); done {
		return err
	}
	said := fmt.Sprintf("Report %d", out.Count)
	switch {
	case !out.Counted:
		said = fmt.Sprintf("You had reported this occurrence before; it has %d reports", out.Count)
	case out.Filed:
		said += " filed the proposal " + *out.ProposalID
	case out.ProposalID != nil:
		said += " was added to the evidence; the proposal is " + *out.ProposalID
	case out.Threshold > 0:
		said += fmt.Sprintf(" of the %d that file a proposal", out.Threshold)
	}
	_, err := fmt.Fprintln(e.stdout, cleanLine(said)+".")
	return err
}
