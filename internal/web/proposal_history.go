package web

import (
	"slices"
	"time"

	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
)

// historyView is a page of a proposal's history, newest first.
type historyView struct {
	Entries []historyEntry
	Pager   pager
}

// historyEntry is an entry of the timeline.
type historyEntry struct {
	proposal.Entry
	Diffs    []fieldDiff // differences of an edit
	Original string      // page of the duplicated proposal
}

// fieldDiff is the difference of a field.
type fieldDiff struct {
	Field string
	Parts []diffPart
}

// historyPerPage is the page size of the timeline. maxHistoryDiff limits the characters of each
// difference.
const (
	historyPerPage = 50
	maxHistoryDiff = 2_000
)

// history returns a page of the timeline. The store numbers pages from the oldest entry, so the
// page number ("history" in the URL) stays the same while entries are added.
func (v *visit) history(id string) (historyView, error) {
	_, total, err := v.historyPage(id, 1, 1)
	if err != nil {
		return historyView{}, err
	}
	last := int((total + historyPerPage - 1) / historyPerPage)
	at := last
	if v.r.URL.Query().Has("history") {
		at = min(v.number("history"), last)
	}
	var out historyView
	if at < 1 {
		return out, nil
	}
	entries, _, err := v.historyPage(id, at, historyPerPage)
	if err != nil {
		return out, err
	}
	first := at // oldest page shown
	if at == last && at > 1 && len(entries) < historyPerPage/2 {
		first--
		before, _, err := v.historyPage(id, first, historyPerPage)
		if err != nil {
			return out, err
		}
		entries = append(before, entries...)
	}
	for _, e := range slices.Backward(entries) {
		out.Entries = append(out.Entries, v.newHistoryEntry(e))
	}
	if at < last {
		out.Pager.Prev = v.pageLink(id, "history", at+1)
	}
	if first > 1 {
		out.Pager.Next = v.pageLink(id, "history", first-1)
	}
	return out, nil
}

func (v *visit) historyPage(id string, page, limit int) ([]proposal.Entry, int64, error) {
	a, err := v.access(identity.ReadProposal)
	if err != nil {
		return nil, 0, err
	}
	return v.Proposals.History(v.r.Context(), a, id, &proposal.Paging{Page: page, Limit: limit})
}

func (v *visit) newHistoryEntry(e proposal.Entry) historyEntry {
	out := historyEntry{Entry: e}
	if e.DuplicateOf != "" {
		out.Original = v.proposalURL(e.DuplicateOf)
	}
	for _, c := range e.Changes {
		out.Diffs = append(out.Diffs, fieldDiff{Field: c.Field, Parts: shortenDiff(diffText(c.From, c.To), maxHistoryDiff)})
	}
	return out
}

// changedView is the difference of the text since a member read it.
type changedView struct {
	Diffs []fieldDiff // empty if the older text is too far back
	By    string      // author of the last change
	At    time.Time
}

// maxLookBack limits the pages of history that are read to find an older text.
const maxLookBack = 20

// textFields are the fields of the text of a proposal.
var textFields = []string{"title", "problem", "suggested_fix"}

// textChange compares the text with an earlier version. It restores the earlier text from the edits
// since then.
func (v *visit) textChange(p *proposal.Proposal, since int64) (*changedView, error) {
	out := &changedView{}
	missing := p.TextVersion - since
	if since < 1 || missing < 1 {
		return nil, nil
	}
	const limit = proposal.MaxLimit
	_, total, err := v.historyPage(p.ID, 1, 1)
	if err != nil {
		return nil, err
	}
	from := map[string]string{}
	last := int((total + limit - 1) / limit)
	for page := last; page > 0 && page > last-maxLookBack && missing > 0; page-- {
		entries, _, err := v.historyPage(p.ID, page, limit)
		if err != nil {
			return nil, err
		}
		for _, e := range slices.Backward(entries) {
			if missing > 0 && undo(from, e) {
				missing--
				if out.By == "" {
					out.By, out.At = e.Actor, e.At
				}
			}
		}
	}
	if missing > 0 {
		return out, nil
	}
	now := map[string]string{"title": p.Title, "problem": p.Problem, "suggested_fix": p.SuggestedFix}
	for _, field := range textFields {
		if old, ok := from[field]; ok && old != now[field] {
			out.Diffs = append(out.Diffs, fieldDiff{Field: field, Parts: diffText(old, now[field])})
		}
	}
	return out, nil
}

// undo records the values that an edit replaced, and reports whether it changed the text.
func undo(from map[string]string, e proposal.Entry) bool {
	text := false
	for _, c := range e.Changes {
		if slices.Contains(textFields, c.Field) {
			from[c.Field], text = c.From, true
		}
	}
	return text
}
