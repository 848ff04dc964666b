package web

import (
	"net/http"
	"strconv"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/followup"
	"github.com/parley-dev/parley/internal/identity"
)

func (p *Pages) mountFollowups() {
	p.orgPages(map[string]handler{
		"GET /followups":                                (*visit).followupsPage,
		"POST /followups":                               (*visit).createFollowup,
		"GET /followups/{id}":                           (*visit).followupPage,
		"POST /followups/{id}":                          (*visit).changeFollowup,
		"GET /followups/{id}/outputs/{artifact}/{part}": (*visit).outputFile,
	})
}

// pager has the links to the previous and the next page.
type pager struct{ Prev, Next, Text string }

// tab is a link to one of several lists of a page.
type tab struct {
	Name    string
	Href    string
	Count   int64
	Current bool
}

// followupsView is the page of the org's follow-ups: a page of one status, or the first ones of
// each status.
type followupsView struct {
	Tabs       []tab
	Whose      []tab
	Groups     []followupGroup
	Pager      pager
	First      string // first page, if this one is past the end
	Filtered   bool   // by assignee
	Status     followup.Status
	Mine       bool
	Assignees  []identity.Member
	AssignHere bool // the list of assignees is short enough for every row
	Manages    bool
	New        followup.Creation // values of the form for a new one
}

// followupGroup has follow-ups of one status.
type followupGroup struct {
	Status followup.Status
	Name   string
	Count  int64
	Rows   []followupRow
	More   string // list of all; empty if these are all
}

// followupRow is a follow-up with its actions.
type followupRow struct {
	followup.Followup
	Next     []followup.Status
	Live     bool // neither done nor canceled
	MayTake  bool // the member can take it
	TaskSays string
	Assigned *identity.Member // assignee, if not in the list of the row
}

// Limits: follow-ups per page of one status, per status in the overview, and assignees per row.
const (
	followupsPerPage = 50
	followupsBeside  = 10
	assigneesInRow   = 20
)

// followupsPage lists the org's follow-ups.
func (v *visit) followupsPage() error {
	return v.showFollowups(http.StatusOK, followup.Creation{}, nil)
}

// whose returns the filter by assignee: "me", "none" or a ref.
func (v *visit) whose() string {
	switch who := v.r.URL.Query().Get("who"); who {
	case "me":
		return v.member.Ref()
	default:
		return who
	}
}

func (v *visit) showFollowups(status int, typed followup.Creation, problem error) error {
	a, err := v.access(identity.ListFollowups)
	if err != nil {
		return err
	}
	form := v.r.URL.Query()
	view := followupsView{Status: followup.Status(form.Get("status")), New: typed, Filtered: v.whose() != ""}
	view.Mine = v.whose() == v.member.Ref()
	view.Manages = v.may(identity.CreateFollowup)
	if view.Assignees, err = v.assignees(); err != nil {
		return err
	}
	view.AssignHere = len(view.Assignees) <= assigneesInRow
	all := tab{Name: "All", Href: v.withQuery("status", ""), Current: view.Status == ""}
	view.Tabs = []tab{all}
	if view.Status != "" && followupWords[view.Status] == "" {
		return errs.InvalidFields(errs.Field{
			Path: errs.At("status"), Message: "must be one of open, in_progress, done, canceled",
		})
	}
	for _, s := range followup.Statuses {
		g, err := v.followupGroup(a, s, &view)
		if err != nil {
			return err
		}
		view.Tabs[0].Count += g.Count
		view.Tabs = append(view.Tabs, tab{
			Name: g.Name, Href: v.withQuery("status", string(s)), Count: g.Count, Current: view.Status == s,
		})
		if len(g.Rows) > 0 && (view.Status == "" || view.Status == s) {
			view.Groups = append(view.Groups, g)
		}
	}
	view.Whose = v.whoseTabs()
	return renderForm(v, status, "followups", "Follow-ups", view, problem)
}

// followupGroup returns the follow-ups of one status: a page if the status is selected, the first
// ones in the overview, and otherwise only their number.
func (v *visit) followupGroup(a identity.Access, s followup.Status, view *followupsView) (followupGroup, error) {
	q := followup.Query{Status: s, Assignee: v.whose(), Limit: 1}
	switch view.Status {
	case "":
		q.Limit = followupsBeside
	case s:
		q.Limit, q.Page = followupsPerPage, v.number("page")
	}
	list, total, err := v.Followups.List(v.r.Context(), a, &q)
	g := followupGroup{Status: s, Name: followupWords[s], Count: total}
	if err != nil {
		return g, err
	}
	for i := range list {
		row := v.followupRow(&list[i])
		row.Assigned = missingAssignee(row.Assignee, view.Assignees)
		g.Rows = append(g.Rows, row)
	}
	switch {
	case view.Status == s:
		view.Pager = v.pager(q.Page, q.Limit, len(list), total)
		if len(list) == 0 && total > 0 {
			view.First, view.Pager = v.withQuery("status", string(s)), pager{}
		}
	case total > int64(len(list)):
		g.More = v.withQuery("status", string(s))
	}
	return g, nil
}

func (v *visit) followupRow(f *followup.Followup) followupRow {
	row := followupRow{
		Followup: *f, TaskSays: workWords[f.TaskState], Live: f.Status == followup.Open || f.Status == followup.InProgress,
	}
	if f.TaskUID == "" {
		row.TaskSays = ""
	}
	if v.may(identity.ChangeFollowup) {
		row.Next = f.Status.Next()
		row.MayTake = f.Assignee == "" && row.Live
	}
	return row
}

// whoseTabs returns the tabs of the filter by assignee.
func (v *visit) whoseTabs() []tab {
	who := v.r.URL.Query().Get("who")
	tabs := []tab{
		{Name: "Everyone’s", Href: v.withQuery("who", ""), Current: who == ""},
		{Name: "Mine", Href: v.withQuery("who", "me"), Current: who == "me"},
		{Name: "Unassigned", Href: v.withQuery("who", followup.Unassigned), Current: who == followup.Unassigned},
	}
	if who != "" && who != "me" && who != followup.Unassigned {
		tabs = append(tabs, tab{Name: newWho(who).Name, Href: v.withQuery("who", who), Current: true})
	}
	return tabs
}

// assignees returns the principals to choose from: the member, the agents of the org and, for
// admins, who may read the list of members, everyone.
func (v *visit) assignees() ([]identity.Member, error) {
	ctx := v.r.Context()
	if v.may(identity.ReadMembers) {
		return v.choices(identity.MemberEnabled, identity.Agent, identity.User)
	}
	out := []identity.Member{*v.member}
	a, err := v.access(identity.ReadAgents)
	if err != nil {
		return out, nil //nolint:nilerr // only the member
	}
	agents, err := v.Agents.Visible(ctx, a)
	for i := range agents {
		if agents[i].Org == v.member.Org && len(out) < maxChoices {
			out = append(out, identity.Member{
				Principal: identity.Principal{Org: agents[i].Org, Kind: identity.Agent, ID: agents[i].ID}, Name: agents[i].Name,
			})
		}
	}
	return out, err
}

// choices returns principals to choose from, limited per kind, so that one kind does not crowd out
// another. state is a state of identity.MemberFilter.
func (v *visit) choices(state string, kinds ...identity.Kind) ([]identity.Member, error) {
	a, err := v.access(identity.ReadMembers)
	if err != nil {
		return nil, err
	}
	var out []identity.Member
	for _, kind := range kinds {
		list, err := v.OrgAdmin.Members(v.r.Context(), a, identity.MemberFilter{Kind: kind, State: state, Limit: maxChoices})
		if err != nil {
			return nil, err
		}
		out = append(out, list...)
	}
	return out, nil
}

// maxChoices limits the choices per kind. The REST API has no such limit.
const maxChoices = 500

// followupWords are the headings of the statuses.
var followupWords = map[followup.Status]string{
	followup.Open: "Open", followup.InProgress: "In progress", followup.Done: "Done", followup.Canceled: "Canceled",
}

// createFollowup creates a follow-up without a proposal.
func (v *visit) createFollowup() error {
	a, err := v.access(identity.CreateFollowup)
	if err != nil {
		return err
	}
	cmd := followup.Creation{Title: v.value("title"), Description: v.text("description"), Assignee: v.value("assignee")}
	if cmd.Once, err = v.once(); err != nil {
		return err
	}
	out, err := v.Followups.Create(v.r.Context(), a, cmd)
	if err != nil {
		return v.showFollowups(http.StatusOK, cmd, err)
	}
	return v.done(v.base()+"/followups/"+out.Followup.ID, "The follow-up was added.")
}

// withQuery returns this page with a changed parameter, from its start; an empty value removes it.
func (v *visit) withQuery(name, value string) string {
	q := v.r.URL.Query()
	q.Del("page")
	q.Del("cursor")
	if value == "" {
		q.Del(name)
	} else {
		q.Set(name, value)
	}
	if len(q) == 0 {
		return v.r.URL.Path
	}
	return v.r.URL.Path + "?" + q.Encode()
}

// pager returns the links of a list with page numbers.
func (v *visit) pager(number, limit, shown int, total int64) pager {
	p := pager{}
	if shown > 0 {
		first := int64(number-1)*int64(limit) + 1
		p.Text = count(first) + "–" + count(first+int64(shown)-1) + " of " + count(total)
	}
	if number > 1 {
		p.Prev = v.withPage(number - 1)
	}
	if int64(number)*int64(limit) < total {
		p.Next = v.withPage(number + 1)
	}
	return p
}

func (v *visit) withPage(n int) string {
	q := v.r.URL.Query()
	q.Set("page", strconv.Itoa(n))
	return v.r.URL.Path + "?" + q.Encode()
}
