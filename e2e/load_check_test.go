package e2e

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"sync"
	"testing"
)

// The rows as the API returns them.
type (
	proposalRow struct {
		ID, Title, Category, Status string
		SubmittedBy                 string `json:"submitted_by"`
		VotesFor                    int    `json:"votes_for"`
		VotesAgainst                int    `json:"votes_against"`
	}
	voteRow     struct{ Voter, Vote string }
	followupRow struct {
		ID         string
		ProposalID string `json:"proposal_id"`
	}
)

// verify reads everything back and compares it with the ledger and with itself: nothing
// acknowledged is missing, nothing is counted twice, and no counter disagrees with its rows.
// exclusive means that each voter had one client only, so that the ledger has the last choice of
// each.
func (f *fleet) verify(t *testing.T, exclusive bool) {
	t.Helper()
	rows := f.walk(t)
	f.verifyTotals(t, rows)
	byID := map[string]proposalRow{}
	for _, r := range rows {
		if _, twice := byID[r.ID]; twice {
			t.Errorf("%s is listed twice, want once", r.ID)
		}
		byID[r.ID] = r
	}
	followups := f.followups(t)
	for _, fa := range f.ledger.all() {
		r, ok := byID[fa.id]
		if !ok {
			t.Errorf("acknowledged proposal %s is missing, want it listed", fa.id)
			continue
		}
		if !slices.Contains(fa.titles, r.Title) || r.Category != fa.category || r.SubmittedBy != f.voters[fa.owner] {
			t.Errorf("%s = %+v; want one of the titles %q, category %s, submitter %s", fa.id, r, fa.titles, fa.category,
				f.voters[fa.owner])
		}
		switch {
		case fa.approvals > 1:
			t.Errorf("%s was approved %d times, want at most 1", fa.id, fa.approvals)
		case fa.approvals == 1 && r.Status != "approved", r.Status == "approved" && fa.approvals == 0 && !fa.maybeApproved:
			t.Errorf("%s is %s after %d acknowledged approvals, want approved after 1 only", fa.id, r.Status, fa.approvals)
		}
	}
	for _, r := range rows {
		want := 0
		if r.Status == "approved" {
			want = 1
		}
		if followups[r.ID] != want {
			t.Errorf("%s is %s and has %d follow-ups, want %d", r.ID, r.Status, followups[r.ID], want)
		}
	}
	f.verifyVotes(t, byID, exclusive)
	f.verifyEvents(t, byID, followups)
}

// walk lists every proposal by cursor.
func (f *fleet) walk(t *testing.T) []proposalRow {
	t.Helper()
	var all []proposalRow
	for cursor := ""; ; {
		var page struct {
			Proposals []proposalRow
			Total     int
			Next      *string `json:"next_cursor"`
		}
		f.read(t, "/proposals?status=all&sort=oldest&limit=100"+cursor, &page)
		all = append(all, page.Proposals...)
		if page.Next == nil {
			if page.Total != len(all) {
				t.Errorf("total = %d, want %d, the number of rows", page.Total, len(all))
			}
			return all
		}
		cursor = "&cursor=" + *page.Next
	}
}

// verifyTotals compares the counter behind each filter with the rows that match it.
func (f *fleet) verifyTotals(t *testing.T, rows []proposalRow) {
	t.Helper()
	count := map[string]int{}
	for _, r := range rows {
		count["status="+r.Status]++
		count["status=all&category="+r.Category]++
		count["status="+r.Status+"&category="+r.Category]++
		count["status=all&submitted_by="+url.QueryEscape(r.SubmittedBy)]++
		count["status="+r.Status+"&submitted_by="+url.QueryEscape(r.SubmittedBy)]++
	}
	for query, want := range count {
		var page struct{ Total int }
		f.read(t, "/proposals?limit=1&"+query, &page)
		if page.Total != want {
			t.Errorf("total for %s is %d, and %d rows match", query, page.Total, want)
		}
	}
}

// followups counts the follow-ups of each proposal.
func (f *fleet) followups(t *testing.T) map[string]int {
	t.Helper()
	out, seen := map[string]int{}, 0
	for n := 1; ; n++ {
		var page struct {
			Followups []followupRow
			Total     int
		}
		f.read(t, fmt.Sprintf("/followups?limit=100&page=%d", n), &page)
		for _, f := range page.Followups {
			out[f.ProposalID]++
			seen++
		}
		if len(page.Followups) == 0 {
			if page.Total != seen {
				t.Errorf("total of follow-ups = %d, want %d, the number of rows", page.Total, seen)
			}
			return out
		}
	}
}

// verifyVotes compares each proposal's counts with its votes, and those with the ledger.
func (f *fleet) verifyVotes(t *testing.T, byID map[string]proposalRow, exclusive bool) {
	t.Helper()
	work := make(chan *fact)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for fa := range work {
				f.verifyBallots(t, fa, byID[fa.id], exclusive)
			}
		})
	}
	for _, fa := range f.ledger.all() {
		r := byID[fa.id]
		// Without any trace of a vote there is nothing to compare.
		if len(fa.votes) > 0 || r.VotesFor+r.VotesAgainst > 0 {
			work <- fa
		}
	}
	close(work)
	wg.Wait()
}

func (f *fleet) verifyBallots(t *testing.T, fa *fact, r proposalRow, exclusive bool) {
	var page struct {
		Votes []voteRow
		Total int
	}
	f.read(t, "/proposals/"+fa.id+"/votes?limit=100", &page)
	choices := map[string]string{}
	tally := map[string]int{}
	for _, v := range page.Votes {
		if _, twice := choices[v.Voter]; twice {
			t.Errorf("%s: %s has two votes, want one", fa.id, v.Voter)
		}
		choices[v.Voter] = v.Vote
		tally[v.Vote]++
	}
	if tally["for"] != r.VotesFor || tally["against"] != r.VotesAgainst || page.Total != len(page.Votes) {
		t.Errorf("%s counts %d for and %d against, total %d; want the tally of %v", fa.id, r.VotesFor, r.VotesAgainst,
			page.Total, page.Votes)
	}
	known := 0
	for voter, b := range fa.votes {
		got := choices[f.voters[voter]]
		if got != "" {
			known++
		}
		possible := append([]string{b.acked}, b.maybe...)
		switch {
		case b.acked == "" && len(b.maybe) == 0 && got != "":
			t.Errorf("%s: vote of %s = %q, want none: it was refused", fa.id, f.voters[voter], got)
		case b.acked != "" && got == "":
			t.Errorf("%s: got no vote of %s, want the acknowledged %q", fa.id, f.voters[voter], b.acked)
		case exclusive && !slices.Contains(possible, got):
			t.Errorf("%s: vote of %s = %q, want %q or a later try %v", fa.id, f.voters[voter], got, b.acked, b.maybe)
		}
	}
	if known != len(choices) {
		t.Errorf("%s has votes of %d voters, want %d", fa.id, len(choices), known)
	}
}

func (f *fleet) read(t *testing.T, path string, into any) {
	b, err := f.call(f.admin, "GET", path, nil, 200)
	if err == nil {
		err = json.Unmarshal(b, into)
	}
	if err != nil {
		t.Errorf("read back: %v", err)
	}
}
