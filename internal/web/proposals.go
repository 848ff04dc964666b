package web

import (
	"html/template"
	"net/http"
	"net/url"
	"slices"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
)

func (p *Pages) mountProposals() {
	p.orgPages(map[string]handler{
		"GET /proposals":            (*visit).proposalsPage,
		"GET /proposals/decide":     (*visit).bulkPage,
		"POST /proposals/decide":    (*visit).bulkDecide,
		"GET /proposals/decided":    (*visit).bulkReport,
		"GET /proposals/{id}/pane":  (*visit).panePage,
		"POST /proposals/{id}/vote": (*visit).vote,
	})
}

// proposalsPerPage is how many rows a page of the list has.
const proposalsPerPage = 50

// proposalsView is the list of the org's proposals.
type proposalsView struct {
	Query   proposal.Query
	Tabs    []tab
	Rows    template.HTML // one <li> for each proposal; see rowWriter
	Shown   int
	First   int64 // position of the first row
	Total   int64
	Pager   pager
	At      *pane // the proposal in the side pane
	Review  string
	Group   string // "submitter" or "fingerprint": groups are listed instead of proposals
	Groups  []groupRow
	By      []choice // how the list can be grouped
	Sorts   []choice
	Filters []filter  // those that are set, to be taken away one by one
	Form    []keptTab // what the filter form must carry along
	Clear   string    // the list without filters
	Oldest  string    // the list, oldest first
	Bulk    []verb    // what can be done to several rows
	Select  string    // the page with all rows chosen, or with none
	All     bool      // all rows are chosen
	Empty   *emptyList
	Bad     []string // what is wrong with the URL
	Restart string   // the first page of a list whose cursor is wrong
	Manages bool
}

// keptTab is a hidden field of the filter form.
type keptTab struct{ Name, Value string }

// choice is one of several ways to show the list.
type choice struct {
	Name, Value, Href string
	Current           bool
}

// filter is a filter that is set, and the list without it.
type filter struct{ Name, Value, Without string }

// emptyList is what stands in the place of rows.
type emptyList struct{ Title, Text, Link, LinkText string }

// listQuery reads the state of the list from a URL.
func listQuery(form url.Values) proposal.Query {
	return proposal.Query{
		Status: proposal.Status(form.Get("status")), Category: proposal.Category(form.Get("category")),
		Priority: proposal.Priority(form.Get("priority")), SubmittedBy: form.Get("submitted_by"),
		Kind: identity.Kind(form.Get("kind")), Evidence: proposal.Evidence(form.Get("evidence")),
		Fingerprint: form.Get("fingerprint"), Text: form.Get("q"), Sort: proposal.Sort(form.Get("sort")),
		Cursor: form.Get("cursor"), Limit: proposalsPerPage,
	}
}

// proposalsPage lists one page of the org's proposals.
func (v *visit) proposalsPage() error {
	a, err := v.access(identity.ListProposals)
	if err != nil {
		return err
	}
	form := v.r.URL.Query()
	view := proposalsView{Query: listQuery(form), Group: form.Get("group"), Manages: v.may(identity.SubmitProposal)}
	q := view.Query
	view.links(v)
	if view.Tabs, err = v.proposalTabs(a, q); err != nil {
		return v.badList(view, err)
	}
	if view.Group != "" {
		return v.proposalGroups(a, view)
	}
	page, err := v.Proposals.List(v.r.Context(), a, q)
	if err != nil {
		return v.badList(view, err)
	}
	if err := v.fillRows(&view, page, form); err != nil {
		return err
	}
	return render(v, http.StatusOK, "proposals", "Proposals", view)
}

// fillRows puts a page of the list into the view.
func (v *visit) fillRows(view *proposalsView, page proposal.Page, form url.Values) error {
	view.Shown, view.Total = len(page.Items), page.Total
	view.First = int64(page.Number-1)*int64(page.Limit) + 1
	view.Pager = v.listPager(page)
	if len(page.Items) == 0 {
		view.Empty = v.emptyProposals(view)
		return nil
	}
	view.All = form.Get("select") == "page"
	at := slices.IndexFunc(page.Items, func(it proposal.Item) bool { return it.ID == form.Get("at") })
	w := v.rowWriter(view, page.Items)
	for i := range page.Items {
		w.row(&page.Items[i], i == at)
	}
	view.Rows = w.html()
	view.Review = v.samePage("at", page.Items[0].ID)
	view.Select = v.samePage("select", map[bool]string{false: "page"}[view.All])
	if at < 0 {
		return nil
	}
	place := place{Position: view.First + int64(at), Total: page.Total, Back: v.afterRow(page, at)}
	var err error
	view.At, err = v.pane(page.Items[at].ID, place)
	if errs.KindOf(err) == errs.NotFound { // it was taken back a moment ago
		return nil
	}
	return err
}

// afterRow is where to go on when the row was decided: to the next one, and at the end of the
// page to the next page, or to the row before.
func (v *visit) afterRow(page proposal.Page, at int) string {
	q := v.r.URL.Query()
	switch {
	case at+1 < len(page.Items):
		q.Set("at", page.Items[at+1].ID)
	case page.Next != "":
		q.Set("cursor", page.Next)
		q.Del("at")
	case at > 0:
		q.Set("at", page.Items[at-1].ID)
	default:
		q.Del("at")
	}
	return v.r.URL.Path + "?" + q.Encode()
}

// badList shows the page of a list that the URL describes wrongly, with the way out.
func (v *visit) badList(view proposalsView, err error) error {
	e := errs.As(err)
	if e.Kind != errs.Invalid {
		return err
	}
	for _, f := range e.Fields {
		if f.Path.Head() == "cursor" {
			view.Bad, view.Restart = append(view.Bad, "This page does not belong to the list: its filters or its order changed."), v.listLink("at", "")
			continue
		}
		view.Bad = append(view.Bad, capital(badParts[f.Path.Head()])+" "+f.Message+".")
	}
	if len(view.Bad) == 0 {
		view.Bad = []string{sentence(err)}
	}
	return render(v, http.StatusUnprocessableEntity, "proposals", "Proposals", view)
}

// badParts are the parameters of the list as the page calls them.
var badParts = map[string]string{
	"q": "the search", "submitted_by": "the submitter", "submitted_by_kind": "people or agents",
	"status": "the status", "category": "the category", "priority": "the priority", "sort": "the order", "evidence": "the evidence",
	"fingerprint": "the friction", "limit": "the size of the page", "page": "the page", "by": "the group",
}

// listPager leads on by cursor. The way back is the browser's, or the first page.
func (v *visit) listPager(page proposal.Page) pager {
	var p pager
	if len(page.Items) > 0 {
		first := int64(page.Number-1)*int64(page.Limit) + 1
		p.Text = count(first) + "–" + count(first+int64(len(page.Items))-1) + " of " + count(page.Total)
	}
	if page.Number > 1 {
		p.Prev = v.listLink("at", "")
	}
	if page.Next != "" {
		q := v.r.URL.Query()
		q.Set("cursor", page.Next)
		q.Del("at")
		q.Del("select")
		p.Next = v.r.URL.Path + "?" + q.Encode()
	}
	return p
}
