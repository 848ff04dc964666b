package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// OrgEvent reports a change in the org, such as a new proposal. [Event], in contrast, reports a
// change of a task to its sender.
type OrgEvent struct {
	Seq     int64           `json:"seq"`     // position in the log of the org
	ID      string          `json:"id"`      // identifies the event everywhere
	Type    string          `json:"type"`    // such as proposal.submitted
	Time    time.Time       `json:"time"`    // when it happened
	Subject string          `json:"subject"` // kind and id of the record, such as proposal:prop-01k5…
	Actor   string          `json:"actor"`   // such as user:ada; system if Parley did it
	Version int             `json:"version"` // of the shape of Data
	Data    json.RawMessage `json:"data"`    // the record after the change, as the API shows it
}

// EventPage is a part of the log.
type EventPage struct {
	Events []OrgEvent `json:"events"` // oldest first
	// LastSeq is where to continue: all selected events up to this number are in the page. A page
	// can be empty before the end of the log if few events are selected.
	LastSeq int64 `json:"last_seq"`
	// Reset means that events after EventsOptions.After are no longer kept, and that the page begins
	// with the oldest event.
	Reset bool `json:"reset"`
}

// EventsOptions selects events. Zero fields do not filter.
type EventsOptions struct {
	// After is the number of the last known event. Without it, FromNow begins with the next event,
	// and Since with the first one at this time or later. Without any of them, the oldest comes first.
	After   *int64
	FromNow bool
	Since   time.Time

	Types   []string // such as proposal.submitted
	Subject string   // such as proposal:prop-01k5…
	// Limit is the size of a page, 50 if zero and 100 at most. FollowEvents ignores it.
	Limit int
	// Wait makes Events wait for an event, up to a minute, if there is none. FollowEvents ignores it.
	Wait time.Duration
}

// ErrEventsReset is returned by [Client.FollowEvents] when events after the last known one are no
// longer kept. The iterator continues with the oldest event.
var ErrEventsReset = errors.New("client: some events are no longer kept; continuing with the oldest one")

func (o EventsOptions) call() call {
	r := read("events")
	r.query = url.Values{}
	if o.After != nil {
		r.query.Set("after", strconv.FormatInt(*o.After, 10))
	}
	switch { // the server ignores it beside after
	case o.FromNow:
		r.query.Set("since", "now")
	case !o.Since.IsZero():
		r.query.Set("since", o.Since.UTC().Format(time.RFC3339Nano))
	}
	if len(o.Types) > 0 {
		r.query.Set("types", strings.Join(o.Types, ","))
	}
	if o.Subject != "" {
		r.query.Set("subject", o.Subject)
	}
	return r
}

// Events returns events of the org, oldest first. With FromNow it returns none unless it waits, and
// LastSeq is the end of the log. It needs the scope svc:tasks:read.
func (c *Client) Events(ctx context.Context, o EventsOptions, opts ...Option) (EventPage, error) {
	r := o.call()
	if o.Limit != 0 {
		r.query.Set("limit", strconv.Itoa(o.Limit))
	}
	if o.Wait > 0 {
		r.waits = min(o.Wait, time.Minute)
		r.set("Prefer", "wait="+strconv.Itoa(int((r.waits+time.Second-1)/time.Second)))
	}
	var page EventPage
	err := c.do(ctx, r, &page, opts)
	return page, err
}

// FollowEvents iterates over the events of the org, and then over new ones as they happen, until
// ctx ends. With FromNow it begins with what happens after the server has accepted the first
// connection. It survives broken connections and restarts of the server: each event
// comes once and in order. It yields [ErrEventsReset] when it cannot continue after the last event,
// and goes on; any other error, also that of ctx, is its last value. It needs the scope
// svc:tasks:read.
func (c *Client) FollowEvents(ctx context.Context, o EventsOptions, opts ...Option) iter.Seq2[OrgEvent, error] {
	return func(yield func(OrgEvent, error) bool) {
		f := eventFollower{c: c, options: o, opts: opts}
		f.yield = func(e OrgEvent, err error) bool {
			f.stopped = !yield(e, err)
			return !f.stopped
		}
		if o.After != nil {
			f.last = *o.After
		}
		if err := f.run(ctx); err != nil && !f.stopped {
			yield(OrgEvent{}, err)
		}
	}
}

// eventFollower follows the events of an org over as many connections as necessary.
type eventFollower struct {
	c       *Client
	options EventsOptions
	opts    []Option
	yield   func(OrgEvent, error) bool
	stopped bool // the caller has enough
	resumes bool // last is from the server
	last    int64
}

func (f *eventFollower) run(ctx context.Context) error {
	return f.c.reconnect(ctx, func() (end connectionEnd) {
		before, began := f.last, time.Now()
		r := f.options.call()
		if f.resumes {
			r.set("Last-Event-ID", strconv.FormatInt(f.last, 10))
		}
		end.wish, end.err = f.c.sse(ctx, r, f.opts, f.next)
		// An org may be silent for long. A connection that lasted was of use.
		end.worked, end.repeatable = f.last != before || time.Since(began) > f.c.retry.MaxWait, true
		return end
	})
}

// next handles one server-sent event, and reports whether to continue.
func (f *eventFollower) next(res *http.Response, e sseEvent) (bool, error) {
	if e.name == "error" {
		return false, f.refusal(res, e.data)
	}
	id, err := strconv.ParseInt(e.id, 10, 64)
	if err != nil {
		return true, nil //nolint:nilerr // not an event of the log
	}
	if e.name != "reset" && f.resumes && id <= f.last {
		return true, nil // it came before
	}
	f.last, f.resumes = id, true
	switch {
	case e.name == "reset":
		return f.yield(OrgEvent{}, ErrEventsReset), nil
	case e.data == nil:
		return true, nil
	}
	var event OrgEvent
	if err := json.Unmarshal(e.data, &event); err != nil {
		return false, fmt.Errorf("unexpected event in the stream: %w", err)
	}
	return f.yield(event, nil), nil
}

// refusal reads the error that ends a stream. After an error of the server the client connects again,
// as after a lost connection; a client with tokens also does so with a new one.
func (f *eventFollower) refusal(res *http.Response, data []byte) error {
	e := newError(res, data)
	var problem struct {
		Status int `json:"status"`
	}
	if json.Unmarshal(data, &problem) == nil && problem.Status != 0 {
		e.Status = problem.Status
	}
	if e.Status >= 500 || e.Status == http.StatusUnauthorized && f.c.tokens != nil {
		return &ConnectionError{Server: f.c.base, Err: errors.New(e.Error())} // not final, unlike a refusal
	}
	return e
}
