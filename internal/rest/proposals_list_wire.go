package rest

import (
	"reflect"
	"slices"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/parley-dev/parley/internal/proposal"
	"github.com/parley-dev/parley/internal/wire"
)

// shownList is a ProposalList that is encoded without reflection. FuzzProposalList compares it with
// the documented type.
type shownList struct {
	page    *proposal.Page
	excerpt bool // include=excerpt
}

func (shownList) Schema(r huma.Registry) *huma.Schema {
	return r.Schema(reflect.TypeFor[ProposalList](), true, "")
}

// AppendJSON implements httpx.Appender.
func (s shownList) AppendJSON(b []byte) []byte {
	const fixed = 380 // of an item without its texts
	size := fixed
	for i := range s.page.Items {
		size += fixed + len(s.page.Items[i].Title) + len(s.page.Items[i].Excerpt)
	}
	b = append(slices.Grow(b, size), `{"proposals":[`...)
	for i := range s.page.Items {
		if i > 0 {
			b = append(b, ',')
		}
		b = s.appendItem(b, &s.page.Items[i])
	}
	b = strconv.AppendInt(append(b, `],"total":`...), s.page.Total, 10)
	b = strconv.AppendInt(append(b, `,"page":`...), int64(s.page.Number), 10)
	b = appendOrNull(b, `,"next_cursor":`, s.page.Next)
	if s.page.Search {
		b = strconv.AppendBool(append(b, `,"total_exact":`...), s.page.Exact)
		b = strconv.AppendBool(append(b, `,"index_complete":`...), s.page.Complete)
	}
	return append(b, '}')
}

func (s shownList) appendItem(b []byte, it *proposal.Item) []byte {
	b = appendText(b, `{"id":`, it.ID)
	b = appendText(b, `,"title":`, it.Title)
	b = appendText(b, `,"category":`, string(it.Category))
	b = appendText(b, `,"status":`, string(it.Status))
	b = appendText(b, `,"priority":`, string(it.Priority))
	b = appendText(b, `,"submitted_by":`, it.SubmittedBy)
	b = wire.AppendTime(append(b, `,"submitted_at":`...), it.SubmittedAt)
	b = appendTally(b, `,"votes_for":`, `,"votes_against":`, proposal.Tally{For: it.VotesFor, Against: it.VotesAgainst})
	b = appendOrNull(b, `,"my_vote":`, string(it.MyVote))
	b = appendOrNull(b, `,"fingerprint":`, it.Fingerprint)
	b = strconv.AppendInt(append(b, `,"evidence_count":`...), it.Evidence, 10)
	b = strconv.AppendInt(append(b, `,"text_version":`...), it.TextVersion, 10)
	if s.excerpt && it.Excerpt != "" {
		b = appendText(b, `,"excerpt":`, it.Excerpt)
	}
	return append(b, '}')
}
