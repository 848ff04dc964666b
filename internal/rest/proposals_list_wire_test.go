package rest

import (
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/proposal"
)

// listOf returns a page as the documented type, whose encoding is the standard for shownList.
func listOf(page *proposal.Page, excerpt bool) ProposalList {
	list := ProposalList{
		Proposals: make([]ProposalItem, len(page.Items)), Total: page.Total, Page: page.Number,
		NextCursor: orNull(page.Next),
	}
	if page.Search {
		list.TotalExact, list.IndexComplete = &page.Exact, &page.Complete
	}
	for i := range page.Items {
		list.Proposals[i] = itemOf(&page.Items[i], excerpt)
	}
	return list
}

func itemOf(it *proposal.Item, excerpt bool) ProposalItem {
	out := ProposalItem{
		ID: it.ID, Title: it.Title, Category: string(it.Category), Status: string(it.Status),
		Priority: string(it.Priority), SubmittedBy: it.SubmittedBy, SubmittedAt: stamp(it.SubmittedAt),
		VotesFor: it.VotesFor, VotesAgainst: it.VotesAgainst, MyVote: orNull(string(it.MyVote)),
		Fingerprint: orNull(it.Fingerprint), EvidenceCount: it.Evidence, TextVersion: it.TextVersion,
	}
	if excerpt {
		out.Excerpt = &it.Excerpt
	}
	return out
}

// A list is encoded byte for byte as the documented type.
func FuzzProposalList(f *testing.F) {
	for _, s := range []string{
		"", "plain", `quotes " and \\ and /`, "tab\tline\nreturn\r\x00\x1f\x7f", "<b>&amp;</b>", "\xff\xc3\x28 invalid",
		"line\u2028paragraph\u2029", "ü 漢字 😀 \ufffd",
	} {
		f.Add(s, "x"+s, int64(1_772_357_400_123_456), 3)
		f.Add("x", s, int64(0), 0)
		f.Add(s, s, int64(-1), -7)
	}
	f.Fuzz(func(t *testing.T, one, two string, micros int64, n int) {
		at := time.UnixMicro(micros % (1 << 57)).In(time.FixedZone("east", 7200))
		item := proposal.Item{
			Proposal: proposal.Proposal{
				ID: one, Title: two, Category: proposal.Category(one), Status: proposal.Status(two),
				Priority: proposal.Priority(one), SubmittedBy: two, SubmittedAt: at, VotesFor: n, VotesAgainst: n + 1,
				Fingerprint: one, Evidence: int64(n), TextVersion: micros,
			},
			MyVote: proposal.Choice(one), Excerpt: two,
		}
		for count := range 3 {
			page := proposal.Page{
				Items: make([]proposal.Item, count), Total: micros, Number: n, Next: one,
				Search: count > 0, Exact: n%2 == 0, Complete: n%3 == 0,
			}
			for i := range page.Items {
				page.Items[i] = item
			}
			for _, excerpt := range []bool{false, true} {
				got, want := encoded(t, shownList{&page, excerpt}), encoded(t, listOf(&page, excerpt))
				if got != want {
					t.Errorf("list:\n got %s\nwant %s", got, want)
				}
			}
		}
	})
}
