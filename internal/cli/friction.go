package cli

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/parley-dev/parley/sdk/client"
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
	list, done, err := ask(e, &c.serverFlags, func(api *client.Client, raw client.Option) (*client.Page[client.Friction], error) {
		return api.Friction.List(e.ctx, client.CursorParams{}, client.WithQuery(q), raw)
	})
	if done {
		return err
	}
	t := table{head: []string{"FINGERPRINT", "COUNT", "LAST (UTC)", "PROPOSAL", "TITLE"}}
	for _, f := range list.Items {
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
	f, done, err := ask(e, &c.serverFlags, func(api *client.Client, raw client.Option) (*client.Friction, error) {
		return api.Friction.Get(e.ctx, c.Fingerprint, raw)
	})
	if done {
		return err
	}
	rec := record{p: e.palette()}
	rec.heading(f.Title)
	rec.field("fingerprint", cleanLine(f.Fingerprint))
	rec.field("category", cleanLine(string(f.Category)))
	rec.field("priority", cleanLine(string(f.Priority)))
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
		if r.Occurrence != "" {
			head += ", " + cleanLine(r.Occurrence)
		}
		rec.text(head, r.Evidence)
	}
	_, err = e.stdout.Write([]byte(rec.b.String()))
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
	report := client.FrictionReport{
		Fingerprint: c.Fingerprint, Title: c.Title, Category: client.Category(c.Category), Occurrence: c.Occurrence, Priority: client.Priority(c.Priority),
	}
	for _, t := range []struct {
		given string
		into  *string
	}{{c.Problem, &report.Problem}, {c.SuggestedFix, &report.SuggestedFix}, {c.Evidence, &report.Evidence}} {
		text, err := e.readText(t.given)
		if err != nil {
			return err
		}
		*t.into = text
	}
	out, done, err := ask(e, &c.serverFlags, func(api *client.Client, raw client.Option) (*client.FrictionOutcome, error) {
		return api.Friction.Report(e.ctx, report, c.once(), raw)
	})
	if done {
		return err
	}
	said := fmt.Sprintf("Report %d", out.Count)
	switch {
	case !out.Counted:
		said = fmt.Sprintf("You had reported this occurrence before; it has %d reports", out.Count)
	case out.Filed:
		said += " filed the proposal " + out.ProposalID
	case out.ProposalID != "":
		said += " was added to the evidence; the proposal is " + out.ProposalID
	case out.Threshold > 0:
		said += fmt.Sprintf(" of the %d that file a proposal", out.Threshold)
	}
	_, err = fmt.Fprintln(e.stdout, cleanLine(said)+".")
	return err
}
