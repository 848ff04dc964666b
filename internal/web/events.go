package web

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/event"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/text"
	"github.com/parley-dev/parley/internal/webhook"
)

func (p *Pages) mountEvents() {
	p.orgPages(map[string]handler{"GET /events": (*visit).eventsPage})
}

// eventsView is the page of the org's events.
type eventsView struct {
	Type, Subject string // filters

	Groups   []typeChoice
	Rows     []eventRow
	Pager    cursorLinks
	Filtered bool
	Clear    string
	Live     bool // the newest events, which follow the log
}

// typeChoice is a group of types in the filter.
type typeChoice struct {
	typeGroup
	Sets []choice // several of the types
}

// eventRow is an event in one line.
type eventRow struct {
	event.Event
	Line      string
	Page      string // page of its subject; empty if it has none
	ByType    string
	BySubject string
	JSON      string
	Cut       bool // the data goes on
}

// groupSuffix follows the kind of a subject in a filter that selects all types about it.
const groupSuffix = ".*"

// decidedFilter selects the decisions about proposals.
const decidedFilter = "proposal.decided"

// eventsPage lists the events that the member may see, newest first.
func (v *visit) eventsPage() error {
	a, err := v.access(identity.ReadEvents)
	if err != nil {
		return err
	}
	q := v.r.URL.Query()
	out := eventsView{
		Type: q.Get("type"), Subject: strings.TrimSpace(q.Get("subject")), Clear: v.base() + "/events",
		Live: q.Get("cursor") == "",
	}
	out.Filtered = out.Type != "" || out.Subject != ""
	r := event.Request{Subject: out.Subject, Types: typesIn(out.Type)}
	out.Groups = typeChoices(out.Type)
	before, err := eventCursor(q.Get("cursor"))
	var page event.BackPage
	if err == nil {
		page, err = v.Events.ListBack(v.r.Context(), a, r, before)
	}
	switch {
	case err != nil && errs.KindOf(err) == errs.Invalid:
		return renderForm(v, http.StatusOK, "events", "Events", out, onField(err, "types", "type"))
	case err != nil:
		return err
	}
	next := ""
	if page.More() {
		next = strconv.FormatInt(page.First, 10)
	}
	out.Pager = v.cursorPager(next)
	for i := range page.Events {
		out.Rows = append(out.Rows, v.eventRow(&page.Events[i]))
	}
	return render(v, http.StatusOK, "events", "Events", out)
}

// onField moves the errors of a field of the service to a field of the form.
func onField(err error, from, to string) error {
	fields := slices.Clone(errs.As(err).Fields)
	for i := range fields {
		if fields[i].Path.Head() == from {
			fields[i].Path = errs.At(to)
		}
	}
	return errs.InvalidFields(fields...)
}

// eventCursor parses the number that the page starts before.
func eventCursor(s string) (int64, error) {
	if s == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n <= 0 {
		return 0, fieldError("cursor", "is not a cursor of this list; open the list again")
	}
	return n, nil
}

// typesIn returns the types that a filter selects: one, all about a kind of record, or the decisions.
// The service refuses unknown ones.
func typesIn(filter string) []event.Type {
	about, group := strings.CutSuffix(filter, groupSuffix)
	switch {
	case filter == "":
		return nil
	case filter == decidedFilter:
		return []event.Type{event.ProposalApproved, event.ProposalRejected}
	case !group || !slices.Contains(event.Subjects, about):
		return []event.Type{event.Type(filter)}
	}
	var out []event.Type
	for _, k := range event.Kinds {
		if k.About == about {
			out = append(out, k.Type)
		}
	}
	return out
}

func typeChoices(filter string) []typeChoice {
	groups := typeGroups([]event.Type{event.Type(filter)})
	out := make([]typeChoice, len(groups))
	for i, g := range groups {
		all := g.About + groupSuffix
		out[i] = typeChoice{typeGroup: g, Sets: []choice{{Name: "all", Value: all, Current: filter == all}}}
		if g.About == "proposal" {
			out[i].Sets = append(out[i].Sets, choice{Name: "decided", Value: decidedFilter, Current: filter == decidedFilter})
		}
	}
	return out
}

func (v *visit) eventRow(e *event.Event) eventRow {
	out := eventRow{
		Event: *e, Line: webhook.Say(e), ByType: link(v.base()+"/events", "type", string(e.Type)),
		BySubject: link(v.base()+"/events", "subject", e.Subject),
	}
	out.Page = v.eventSubject(e)
	out.JSON, out.Cut = plainJSON(e.Data)
	return out
}

// eventSubject returns the page of the record that an event is about; "" if it has none. Members who
// are no admins see only events of tasks that they sent, and have a page of their own for these.
func (v *visit) eventSubject(e *event.Event) string {
	if uid, isTask := strings.CutPrefix(e.Subject, "task:"); isTask {
		var sent struct{ ID, Agent string }
		switch err := json.Unmarshal(e.Data, &sent); {
		case v.may(identity.ReadTasks):
			return v.orgTaskPath(uid)
		case err == nil && sent.ID != "" && sent.Agent != "":
			return v.taskPath(sent.Agent, sent.ID)
		}
	}
	if page := webhook.Page(e); page != "" {
		return v.base() + page
	}
	return ""
}

// maxEventJSON limits the data that the feed shows of an event, in characters.
const maxEventJSON = 2000

// plainJSON formats JSON with one member per line, bounded and with all characters visible.
func plainJSON(data json.RawMessage) (out string, cut bool) {
	var indented bytes.Buffer
	if json.Indent(&indented, data, "", "  ") != nil {
		indented.Reset()
		indented.Write(data)
	}
	return text.Escape(indented.String(), maxEventJSON, text.InJSON)
}
