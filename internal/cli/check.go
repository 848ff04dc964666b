package cli

import (
	"errors"
	"fmt"

	"github.com/parley-dev/parley/internal/app"
)

type checkCmd struct {
	StoreFlags `embed:""`
	Repair     bool `help:"Compute wrong numbers of votes and totals of lists again from the rows."`
}

// Help is shown by --help.
func (checkCmd) Help() string {
	return operatorHelp + "Looks for damage: of the file or of indexes, rows whose other row is missing, numbers of votes " +
		"and totals that differ from the rows, gaps in the log of events, proposals that no search finds. Servers may use " +
		"the store meanwhile; with --repair their writes of proposals wait until it is done. The exit code is 1 if anything " +
		"is found.\n\n" + examples(
		"parley check",
		"parley check --data /var/lib/parley --repair",
		"parley check --database postgres://parley@db/parley --json",
	)
}

type checkJSON struct {
	Engine   string        `json:"engine"`
	Schema   int           `json:"schema"`
	Findings []findingJSON `json:"findings"`
	Repaired int64         `json:"repaired"`
}

type findingJSON struct {
	Check      string `json:"check"`
	Org        string `json:"org,omitempty"`
	Text       string `json:"text"`
	Repairable bool   `json:"repairable"`
}

func (c *checkCmd) Run(e *env) error {
	p := e.progress()
	r, err := app.Check(e.ctx, c.Store, c.Repair, func(check string) { p.line("checking " + check) })
	p.clear()
	if err != nil {
		return err
	}
	out := checkJSON{Engine: r.Engine, Schema: r.Schema, Findings: []findingJSON{}, Repaired: r.Repaired}
	for _, f := range r.Findings {
		out.Findings = append(out.Findings, findingJSON(f))
	}
	if c.JSON {
		err = e.printJSON(out)
	} else {
		err = out.print(e)
	}
	if err == nil && len(out.Findings) > 0 {
		err = errors.New("the store is not in order: see the findings")
	}
	return err
}

func (c checkJSON) print(e *env) error {
	repairable := false
	for _, f := range c.Findings {
		of := ""
		if f.Org != "" {
			of = fmt.Sprintf(" of org %q", f.Org)
		}
		if _, err := fmt.Fprintf(e.stdout, "%s%s: %s\n", f.Check, of, cleanLine(f.Text)); err != nil {
			return err
		}
		repairable = repairable || f.Repairable
	}
	text := fmt.Sprintf("The %s store is in order (schema %d).", c.Engine, c.Schema)
	switch {
	case repairable:
		text = "Run it again with --repair to compute wrong numbers again."
	case len(c.Findings) > 0:
		text = ""
	}
	if c.Repaired > 0 {
		text = fmt.Sprintf("%d wrong numbers were computed again. ", c.Repaired) + text
	}
	if text == "" {
		return nil
	}
	_, err := fmt.Fprintln(e.stdout, text)
	return err
}
