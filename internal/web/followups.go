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

// pager leads to the pages before and after the one that is shown.
type pager struct{ Prev, Next, Text string }

// tab is one of several lists of a page.
type tab struct {
	Name    string
	Href    string
	Count   int64
	Current bool
}

// followupsView is the page of the org's follow-ups: one status of them page by page, or the
// first of each.
type followupsView struct {
	Tabs       []tab
	Whose      []tab
	Groups     []followupGroup
	Pager      pager
	First      string // the first page, if this one is behind the last
	Filtered   bool   // by assignee
	Status     followup.Status
	Mine       bool
	Assignees  []identity.Member
	AssignHere bool // the list of assignees is short enough to stand in every row
	Manages    bool
	New        followup.Creation // what was typed into the form for a new one
}

// followupGroup is some follow-ups of one status.
type followupGroup struct {
	Status followup.Status
	Name   string
	Count  int64
	Rows   []followupRow
	More   string // the list of all of them; empty: these are all
}

// followupRow is one follow-up with what can be done to it.
type followupRow struct {
	followup.Followup
	Next     []followup.Status
	Live     bool // it is neither done nor canceled
	MayTake  bool // the member can assign it to itself at once
	TaskSays string
	Assigned *identity.Member // who has it, if not among the assignees that the row offers
}

// How many follow-ups are shown: on a page of one status, of each status beside others, and
// how many assignees a row offers.
const (
	followupsPerPage = 50
	followupsBeside  = 10
	assigneesInRow   = 20
)

// followupsPage lists the org's follow-ups.
func (v *visit) followupsPage() error {
	return v.showFollowups(http.StatusOK, followup.Creation{}, nil)
}

// whose reads the filter by assignee: "me", "none" or a ref.
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

// followupGroup reads the follow-ups of one status: a page of them if it is the one that is
// shown, the first ones if all statuses are, and else only their number.
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

// whoseTabs are the filters by assignee.
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

// assignees are those whom the member can assign a follow-up to by choosing: the member, the
// org's agents and, for admins, who may read the list, everybody.
func (v *visit) assignees() ([]identity.Member, error) {
	ctx := v.r.Context()
	if v.may(identity.ReadMembers) {
		return v.choices(identity.MemberEnabled, identity.Agent, identity.User)
	}
	out := []identity.Member{*v.member}
	a, err := v.access(identity.ReadAgents)
	if err != nil {
		return out, nil //nolint:nilerr // nobody but the member
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

// choices are principals to choose from, a bounded number of each kind: many of one kind do not
// crowd out another. State is one of identity.MemberFilter.
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

// maxChoices bounds how many of each kind a picker offers. REST takes all of them.
const maxChoices = 500

// followupWords are the statuses as headings.
var followupWords = map[followup.Status]string{
	followup.Open: "Open", followup.InProgress: "In progress", followup.Done: "Done", followup.Canceled: "Canceled",
}

// createFollowup adds one by hand.
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

// withQuery is this page with one parameter changed; an empty value removes it. Paging starts over.
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

// pager makes the links of a numbered list.
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
