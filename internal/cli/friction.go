package cli

import (
	"fmt"
	"strconv"

	"github.com/parley-dev/parley/sdk/client"
)

type frictionCmd struct {
	List   frictionListCmd   `cmd:"" help:"List reported friction, the latest first."`
	Show   frictionShowCmd   `cmd:"" help:"Show one friction with its evidence."`
	Report frictionReportCmd `cmd:"" help:"Report that something got in the way; enough reports file a proposal."`
}

// Help is shown by parley friction --help.
func (frictionCmd) Help() string {
	return examples(reportExample, "parley friction list", "parley friction show registry:timeout")
}

const reportExample = "parley friction report registry:timeout --title 'The registry times out' " +
	"--category reliability --problem 'Pulls of large images fail.' --evidence @error.log"

type frictionListCmd struct {
	serverFlags `embed:""`
	cursorFlags `embed:""`
}

// Help is shown by --help.
func (frictionListCmd) Help() string {
	return examples("parley friction list", "parley friction list --limit 100 --json")
}

func (c *frictionListCmd) Run(e *env) error {
	list, done, err := ask(e, &c.serverFlags, aboutOrg,
		func(api *client.Client, raw client.Option) (*client.Page[client.Friction], error) {
			return api.Friction.List(e.ctx, client.CursorParams{}, client.WithQuery(c.query()), raw)
		})
	if done {
		return err
	}
	t := table{
		head: []string{"FINGERPRINT", "COUNT", "LAST (UTC)", "PROPOSAL", "TITLE"},
		drop: []string{"PROPOSAL", "LAST (UTC)"},
		wide: c.Wide,
	}
	for _, f := range list.Items {
		t.add(f.Fingerprint, strconv.FormatInt(f.Count, 10), when(f.LastAt), orNone(f.ProposalID), f.Title)
	}
	return e.pages(&t, "nothing was reported", list.Next)
}

type frictionShowCmd struct {
	serverFlags `embed:""`
	Fingerprint string `arg:"" help:"Fingerprint of the friction, such as registry:timeout."`
}

// Help is shown by --help.
func (frictionShowCmd) Help() string { return examples("parley friction show registry:timeout") }

func (c *frictionShowCmd) Run(e *env) error {
	f, done, err := ask(e, &c.serverFlags, about("friction", &c.Fingerprint),
		func(api *client.Client, raw client.Option) (*client.Friction, error) {
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
	Fingerprint  string `arg:"" help:"Reports with the same fingerprint, such as registry:timeout, are the same friction."`
	Title        string `help:"What it is, in one line." placeholder:"TEXT"`
	Category     string `help:"reliability, performance, security, process, feature or documentation." placeholder:"CATEGORY"`
	Problem      string `help:"What gets in the way; @FILE reads a file, @- stdin." placeholder:"TEXT"`
	SuggestedFix string `help:"What to do about it, if known; @FILE reads a file, @- stdin." aliases:"fix" placeholder:"TEXT"`
	Evidence     string `help:"What you saw this time; @FILE reads a file, @- stdin." placeholder:"TEXT"`
	Occurrence   string `help:"Your id of this occurrence, such as a job's: repeated reports of it count once." placeholder:"ID"`
	Priority     string `help:"low, normal (default) or high." placeholder:"PRIORITY"`
}

// Help is shown by --help.
func (frictionReportCmd) Help() string {
	return examples(
		reportExample,
		"parley friction report ci:flaky --title 'Flaky test' --category process --problem 'It fails now and then.' "+
			"--occurrence \"$CI_JOB_ID\" --json",
	)
}

func (c *frictionReportCmd) Run(e *env) error {
	missing := notGiven(textFlag{"--title", &c.Title}, textFlag{"--category", &c.Category},
		textFlag{"--problem", &c.Problem})
	if missing != "" {
		return usage("missing %s", missing)
	}
	report := client.FrictionReport{
		Fingerprint: c.Fingerprint, Title: c.Title, Category: client.Category(c.Category),
		Occurrence: c.Occurrence, Priority: client.Priority(c.Priority),
		Problem: c.Problem, SuggestedFix: c.SuggestedFix, Evidence: c.Evidence,
	}
	if err := e.readTexts(textFlag{"--problem", &report.Problem}, textFlag{"--suggested-fix", &report.SuggestedFix},
		textFlag{"--evidence", &report.Evidence}); err != nil {
		return err
	}
	out, done, err := ask(e, &c.serverFlags, aboutOrg,
		func(api *client.Client, raw client.Option) (*client.FrictionOutcome, error) {
			return api.Friction.Report(e.ctx, report, c.once(), raw)
		})
	if done {
		return err
	}
	said := fmt.Sprintf("reported friction %q: report %d", c.Fingerprint, out.Count)
	switch {
	case !out.Counted:
		said = fmt.Sprintf("you had reported this occurrence of friction %q before; it has %d reports", c.Fingerprint, out.Count)
	case out.Filed:
		said += fmt.Sprintf(" filed proposal %q", out.ProposalID)
	case out.ProposalID != "":
		said += fmt.Sprintf(" was added to the evidence of proposal %q", out.ProposalID)
	case out.Threshold > 0:
		said += fmt.Sprintf(" of the %d that file a proposal", out.Threshold)
	}
	return e.say("%s", said)
}
