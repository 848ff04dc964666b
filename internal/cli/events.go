package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/parley-dev/parley/sdk/client"
)

type eventsCmd struct {
	serverFlags `embed:""`
	Follow      bool     `help:"Go on with new events as they happen, until Ctrl-C or --limit." short:"f"`
	Types       []string `help:"Only events of these types, e.g. proposal.approved,proposal.rejected." placeholder:"TYPE,..."`
	Subject     string   `help:"Only events about this record, e.g. proposal:prop-01k5x8r2m4v7c9w3q6z1t0h8ye." placeholder:"KIND:ID"`
	After       int64    `help:"Start after the event with this number; with the oldest that is kept if not given." placeholder:"N"`
	Limit       int      `help:"Stop after so many events." placeholder:"N"`
}

// Help is shown by --help.
func (eventsCmd) Help() string {
	return "Prints one line for each event, oldest first: time (UTC), number, type, subject, actor, and the title or " +
		"name of the record. With --json each line is the event as JSON.\n\n" +
		"To continue later, give the last number that you saw as --after. You see the events whose records you may " +
		"read; administrative ones are for admins.\n\n" +
		"The types: https://github.com/parley-dev/parley/blob/main/docs/events.md" + examples(
		"parley events",
		"parley events --follow --types proposal.approved,proposal.rejected",
		"parley events --after 4711 --json | jq -r .subject",
		"parley events --subject proposal:prop-01k5x8r2m4v7c9w3q6z1t0h8ye",
		"parley events --follow --limit 1 --types task.failed && echo 'a task failed'",
	)
}

// pageOfEvents is the largest page that the server returns.
const pageOfEvents = 100

func (c *eventsCmd) Run(e *env) error {
	if c.After < 0 {
		return usage("--after must be 0 or more")
	}
	if c.Limit < 0 {
		return usage("--limit must be 1 or more")
	}
	r, err := c.client(e)
	if err != nil {
		return err
	}
	if c.Follow {
		return c.follow(e, r)
	}
	return c.list(e, r)
}

// options selects the events.
func (c *eventsCmd) options() client.EventsOptions {
	o := client.EventsOptions{Types: c.Types, Subject: c.Subject}
	if c.After > 0 {
		after := c.After
		o.After = &after
	}
	return o
}

// list prints the events that are there. A page may be empty although more follow, if few events
// are selected, so the list ends when a page ends where it began.
func (c *eventsCmd) list(e *env, r *remote) error {
	o := c.options()
	for printed, last := 0, c.After; ; {
		o.Limit = pageOfEvents
		if c.Limit > 0 {
			o.Limit = min(o.Limit, c.Limit-printed)
		}
		page, err := r.Events(e.ctx, o)
		if err != nil {
			return r.explain(e, aboutOrg, err)
		}
		if page.Reset {
			e.noticeReset()
		}
		for i := range page.Events {
			if err := c.print(e, &page.Events[i]); err != nil {
				return err
			}
		}
		printed += len(page.Events)
		switch {
		case c.Limit > 0 && printed >= c.Limit:
			return nil
		case page.LastSeq == last && printed == 0 && !c.JSON:
			return e.say("no events")
		case page.LastSeq == last:
			return nil
		}
		last = page.LastSeq
		o.After = &last
	}
}

// follow prints events until there are enough of them, or the user ends the command.
func (c *eventsCmd) follow(e *env, r *remote) error {
	printed := 0
	for event, err := range r.FollowEvents(e.ctx, c.options()) {
		switch {
		case e.ctx.Err() != nil:
			return nil // Ctrl-C is the usual end
		case errors.Is(err, client.ErrEventsReset):
			e.noticeReset()
			continue
		case err != nil:
			return r.explain(e, aboutOrg, err)
		}
		if err := c.print(e, &event); err != nil {
			return err
		}
		if printed++; printed == c.Limit {
			return nil
		}
	}
	return nil
}

// noticeReset says that the log does not have the number that the user gave, or was following.
func (e *env) noticeReset() {
	e.notice("some events are missing: they are no longer kept, or the server was restored from a backup; " +
		"going on with the oldest event")
}

// print prints one event.
func (c *eventsCmd) print(e *env, event *client.OrgEvent) error {
	if c.JSON {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(event); err != nil {
			return err
		}
		return e.printRaw(b.Bytes())
	}
	p := e.palette()
	line := strings.Join([]string{
		p.dim(event.Time.UTC().Format(time.DateTime)), strconv.FormatInt(event.Seq, 10), p.bold(cleanLine(event.Type)),
		cleanLine(event.Subject), cleanLine(event.Actor), cleanLine(summary(event.Data)),
	}, "  ")
	_, err := fmt.Fprintln(e.stdout, strings.TrimRight(line, " "))
	return err
}

// summary says in a few words which record the data of an event is.
func summary(data json.RawMessage) string {
	var record struct{ Title, Name, Agent, State, Email, URL string }
	_ = json.Unmarshal(data, &record) // of another shape: no summary
	if record.Agent != "" && record.State != "" {
		return record.Agent + ": " + record.State // a task
	}
	return cmp.Or(record.Title, record.Name, record.Email, record.URL)
}
