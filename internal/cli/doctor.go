package cli

import (
	"errors"
	"fmt"

	"github.com/parley-dev/parley/internal/app"
	"github.com/parley-dev/parley/internal/config"
	"github.com/parley-dev/parley/internal/doctor"
)

type doctorCmd struct {
	jsonFlag      `embed:""`
	config.Config `embed:""`
}

// Help is shown by --help.
func (doctorCmd) Help() string {
	return "For the operator. Checks settings, rights on files, clock, database, migrations, ports, TLS, the public URL, " +
		"the receivers of events and the identity providers, and says what to do. Give it the settings of the server, which " +
		"may run meanwhile. Nothing is changed. The exit code is 1 if there is a problem; warnings do not count.\n\n" + examples(
		"parley doctor",
		"parley doctor --config /etc/parley/parley.json",
		"parley doctor --database postgres://parley@db/parley --public-url https://parley.example --json",
	)
}

type doctorJSON struct {
	Problems int          `json:"problems"`
	Warnings int          `json:"warnings"`
	Findings []adviceJSON `json:"findings"`
}

type adviceJSON struct {
	Check string       `json:"check"`
	Level doctor.Level `json:"level"`
	Text  string       `json:"text"`
	Do    string       `json:"do,omitempty"`
}

func (c *doctorCmd) Run(e *env) error {
	p := e.progress()
	found := app.Doctor(e.ctx, c.Config, func(check string) { p.line("checking " + check) })
	p.clear()
	if err := e.ctx.Err(); err != nil {
		return err
	}
	out := doctorJSON{Findings: []adviceJSON{}}
	for _, f := range found {
		out.Findings = append(out.Findings, adviceJSON(f))
		switch f.Level {
		case doctor.Problem:
			out.Problems++
		case doctor.Warning:
			out.Warnings++
		}
	}
	err := error(nil)
	if c.JSON {
		err = e.printJSON(out)
	} else {
		err = out.print(e)
	}
	if err == nil && out.Problems > 0 {
		err = errors.New("there are problems: see the findings")
	}
	return err
}

func (d doctorJSON) print(e *env) error {
	for _, f := range d.Findings {
		line := fmt.Sprintf("%-8s %s: %s\n", f.Level, f.Check, cleanLine(f.Text))
		if f.Do != "" {
			line += "         → " + cleanLine(f.Do) + "\n"
		}
		if _, err := fmt.Fprint(e.stdout, line); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(e.stdout, "problems: %d, warnings: %d\n", d.Problems, d.Warnings)
	return err
}
