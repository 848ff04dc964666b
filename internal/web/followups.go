package web

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/followup"
	"github.com/parley-dev/parley/internal/identity"
)

func (p *Pages) mountFollowups() {
	p.orgPages(map[string]handler{
		"GET /followups":       (*visit).followupsPage,
		"POST /followups":      (*visit).createFollowup,
		"POST /followups/{id}": (*visit).changeFollowup,
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

// followupsView is the page of the org's follow-ups.
type followupsView struct {
	Tabs      []tab
	Status    followup.Status
	Rows      []followupRow
	Pager     pager
	Mine      bool
	Toggle    string // the same list for everybody, or for the member
	Assignees []identity.Member
	MayAdd    bool
	New       followup.Creation // what was typed into the form for a new one
}

// followupRow is one follow-up with what can be done to it.
type followupRow struct {
	followup.Followup
	Next []followup.Status
}

const followupsPerPage = 50

// followupsPage lists one status of the org's follow-ups.
func (v *visit) followupsPage() error {
	return v.showFollowups(http.StatusOK, followup.Creation{}, nil)
}

func (v *visit) showFollowups(status int, typed followup.Creation, problem error) error {
	a, err := v.access(identity.ListFollowups)
	if err != nil {
		return err
	}
	ctx, form := v.r.Context(), v.r.URL.Query()
	q := followup.Query{Status: followup.Open, Limit: followupsPerPage, Page: pageOf(form)}
	if s := form.Get("status"); s != "" {
		q.Status = followup.Status(s)
	}
	view := followupsView{Status: q.Status, Mine: form.Get("mine") != "", New: typed}
	if view.Mine {
		q.Assignee = v.member.Ref()
	}
	list, total, err := v.Followups.List(ctx, a, &q)
	if err != nil {
		return err
	}
	for i := range list {
		row := followupRow{Followup: list[i]}
		if v.may(identity.ChangeFollowup) {
			row.Next = list[i].Status.Next()
		}
		view.Rows = append(view.Rows, row)
	}
	if view.Tabs, err = v.followupTabs(a, q); err != nil {
		return err
	}
	view.MayAdd = v.may(identity.CreateFollowup)
	if view.Assignees, err = v.assignees(); err != nil {
		return err
	}
	view.Toggle = v.withQuery("mine", map[bool]string{false: "yes", true: ""}[view.Mine])
	view.Pager = v.pager(q.Page, q.Limit, len(list), total)
	return renderForm(v, status, "followups", "Follow-ups", view, problem)
}

// assignees are those whom the member can assign a follow-up to by choosing: the member, the
// org's agents and, for admins, who may read the list, everybody.
func (v *visit) assignees() ([]identity.Member, error) {
	ctx := v.r.Context()
	if a, err := v.access(identity.ReadMembers); err == nil {
		all, err := v.Manager.Members(ctx, a, identity.MemberFilter{State: identity.MemberEnabled, Limit: maxAssignees})
		return slices.DeleteFunc(all, func(m identity.Member) bool { return !m.IsMember() }), err
	}
	out := []identity.Member{*v.member}
	a, err := v.access(identity.ReadAgents)
	if err != nil {
		return out, nil //nolint:nilerr // nobody but the member
	}
	agents, err := v.Agents.Visible(ctx, a)
	for i := range agents {
		if agents[i].Org == v.member.Org && len(out) < maxAssignees {
			out = append(out, identity.Member{
				Principal: identity.Principal{Org: agents[i].Org, Kind: identity.Agent, ID: agents[i].ID}, Name: agents[i].Name,
			})
		}
	}
	return out, err
}

// maxAssignees bounds the choice; others are assigned over REST.
const maxAssignees = 500

// followupTabs counts the follow-ups of each status.
func (v *visit) followupTabs(a identity.Access, q followup.Query) ([]tab, error) {
	var tabs []tab
	for _, s := range followup.Statuses {
		_, n, err := v.Followups.List(v.r.Context(), a, &followup.Query{Status: s, Assignee: q.Assignee, Limit: 1})
		if err != nil {
			return nil, err
		}
		tabs = append(tabs, tab{Name: followupWords[s], Href: v.withQuery("status", string(s)), Count: n, Current: q.Status == s})
	}
	return tabs, nil
}

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
	if _, err := v.Followups.Create(v.r.Context(), a, cmd); err != nil {
		return v.showFollowups(http.StatusOK, cmd, err)
	}
	return v.done(v.base()+"/followups", "The follow-up was added.")
}

// changeFollowup assigns one, or moves it to another status.
func (v *visit) changeFollowup() error {
	a, err := v.access(identity.ChangeFollowup)
	if err != nil {
		return err
	}
	var cmd followup.Edit
	if cmd.Once, err = v.once(); err != nil {
		return err
	}
	said := "The follow-up was changed."
	if s := followup.Status(v.value("status")); s != "" {
		cmd.Status = &s
		said = "The follow-up is now “" + followupWords[s] + "”."
	}
	if _, ok := v.r.PostForm["assignee"]; ok {
		to := v.value("assignee")
		cmd.Assignee = &to
		said = "The follow-up was assigned to " + newWho(to).Name + "."
		if to == "" {
			said = "The follow-up is assigned to nobody now."
		}
	}
	if cmd.Status == nil && cmd.Assignee == nil {
		return errs.New(errs.Invalid, "request.invalid", "choose a status or somebody to assign it to")
	}
	if _, err := v.Followups.Change(v.r.Context(), a, v.r.PathValue("id"), cmd); err != nil {
		return v.showFollowups(http.StatusOK, followup.Creation{}, err)
	}
	return v.back(v.base()+"/followups", said)
}

// pageOf is the page number in a URL; what is no number is the first page.
func pageOf(q url.Values) int {
	n, err := strconv.Atoi(q.Get("page"))
	if err != nil || n < 1 {
		return 1
	}
	return n
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
