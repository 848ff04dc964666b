package rest

import (
	stdjson "encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/parley-dev/parley/internal/event"
	"github.com/parley-dev/parley/internal/wire"
)

// Event is an entry of the org's log.
type Event struct {
	Seq     int64     `json:"seq" doc:"Position in the org's log: 1, 2, 3, …" example:"1843"`
	ID      string    `json:"id" doc:"Identifies the event everywhere." example:"evt-4q7c2mzk3hfa6yxw5r9tbn8d1e"`
	Type    string    `json:"type" doc:"What happened." example:"proposal.submitted"`
	Time    string    `json:"time" format:"date-time" doc:"When it happened."`
	Subject string    `json:"subject" doc:"Kind and id of the record."`
	Actor   string    `json:"actor" doc:"Who did it; system if Parley did." example:"user:ada"`
	Version int       `json:"version" doc:"Version of the shape of data." example:"1"`
	Data    eventData `json:"data" doc:"The record after the change, as this API shows it."`
}

type eventData stdjson.RawMessage

func (eventData) Schema(huma.Registry) *huma.Schema { return anyObject("") }

// TransformSchema adds the table of types.
func (Event) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	var table strings.Builder
	table.WriteString("What happened.\n")
	types := make([]event.Type, len(event.Kinds))
	for i, k := range event.Kinds {
		types[i] = k.Type
		fmt.Fprintf(&table, "\n- `%s`: %s", k.Type, k.Text)
	}
	property(s, "type", oneOf(types), describedAs(table.String()))
	property(s, "subject", exampleOf("proposal:"+exampleProposalID))
	return s
}

// EventPage is a part of the org's log.
type EventPage struct {
	Events  []Event `json:"events" nullable:"false" doc:"Events, oldest first; may be empty before the end of the log."`
	LastSeq int64   `json:"last_seq" doc:"Continue with after = this number." example:"1843"`
	Reset   bool    `json:"reset,omitempty" doc:"true if events after the given number are gone; begins with the oldest."`
}

// eventsSize estimates the bytes of an encoded page.
func eventsSize(p *event.Page) int64 {
	n := 64
	for i := range p.Events {
		n += 250 + len(p.Events[i].Subject) + len(p.Events[i].Actor) + len(p.Events[i].Data)
	}
	return int64(n)
}

// shownEvents is a page that is shown as an EventPage. It encodes itself, because the data of events is
// encoded already.
type shownEvents struct{ page *event.Page }

// AppendJSON implements httpx.Appender.
func (s shownEvents) AppendJSON(b []byte) []byte {
	p := s.page
	b = append(slices.Grow(b, int(eventsSize(p))), `{"events":[`...)
	for i := range p.Events {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendEvent(b, &p.Events[i])
	}
	b = append(b, `],"last_seq":`...)
	b = strconv.AppendInt(b, p.Last, 10)
	if p.Missed {
		b = append(b, `,"reset":true`...)
	}
	return append(b, '}')
}

// appendEvent encodes an Event, on one line.
func appendEvent(b []byte, e *event.Event) []byte {
	b = append(b, `{"seq":`...)
	b = strconv.AppendInt(b, e.Seq, 10)
	b = append(b, `,"id":`...)
	b = wire.AppendString(b, e.ID)
	b = append(b, `,"type":`...)
	b = wire.AppendString(b, string(e.Type))
	b = append(b, `,"time":`...)
	b = wire.AppendTime(b, e.At)
	b = append(b, `,"subject":`...)
	b = wire.AppendString(b, e.Subject)
	b = append(b, `,"actor":`...)
	b = wire.AppendString(b, e.Actor)
	b = append(b, `,"version":`...)
	b = strconv.AppendInt(b, int64(e.Version), 10)
	b = append(b, `,"data":`...)
	b = append(b, e.Data...)
	return append(b, '}')
}
