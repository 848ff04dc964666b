// Package doctor checks the settings and the surroundings of a server before or while it runs: files,
// clock, database, ports, addresses and the hosts that it talks to. It changes nothing.
package doctor

import (
	"context"
	"log/slog"
	"time"

	"github.com/parley-dev/parley/internal/config"
	"github.com/parley-dev/parley/internal/store"
)

// Level says how serious a finding is.
type Level string

// The levels.
const (
	OK      Level = "ok"
	Warning Level = "warning" // the server works, but not as it should
	Problem Level = "problem" // something does not work
)

// Finding is the result of one look.
type Finding struct {
	Check string // what was looked at, such as "clock"
	Level Level
	Text  string // what was found
	Do    string // what to do; empty if nothing is to be done
}

// Options are what the checks need.
type Options struct {
	Config config.Config
	Store  store.Options
	Files  int // limit of open files; 0: none
	Now    func() time.Time
	Log    *slog.Logger // of the clients of identity providers
}

// exam is one run of all checks.
type exam struct {
	Options
	ctx   context.Context // of the one run
	check string
	found []Finding
	facts *store.Facts // of the store, if it could be read
}

// within limits one request to another host.
const within = 10 * time.Second

// Run runs all checks, and calls progress before each.
func Run(ctx context.Context, o Options, progress func(check string)) []Finding {
	e := &exam{Options: o, ctx: ctx}
	for _, c := range []struct {
		name string
		run  func()
	}{
		{"settings", e.settings},
		{"limits", e.limits},
		{"clock", e.clock},
		{"data folder", e.folder},
		{"database", e.database},
		{"migrations", e.migrations},
		{"secrets", e.secrets},
		{"ports", e.ports},
		{"TLS", e.tls},
		{"public URL", e.publicURL},
		{"receivers", e.receivers},
		{"sign-in", e.issuers},
	} {
		if ctx.Err() != nil {
			break
		}
		progress(c.name)
		e.check = c.name
		before := len(e.found)
		c.run()
		if len(e.found) == before {
			e.ok("nothing to check")
		}
	}
	return e.found
}

func (e *exam) ok(text string) { e.add(OK, text, "") }

func (e *exam) warn(text, do string) { e.add(Warning, text, do) }

func (e *exam) fail(text, do string) { e.add(Problem, text, do) }

func (e *exam) add(l Level, text, do string) {
	e.found = append(e.found, Finding{Check: e.check, Level: l, Text: text, Do: do})
}
