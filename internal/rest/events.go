package rest

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/parley-dev/parley/internal/event"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/identity"
)

const eventsPath = "/api/v1/orgs/{org}/events"

func (a *api) registerEvents() {
	register(a, operation{
		id: "list-events", method: http.MethodGet, path: eventsPath, tag: tagEvents,
		summary: "List or follow events", action: identity.ReadEvents,
		description: "What happened in the org, oldest first. Ask again with `after` = `last_seq` to continue; no event is " +
			"missed and none comes twice. An admin sees all events; other callers see what they may read. With `Accept: " +
			"text/event-stream` the response is a stream of server-sent events that does not end: `id` is the number, " +
			"`event` the type and `data` the event. If the events after the given number are not in the log, the response " +
			"has `reset` (a stream sends the event `reset`) and continues with the oldest. `since=now` starts at the end " +
			"of the log. Requires svc:tasks:read.",
	}, a.listEvents)
	// The response is written by hand, so its schema is set by hand.
	ok := a.huma.OpenAPI().Paths[eventsPath].Get.Responses["200"]
	ok.Description = "Events, or a stream of events."
	ok.Content = map[string]*huma.MediaType{
		"application/json":  {Schema: schemaOf[EventPage](a)},
		"text/event-stream": {Schema: &huma.Schema{Type: huma.TypeString}},
	}
	ok.Headers = map[string]*huma.Param{preferenceApplied: {
		Description: "The honored wait, such as wait=30.", Schema: &huma.Schema{Type: huma.TypeString},
	}}
}

const preferenceApplied = "Preference-Applied"

type listEventsInput struct {
	OrgPath
	After       eventNumber  `query:"after" doc:"Number of the last event you saw. Without it the oldest comes first."`
	Since       eventSince   `query:"since" doc:"Start at this time; now: with the next event. Ignored if after is given."`
	Types       eventTypes   `query:"types" doc:"Filter by types, separated by commas." example:"proposal.submitted,proposal.voted"`
	Subject     eventSubject `query:"subject" doc:"Filter by the record that events are about."`
	Limit       eventLimit   `query:"limit" doc:"Page size. A stream ignores it."`
	LastEventID string       `header:"Last-Event-ID" doc:"Number of the last known event, for a stream; replaces after." example:"1842"`
	Prefer      string       `header:"Prefer" doc:"wait=30 waits so many seconds, up to 60, while there is no event." example:"wait=30"`
}

type (
	eventNumber  int64
	eventSince   string
	eventTypes   string
	eventSubject string
	eventLimit   int
)

// maxEventNumber is the largest integer that every JSON decoder reads exactly.
const maxEventNumber = 1<<53 - 1

func (eventNumber) Schema(huma.Registry) *huma.Schema {
	s := integer(0, maxEventNumber, 0)
	s.Default, s.Examples = nil, []any{1842}
	return s
}

// sincePattern is that of a time or event.SinceNow. Generators of clients make a plain string of it, which
// they cannot of an alternative.
const sincePattern = "^(" + event.SinceNow + "|[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])" +
	"T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9]))$"

func (eventSince) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Pattern: sincePattern, Examples: []any{event.SinceNow}}
}

// maxTypes is enough for all types.
const maxTypes = 2000

func (eventTypes) Schema(huma.Registry) *huma.Schema {
	names := make([]string, len(event.Kinds))
	for i, k := range event.Kinds {
		names[i] = regexp.QuoteMeta(string(k.Type))
	}
	one := "(" + strings.Join(names, "|") + ")"
	return stringSchema(length(1, maxTypes), matching("^"+one+"(,"+one+")*$"))
}

func (eventSubject) Schema(huma.Registry) *huma.Schema {
	return stringSchema(length(3, event.MaxSubject), matching("^("+strings.Join(event.Subjects, "|")+"):[^\\x00]+$"),
		exampleOf("proposal:"+exampleProposalID))
}

func (eventLimit) Schema(huma.Registry) *huma.Schema {
	return integer(1, event.MaxLimit, event.DefaultLimit)
}

// request converts the parameters. The header Last-Event-ID belongs to streams: a browser repeats the
// request with it.
func (in *listEventsInput) request(given url.Values, stream bool) (event.Request, error) {
	r := event.Request{Subject: string(in.Subject), Limit: int(in.Limit)}
	var after *int64
	if given.Has("after") {
		after = (*int64)(&in.After)
	}
	if err := r.StartAt(after, string(in.Since)); err != nil {
		return r, httpx.InQuery(err)
	}
	if in.Types != "" {
		for name := range strings.SplitSeq(string(in.Types), ",") {
			r.Types = append(r.Types, event.Type(name))
		}
	}
	if stream && in.LastEventID != "" {
		n, err := strconv.ParseInt(in.LastEventID, 10, 64)
		if err != nil || n < 0 || n > maxEventNumber {
			return r, httpx.InvalidParts(httpx.Part{
				In: httpx.Header, Name: "Last-Event-ID", Message: "must be the number of an event, as in the id of an earlier one",
			})
		}
		r.Start, r.After = event.AfterNumber, n
	}
	return r, nil
}

// eventsOutput is a page. The body of a stream writes itself.
type eventsOutput struct {
	Body func(huma.Context)
	size int64
}

func (o *eventsOutput) weight() int64 { return o.size }

func (a *api) listEvents(ctx context.Context, c *call, in *listEventsInput) (*eventsOutput, error) {
	stream := c.request.Method == http.MethodGet && wantsStream(c.accept)
	r, err := in.request(c.request.URL.Query(), stream)
	if err != nil {
		return nil, err
	}
	if stream {
		if err := a.router.Park(ctx, httpx.Stream); err != nil {
			return nil, err
		}
		return &eventsOutput{Body: func(huma.Context) {
			a.router.Stream(c.request, func() { a.streamEvents(ctx, c, &r) })
		}}, nil
	}
	page, err := a.events.List(ctx, c.Access, r)
	if err != nil {
		return nil, err
	}
	wait := httpx.PreferredWait(c.request.Header["Prefer"])
	if wait > 0 && len(page.Events) == 0 && !page.Missed {
		if page, err = a.awaitEvents(ctx, c, r, page.Last, wait); err != nil {
			return nil, err
		}
	}
	return &eventsOutput{size: eventsSize(&page), Body: func(huma.Context) { writeEvents(c.response, &page, wait) }}, nil
}

// awaitEvents waits until there are events. The caller sees none up to the number last.
func (a *api) awaitEvents(
	ctx context.Context, c *call, r event.Request, last int64, wait time.Duration,
) (event.Page, error) {
	if err := a.router.Park(ctx, httpx.Wait); err != nil {
		return event.Page{}, err
	}
	httpx.AllowWait(c.response, wait)
	a.router.Yield(ctx)
	allowed, stop := a.router.WhileAllowed(ctx, c.request, func(_ context.Context, caller *identity.Caller) error {
		_, err := identity.Authorize(caller, c.Org(), identity.ReadEvents)
		return err
	})
	defer stop()
	later := r
	later.Start, later.After = event.AfterNumber, last
	page, err := a.events.Wait(allowed, c.Access, later, wait)
	if cause := context.Cause(allowed); cause != nil && ctx.Err() == nil {
		return page, cause
	}
	if err != nil || len(page.Events) == 0 {
		return page, err
	}
	// The caller may have lost rights just now.
	now, err := a.readsEvents(ctx, c)
	if err != nil || now.Has(identity.Admin) == c.Has(identity.Admin) {
		return page, err
	}
	if r.Start == event.FromNow {
		return a.events.List(ctx, now, later)
	}
	return a.events.List(ctx, now, r) // from the start: it may also see more now
}

// readsEvents authenticates the caller of a long request again.
func (a *api) readsEvents(ctx context.Context, c *call) (identity.Access, error) {
	caller, err := a.router.Recheck(ctx, c.request)
	if err != nil {
		return identity.Access{}, err
	}
	return identity.Authorize(caller, c.Org(), identity.ReadEvents)
}

// writeEvents sends a page.
func writeEvents(w http.ResponseWriter, p *event.Page, wait time.Duration) {
	_ = httpx.Encode(shownEvents{p}, func(body []byte) error {
		h := w.Header()
		h["Content-Type"] = []string{"application/json"}
		h["Content-Length"] = []string{strconv.Itoa(len(body))}
		h.Add("Vary", "Accept")
		if wait > 0 {
			h[preferenceApplied] = []string{httpx.WaitApplied(wait)}
		}
		_, err := w.Write(body)
		return err
	}) // an error means that the client is gone
}
