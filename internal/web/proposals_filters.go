package web

import (
	"net/url"
	"strings"

	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
)

// statusWords are the headings of the statuses.
var statusWords = map[proposal.Status]string{
	proposal.Open: "Open", proposal.Approved: "Approved", proposal.Rejected: "Rejected",
	proposal.Resolved: "Resolved", proposal.Draft: "Drafts", proposal.All: "All",
}

// statusTabs is their order: open proposals come first.
var statusTabs = []proposal.Status{
	proposal.Open, proposal.Approved, proposal.Rejected, proposal.Resolved, proposal.Draft, proposal.All,
}

// proposalTabs counts the proposals of each status that match the other filters.
func (v *visit) proposalTabs(a identity.Access, q proposal.Query) ([]tab, error) {
	counts, err := v.counts(a, q)
	if err != nil {
		return nil, err
	}
	now := q.Status
	if now == "" {
		now = proposal.Open
	}
	var all int64
	for _, n := range counts {
		all += n
	}
	tabs := make([]tab, 0, len(statusTabs))
	for _, s := range statusTabs {
		t := tab{Name: statusWords[s], Href: v.listLink("status", string(s)), Count: counts[s], Current: now == s}
		if s == proposal.Open {
			t.Href = v.listLink("status", "")
		}
		if s == proposal.All {
			t.Count = all
		}
		if s == proposal.Draft && t.Count == 0 && !t.Current {
			continue // most members have none
		}
		tabs = append(tabs, t)
	}
	return tabs, nil
}

// counts is Proposals.Counts. It caches the result without filters, which the menu also needs.
func (v *visit) counts(a identity.Access, q proposal.Query) (map[proposal.Status]int64, error) {
	plain := q.Category == "" && q.Priority == "" && q.SubmittedBy == "" && q.Kind == "" && q.Evidence == "" &&
		q.Fingerprint == "" && q.Text == ""
	if plain && v.counted != nil {
		return v.counted, nil
	}
	counts, err := v.Proposals.Counts(v.r.Context(), a, q)
	if plain && err == nil {
		v.counted = counts
	}
	return counts, err
}

// listLink returns the start of this list with a changed parameter.
func (v *visit) listLink(name, value string) string {
	q := v.r.URL.Query()
	for _, place := range []string{"at", "select", "cursor", "page"} {
		q.Del(place)
	}
	return v.listWith(q, name, value)
}

// samePage returns this page of the list with a changed parameter.
func (v *visit) samePage(name, value string) string { return v.listWith(v.r.URL.Query(), name, value) }

func (v *visit) listWith(q url.Values, name, value string) string {
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

// sortWords are the names of the sort orders.
var sortWords = map[proposal.Sort]string{
	proposal.SortReview: "Most urgent", proposal.SortNewest: "Newest", proposal.SortOldest: "Oldest",
	proposal.SortVotes: "Most votes", proposal.SortRelevance: "Most relevant",
}

// listFilters are the filters of the list, by query parameter.
var listFilters = []struct{ name, words string }{
	{"q", "words"},
	{"category", "category"},
	{"priority", "priority"},
	{"submitted_by", "submitter"},
	{"kind", "submitted by"},
	{"evidence", "evidence"},
	{"fingerprint", "friction"},
}

// filterWords are the names of filter values that differ from the value.
var filterWords = map[string]string{
	"kind=user": "people", "kind=agent": "agents",
	"evidence=yes": "reported friction", "evidence=no": "none",
}

// links sets the links to other forms of the list.
func (view *proposalsView) links(v *visit) {
	form := v.r.URL.Query()
	now, sorts, byDefault := view.Query.Sort, proposal.Sorts, proposal.SortReview
	if view.Query.Text != "" {
		sorts, byDefault = proposal.SearchSorts, proposal.SortRelevance
	}
	if now == "" {
		now = byDefault
	}
	for _, s := range sorts {
		c := choice{Name: sortWords[s], Value: string(s), Current: s == now}
		if s == byDefault {
			c.Value = "" // so that the order changes if words are added or removed
		}
		view.Sorts = append(view.Sorts, c)
	}
	view.Oldest = v.listLink("sort", string(proposal.SortOldest))
	if now == proposal.SortOldest {
		view.Oldest = v.listLink("sort", "")
	}
	groups := []choice{
		{Name: "None"},
		{Name: "Submitter", Value: string(proposal.BySubmitter)},
		{Name: "Friction", Value: string(proposal.ByFingerprint)},
	}
	for _, g := range groups {
		g.Href, g.Current = v.listLink("group", g.Value), view.Group == g.Value
		view.By = append(view.By, g)
	}
	keep := url.Values{}
	for _, name := range []string{"status", "sort", "group"} {
		if s := form.Get(name); s != "" {
			keep.Set(name, s)
		}
	}
	view.Clear = v.r.URL.Path
	if len(keep) > 0 {
		view.Clear += "?" + keep.Encode()
	}
	for _, f := range listFilters {
		value := form.Get(f.name)
		if value == "" || value == proposal.All {
			continue
		}
		shown := filterWords[f.name+"="+value]
		if shown == "" {
			shown = value
		}
		view.Filters = append(view.Filters, filter{Name: f.words, Value: shown, Without: v.listLink(f.name, "")})
	}
	for _, name := range []string{"status", "group", "fingerprint"} {
		if s := form.Get(name); s != "" {
			view.Form = append(view.Form, keptTab{name, s})
		}
	}
}

// Kinds are the choices for the kind of the submitter.
func (proposalsView) Kinds() []choice {
	return []choice{
		{Name: "People and agents"},
		{Name: "People", Value: string(identity.User)},
		{Name: "Agents", Value: string(identity.Agent)},
	}
}

// Categories returns the choices of the filter.
func (proposalsView) Categories() []proposal.Category { return proposal.Categories }

// Priorities returns the choices of the filter, most urgent first.
func (proposalsView) Priorities() []proposal.Priority {
	return []proposal.Priority{proposal.High, proposal.Normal, proposal.Low}
}

// Folded reports whether the fields of further filters can stay folded.
func (view proposalsView) Folded() bool {
	if view.Group != "" {
		return false
	}
	for _, f := range view.Filters {
		if f.Name != "words" {
			return false
		}
	}
	return true
}

// emptyProposals explains why there are no rows, and what to do.
func (v *visit) emptyProposals(view *proposalsView) *emptyList {
	all, current := view.Tabs[len(view.Tabs)-1].Count, proposal.Open
	if view.Query.Status != "" {
		current = view.Query.Status
	}
	switch {
	case view.Query.Cursor != "":
		return &emptyList{
			"This page is empty now", "Its proposals were decided meanwhile.", v.listLink("at", ""), "Go to the first page",
		}
	case len(view.Filters) > 0 && !strings.Contains(view.Query.SubmittedBy, ":") && view.Query.SubmittedBy != "":
		return &emptyList{
			"Nothing matches", "Write submitters with their kind: agent:scout or user:ada.",
			view.Clear, "Clear the filters",
		}
	case len(view.Filters) > 0:
		return &emptyList{"Nothing matches", "No proposal matches all filters.", view.Clear, "Clear the filters"}
	case all == 0:
		e := &emptyList{
			Title: "No proposals yet",
			Text: "A proposal states a problem and a suggested fix. Agents submit them over the API or MCP, and friction " +
				"that is reported often enough files one automatically.",
		}
		if view.Manages {
			e.Link, e.LinkText = v.base()+"/proposals/new", "Write the first one"
		}
		return e
	case current == proposal.Open:
		return &emptyList{
			"Nothing is open", "Everything is decided. New proposals appear here when they are submitted.",
			v.listLink("status", "all"), "Show all proposals",
		}
	default:
		return &emptyList{Title: emptyWords[current], Text: "See the other tabs above."}
	}
}

var emptyWords = map[proposal.Status]string{
	proposal.Draft: "There are no drafts", proposal.Approved: "Nothing is approved and still to be done",
	proposal.Rejected: "Nothing is rejected", proposal.Resolved: "Nothing is resolved yet",
	proposal.All: "There are no proposals",
}
