package mcp

import (
	"context"
	"encoding/json"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/event"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/identity"
)

type eventsIn struct {
	After   *int64   `json:"after,omitempty" jsonschema:"The last_seq that you got before. Leave it out at first."`
	Since   *string  `json:"since,omitempty" jsonschema:"Without after: start at this time, or with the next event (now)."`
	Types   []string `json:"types,omitempty" jsonschema:"Only events of these types, such as proposal.approved."`
	Subject *string  `json:"subject,omitempty" jsonschema:"Only events about this record, such as proposal:prop-01k5…"`
	Limit   *int     `json:"limit,omitempty" jsonschema:"Events in a response."`
}

// eventOut is an event as in the REST API.
type eventOut struct {
	Seq     int64  `json:"seq" jsonschema:"Position in the log of your org."`
	ID      string `json:"id"`
	Type    string `json:"type"`
	Time    string `json:"time"`
	Subject string `json:"subject" jsonschema:"The record, as kind:id."`
	Actor   string `json:"actor" jsonschema:"Who did it, such as user:ada; system for Parley itself."`
	Version int    `json:"version" jsonschema:"Version of the shape of data."`
	Data    any    `json:"data" jsonschema:"The record after the change."`
}

type eventsOut struct {
	Events  []eventOut `json:"events"`
	LastSeq int64      `json:"last_seq" jsonschema:"Pass it as after in the next call."`
	More    bool       `json:"more" jsonschema:"Whether the log goes on: call again at once."`
	Reset   bool       `json:"reset" jsonschema:"You may have missed events: those after your number were deleted."`
}

func newEventsOut(p *event.Page) *eventsOut {
	out := &eventsOut{Events: make([]eventOut, len(p.Events)), LastSeq: p.Last, More: p.Last < p.Head, Reset: p.Missed}
	for i := range p.Events {
		e := &p.Events[i]
		out.Events[i] = eventOut{
			Seq: e.Seq, ID: e.ID, Type: string(e.Type), Time: stamp(e.At), Subject: e.Subject, Actor: e.Actor,
			Version: e.Version, Data: e.Data,
		}
	}
	return out
}

func (s *server) addEvents(m *sdk.Server) {
	add(s, m, tool{
		name: "list_events", title: "List events", action: identity.ReadEvents,
		effect: effect{readOnly: true, idempotent: true},
		description: "Lists what happened in your org, oldest first: proposals, votes, decisions, follow-ups, friction, " +
			"agents and the tasks that you sent; administrative events only for admins. " +
			"Keep last_seq and pass it as after in the next call: then you get only what is new, and miss nothing. " +
			"Without after, the list starts with the oldest event that is kept, or with since: a time such as " +
			"2026-03-02T10:00:00Z, or now, which returns no events but the last_seq to continue with. Changes nothing. " +
			"Needs the scope svc:tasks:read.",
		limits: func(s *jsonschema.Schema) {
			zero, most := 0.0, len(event.Kinds)
			s.Properties["after"].Minimum = &zero
			types := s.Properties["types"]
			types.MaxItems = &most
			for _, k := range event.Kinds {
				types.Items.Enum = append(types.Items.Enum, string(k.Type))
			}
			between(s, "limit", 1, event.MaxLimit)
			byDefault(s, "limit", "50")
		},
	}, s.listEvents)
	m.AddResource(eventsResource, s.readEvents)
}

func (s *server) listEvents(ctx context.Context, a *arguments[eventsIn]) (*eventsOut, error) {
	a.notEmpty("since", a.in.Since)
	a.notEmpty("subject", a.in.Subject)
	if a.in.Limit != nil && *a.in.Limit < 1 {
		*a.in.Limit = -1 // which the domain refuses; 0 would be its default
	}
	if len(a.in.Types) > len(event.Kinds) {
		a.broken = append(a.broken, errs.NewField("types", "contains types more than once"))
	}
	if err := a.check(nil); err != nil {
		return nil, err
	}
	req := event.Request{Subject: deref(a.in.Subject), Limit: deref(a.in.Limit)}
	if err := req.StartAt(a.in.After, deref(a.in.Since)); err != nil {
		return nil, err
	}
	for _, t := range a.in.Types {
		req.Types = append(req.Types, event.Type(t))
	}
	page, err := s.Events.List(ctx, a.access, req)
	if err != nil {
		return nil, err
	}
	return newEventsOut(&page), nil
}

// eventsURI identifies the resource with the newest events.
const eventsURI = "parley://events"

var eventsResource = &sdk.Resource{
	URI: eventsURI, Name: "events", Title: "Newest events", MIMEType: "application/json",
	Description: "The newest events of your org that you may see, oldest first, as list_events returns them. " +
		"Pass last_seq to list_events as after to get what comes next.",
}

// Bounds of the resource.
const (
	newestEvents = 50   // that it contains
	newestWindow = 2000 // numbers at the end of the log in which they are searched
)

func (s *server) readEvents(ctx context.Context, _ *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
	a, err := authorize(httpx.CallerOf(ctx), identity.ReadEvents)
	if err != nil {
		return nil, protocolError(ctx, err)
	}
	page, err := s.newest(ctx, a)
	if err != nil {
		return nil, protocolError(ctx, err)
	}
	text, err := json.Marshal(newEventsOut(&page))
	if err != nil {
		return nil, protocolError(ctx, err)
	}
	return &sdk.ReadResourceResult{
		// What a caller sees depends on its rights, so a shared cache must not keep it.
		Cacheable: sdk.Cacheable{CacheScope: "private"},
		Contents: []*sdk.ResourceContents{{
			URI: eventsURI, MIMEType: eventsResource.MIMEType, Text: string(text),
		}},
	}, nil
}

// newest returns the newest events that the caller sees. Numbers of events that it does not see
// are skipped, so the part of the log that is read grows until it contains enough of them.
func (s *server) newest(ctx context.Context, a identity.Access) (event.Page, error) {
	head, err := s.Events.Head(ctx, a)
	if err != nil {
		return event.Page{}, err
	}
	for window := int64(newestEvents); ; window = min(4*window, newestWindow) {
		out, err := s.tail(ctx, a, max(head-window, 0))
		whole := window >= newestWindow || head-window < out.Kept
		if err != nil || whole || len(out.Events) >= newestEvents {
			return out, err
		}
	}
}

// tail returns the last events after a number, as one page that ends with the log.
func (s *server) tail(ctx context.Context, a identity.Access, after int64) (event.Page, error) {
	var events []event.Event
	for {
		page, err := s.Events.List(ctx, a, event.Request{After: after, Limit: event.MaxLimit})
		if err != nil {
			return page, err
		}
		events = append(events, page.Events...)
		events = events[max(0, len(events)-newestEvents):]
		if page.Last >= page.Head {
			page.Events, page.Missed = events, false
			return page, nil
		}
		after = page.Last
	}
}

// protocolError is the error of a request that has no tool errors. Its data is for programs.
func protocolError(ctx context.Context, err error) error {
	p := httpx.NewProblem(ctx, err) // also records server errors for the log
	code := jsonrpc.CodeInvalidParams
	if p.Status >= 500 {
		code = jsonrpc.CodeInternalError
	}
	data, _ := json.Marshal(map[string]string{"code": p.Code, "scope": p.Scope}) // strings only
	return &jsonrpc.Error{Code: int64(code), Message: p.Detail, Data: data}
}
