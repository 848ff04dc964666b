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

// proposalsPerPage is the page size of the list.
const proposalsPerPage = 50

// proposalsView is the list of the org's proposals.
type proposalsView struct {
	Query   proposal.Query
	Tabs    []tab
	Rows    template.HTML // one <li> per proposal; see rowWriter
	Shown   int
	First   int64 // position of the first row
	Total   int64
	Partial bool // the search has not covered all proposals
	Pager   pager
	At      *pane // proposal in the side pane
	Review  string
	Group   string // "submitter" or "fingerprint": groups are listed instead of proposals
	Groups  []groupRow
	By      []choice // ways to group the list
	Sorts   []choice
	Filters []filter  // active filters, with links to remove them
	Form    []keptTab // hidden fields of the filter form
	Clear   string    // list without filters
	Oldest  string    // list sorted oldest first
	Bulk    []verb    // bulk actions
	Select  string    // page with all rows selected, or with none
	All     bool      // all rows are selected
	Empty   *emptyList
	Bad     []string // errors of the URL
	Restart string   // first page, if the cursor is invalid
	Manages bool
}

// keptTab is a hidden field of the filter form.
type keptTab struct{ Name, Value string }

// choice is one of several ways to show the list.
type choice struct {
	Name, Value, Href string
	Current           bool
}

// filter is an active filter with a link to the list without it.
type filter struct{ Name, Value, Without string }

// emptyList is shown instead of rows.
type emptyList struct{ Title, Text, Link, LinkText string }

// listQuery returns the query of a URL.
func listQuery(form url.Values) proposal.Query {
	return proposal.Query{
		Status: proposal.Status(form.Get("status")), Category: proposal.Category(form.Get("category")),
		Priority: proposal.Priority(form.Get("priority")), SubmittedBy: form.Get("submitted_by"),
		Kind: identity.Kind(form.Get("kind")), Evidence: proposal.Evidence(form.Get("evidence")),
		Fingerprint: form.Get("fingerprint"), Text: form.Get("q"), Sort: proposal.Sort(form.Get("sort")),
		Cursor: form.Get("cursor"), Limit: proposalsPerPage,
	}
}

// proposalsPage shows a page of the org's proposals.
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

// fillRows adds a page of the list to the view.
func (v *visit) fillRows(view *proposalsView, page proposal.Page, form url.Values) error {
	view.Shown, view.Total, view.Partial = len(page.Items), page.Total, !page.Complete
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
	if errs.KindOf(err) == errs.NotFound { // it was deleted meanwhile
		return nil
	}
	return err
}

// afterRow returns the URL to open after the row was decided: the next row and, at the end of the
// page, the next page or the previous row.
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

// badList shows the page for an invalid URL, with links to continue.
func (v *visit) badList(view proposalsView, err error) error {
	e := errs.As(err)
	if e.Kind != errs.Invalid {
		return err
	}
	for _, f := range e.Fields {
		if f.Path.Head() == "cursor" {
			view.Bad = append(view.Bad, "This page does not belong to the list: its filters or its order changed.")
			view.Restart = v.listLink("at", "")
			continue
		}
		view.Bad = append(view.Bad, capital(badParts[f.Path.Head()])+" "+f.Message+".")
	}
	if len(view.Bad) == 0 {
		view.Bad = []string{sentence(err)}
	}
	return render(v, http.StatusUnprocessableEntity, "proposals", "Proposals", view)
}

// badParts are the names of query parameters on the page.
var badParts = map[string]string{
	"q": "the search", "submitted_by": "the submitter", "submitted_by_kind": "people or agents",
	"status": "the status", "category": "the category", "priority": "the priority", "sort": "the order",
	"evidence":    "the evidence",
	"fingerprint": "the friction", "limit": "the size of the page", "page": "the page", "by": "the group",
}

// listPager pages forward by cursor. The way back is the browser's back button, or the first page.
func (v *visit) listPager(page proposal.Page) pager {
	var p pager
	if len(page.Items) > 0 {
		first := int64(page.Number-1)*int64(page.Limit) + 1
		p.Text = count(first) + "–" + count(first+int64(len(page.Items))-1) + " of " + count(page.Total)
		if !page.Exact {
			p.Text += "+"
		}
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
