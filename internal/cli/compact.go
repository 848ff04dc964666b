package cli

import (
	"fmt"
	"time"

	"github.com/parley-dev/parley/internal/app"
)

type compactCmd struct {
	StoreFlags `embed:""`
	Full       bool `help:"Write everything anew: on SQLite with no server on the store; on PostgreSQL each table is locked meanwhile."`
}

// Help is shown by --help.
func (compactCmd) Help() string {
	return operatorHelp + "Gives the space of deleted rows back, while servers use the store. SQLite's file shrinks in " +
		"small steps. On PostgreSQL the space becomes free for new rows, and indexes are built anew beside the old ones; " +
		"with --full it returns to the disk.\n\n" + examples(
		"parley compact",
		"parley compact --data /var/lib/parley --full",
		"parley compact --database postgres://parley@db/parley --json",
	)
}

type compactJSON struct {
	Engine  string  `json:"engine"`
	Before  int64   `json:"before_bytes"`
	After   int64   `json:"after_bytes"`
	Later   bool    `json:"later,omitempty"`
	Seconds float64 `json:"seconds"`
}

func (c *compactCmd) Run(e *env) error {
	began := time.Now()
	p := e.progress()
	r, err := app.Compact(e.ctx, c.Store, c.Full, func(what string) { p.line("compacting: " + what) })
	p.clear()
	if err != nil {
		return err
	}
	out := compactJSON{Engine: r.Engine, Before: r.Before, After: r.After, Later: r.Later, Seconds: time.Since(began).Seconds()}
	if c.JSON {
		return e.printJSON(out)
	}
	_, err = fmt.Fprintf(e.stdout, "the %s store had %d KiB and has %d KiB, in %.1f s\n", r.Engine, r.Before/1024,
		r.After/1024, out.Seconds)
	if err == nil && r.Later {
		_, err = fmt.Fprintln(e.stdout, "The file shrinks when a reader that still needs its end, such as a back-up, is done.")
	}
	return err
}
