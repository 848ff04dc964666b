package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/app"
	"github.com/parley-dev/parley/sdk/client"
)

type eventsCmd struct {
	serverFlags `embed:""`
	Follow      bool     `help:"Go on with new events as they happen, until Ctrl-C or --limit." short:"f"`
	Types       []string `help:"Only events of these types, e.g. proposal.approved,proposal.rejected." placeholder:"TYPE"`
	Subject     string   `help:"Only events about this record, e.g. proposal:prop-01k5x8r2m4v7c9w3q6z1t0h8ye." placeholder:"KIND:ID"`
	After       *int64   `help:"Start after the event with this number." placeholder:"N"`
	Since       *string  `help:"Start at this time, or so long ago: 2026-03-02T10:00:00Z, 7d, now." placeholder:"TIME"`
	Tail        *int     `help:"Start with the last N events; 0: only new ones." placeholder:"N"`
	Limit       int      `help:"Stop after so many events." placeholder:"N"`
}

// Help is shown by --help.
func (eventsCmd) Help() string {
	return "Prints one line for each event, oldest first: time (UTC), number, type, subject, actor, and the title or " +
		"name of the record. With --json each line is the event as JSON.\n\n" +
		"Starts with the oldest event that is kept, unless --after, --since or --tail says where. To continue later, " +
		"give the last number that you saw as --after. You see the events whose records you may read; administrative " +
		"ones are for admins.\n\n" +
		"The types: https://github.com/parley-dev/parley/blob/main/docs/events.md\n\n" + examples(
		"parley events --since 1h",
		"parley events --follow --tail 10",
		"parley events --follow --tail 0 --types proposal.approved,proposal.rejected",
		"parley events --after 4711 --json | jq -r .subject",
		"parley events --subject proposal:prop-01k5x8r2m4v7c9w3q6z1t0h8ye",
		"parley events --follow --tail 0 --limit 1 --types task.failed && echo 'a task failed'",
	)
}

const (
	pageOfEvents = 100    // the largest page that the server returns
	maxTail      = 10_000 // events that --tail keeps in memory
)

func (c *eventsCmd) Run(e *env) error {
	o, err := c.options()
	if err != nil {
		return err
	}
	r, err := c.client(e)
	if err != nil {
		return err
	}
	printed := 0
	if c.Tail != nil && *c.Tail > 0 {
		last, err := c.printTail(e, r, o, &printed)
		if err != nil || printed == c.Limit && c.Limit > 0 {
			return err
		}
		o.After = &last
	}
	if c.Follow {
		return c.follow(e, r, o, printed)
	}
	return c.list(e, r, o, printed)
}

// options checks the flags, and says which events to get.
func (c *eventsCmd) options() (client.EventsOptions, error) {
	o := client.EventsOptions{After: c.After, FromNow: c.Tail != nil, Types: c.Types, Subject: c.Subject}
	starts := 0
	for _, given := range []bool{c.After != nil, c.Since != nil, c.Tail != nil} {
		if given {
			starts++
		}
	}
	switch {
	case starts > 1:
		return o, usage("give only one of --after, --since and --tail")
	case c.After != nil && *c.After < 0:
		return o, usage("--after must be 0 or more")
	case c.Tail != nil && (*c.Tail < 0 || *c.Tail > maxTail):
		return o, usage("--tail must be between 0 and %d", maxTail)
	case c.Limit < 0:
		return o, usage("--limit must be 1 or more")
	}
	if c.Since == nil {
		return o, nil
	}
	if o.FromNow = *c.Since == "now"; o.FromNow {
		return o, nil
	}
	var err error
	if o.Since, err = time.Parse(time.RFC3339, *c.Since); err == nil {
		return o, nil
	}
	ago, err := parseDuration(*c.Since)
	if err != nil || ago < 0 {
		return o, usage("--since is %q; give a time such as 2026-03-02T10:00:00Z, how long ago, such as 90m or 7d, or now",
			*c.Since)
	}
	o.Since = app.Now().Add(-ago)
	return o, nil
}

// list prints the events that are there. A page may be empty although more follow, if few events
// are selected, so the list ends when a page ends where it began.
func (c *eventsCmd) list(e *env, r *remote, o client.EventsOptions, printed int) error {
	for {
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
		end := o.After != nil && *o.After == page.LastSeq
		switch {
		case c.Limit > 0 && printed >= c.Limit:
			return nil
		case end && printed == 0 && !c.JSON:
			return e.say("no events")
		case end:
			return nil
		}
		o.After = &page.LastSeq
	}
}

// printTail prints the last events, and returns the number after which new ones follow. The filter
// may select few events, so it reads more and more of the log until it has enough.
func (c *eventsCmd) printTail(e *env, r *remote, o client.EventsOptions, printed *int) (last int64, err error) {
	end, err := r.Events(e.ctx, o)
	if err != nil {
		return 0, r.explain(e, aboutOrg, err)
	}
	var tail []client.OrgEvent
	for window := int64(*c.Tail); ; window *= 4 {
		o.After = nil
		if o.FromNow = false; window < end.LastSeq {
			from := end.LastSeq - window
			o.After = &from
		}
		var whole bool
		if tail, last, whole, err = c.readTail(e, r, o, end.LastSeq); err != nil {
			return 0, r.explain(e, aboutOrg, err)
		}
		if whole || len(tail) >= *c.Tail {
			break
		}
	}
	for i := range tail {
		if *printed == c.Limit && c.Limit > 0 {
			break
		}
		if err := c.print(e, &tail[i]); err != nil {
			return 0, err
		}
		*printed++
	}
	return last, nil
}

// readTail reads the log to its end, and returns its last events and number. whole reports that it
// began with the oldest event.
func (c *eventsCmd) readTail(
	e *env, r *remote, o client.EventsOptions, end int64,
) (tail []client.OrgEvent, last int64, whole bool, err error) {
	whole = o.After == nil
	o.Limit = pageOfEvents
	for {
		page, err := r.Events(e.ctx, o)
		if err != nil {
			return nil, 0, false, err
		}
		whole = whole || page.Reset
		tail = append(tail, page.Events...)
		tail = slices.Clone(tail[max(0, len(tail)-*c.Tail):])
		if page.LastSeq >= end || o.After != nil && *o.After == page.LastSeq {
			return tail, page.LastSeq, whole, nil
		}
		o.After = &page.LastSeq
	}
}

// follow prints events until there are enough of them, or the user ends the command.
func (c *eventsCmd) follow(e *env, r *remote, o client.EventsOptions, printed int) error {
	for event, err := range r.FollowEvents(e.ctx, o) {
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
