package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/app"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
	"github.com/parley-dev/parley/internal/store"
)

const (
	searchMost = 50_000 // µs of the store for any search
	smallMost  = 5_000  // µs in a small org beside a large one
	smallRows  = 1000
)

// measureSearch fills an org with as many proposals as the largest size, and a small one, and searches in
// both. It measures the store's time, in this process.
func measureSearch(ctx context.Context, set settings, engine string) ([]cost, error) {
	s, cleanup, err := openStore(ctx, engine)
	if err != nil {
		return nil, err
	}
	defer cleanup()
	rows := set.rows[len(set.rows)-1]
	for name, n := range map[string]int{org: rows, "small": smallRows} {
		progress("%s: submit %d proposals to org %s", engine, n, name)
		if err := s.fill(ctx, name, n, searchable); err != nil {
			return nil, err
		}
	}
	begun, left := time.Now(), s.SearchWaiting()
	progress("%s: %d proposals wait to be indexed", engine, left)
	if err := s.indexed(ctx); err != nil {
		return nil, err
	}
	var out []cost
	if left > smallRows {
		out = append(out, cost{
			Engine: engine, Name: "index one proposal", Micros: float64(time.Since(begun).Microseconds()) / float64(left),
		})
	}
	for _, c := range searches {
		progress("%s: search: %s", engine, c.name)
		us, err := timeSearch(ctx, s.Store, c.filter)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		most := float64(searchMost)
		if c.filter.Org == "small" {
			most = smallMost
		}
		out = append(out, cost{
			Engine: engine, Name: "search: " + c.name, Micros: us, Target: fmt.Sprintf("< %g ms", most/1000),
			Verdict: verdict(us < most),
		})
	}
	return out, nil
}

var searches = []struct {
	name   string
	filter proposal.Filter
}{
	{"a rare word", proposal.Filter{Org: org, Words: []string{"number777"}}},
	{"a word of every row", proposal.Filter{Org: org, Words: []string{"upload"}}},
	{"a prefix of one letter", proposal.Filter{Org: org, Words: []string{"w"}}},
	{"three words", proposal.Filter{Org: org, Words: []string{"upload", "w1", "w2"}}},
	{"a word of every row, newest", proposal.Filter{Org: org, Words: []string{"upload"}, Sort: proposal.SortNewest}},
	{"a word of every row, by votes", proposal.Filter{Org: org, Words: []string{"upload"}, Sort: proposal.SortVotes}},
	{"a word of every row, oldest", proposal.Filter{Org: org, Words: []string{"upload"}, Sort: proposal.SortOldest}},
	{"a word of every row, the 400th page", proposal.Filter{Org: org, Words: []string{"upload"}, Offset: 8000}},
	{"no match", proposal.Filter{Org: org, Words: []string{"nothing"}}},
	{"a small org, a word of every row", proposal.Filter{Org: "small", Words: []string{"upload"}}},
}

// timeSearch returns the median time of a search in microseconds.
func timeSearch(ctx context.Context, s *store.Store, f proposal.Filter) (float64, error) {
	const times = 31
	f.Limit, f.Status, f.Viewer = 20, proposal.Open, proposal.Viewer{Principal: submitter(f.Org)}
	if f.Sort == "" {
		f.Sort = proposal.SortRelevance
	}
	var took []time.Duration
	for range times {
		begun := time.Now()
		if _, err := s.Proposals().Search(ctx, f); err != nil {
			return 0, err
		}
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	return float64(took[times/2].Nanoseconds()) / 1000, nil
}

func submitter(org string) identity.Principal {
	return identity.Principal{Org: org, Kind: identity.User, ID: "ann"}
}

// searchable returns the i-th proposal: some forty words, of which some are common and one is its own.
func searchable(org string, i int64) proposal.Proposal {
	rng := rand.New(rand.NewPCG(uint64(i), 3)) // a row number
	word := func() string { return fmt.Sprintf("w%d", rng.IntN(1+rng.IntN(5000))) }
	text := make([]string, 30)
	for j := range text {
		text[j] = word()
	}
	now := app.Now()
	return proposal.Proposal{
		Org: org, ID: fmt.Sprintf("prop-%026d", i), Title: fmt.Sprintf("Upload %s %s number%d", word(), word(), i),
		Problem: strings.Join(text[:20], " "), SuggestedFix: strings.Join(text[20:], " "), Status: proposal.Open,
		Category: proposal.Reliability, Priority: proposal.Priorities[rng.IntN(3)], SubmittedBy: submitter(org).Ref(),
		SubmittedAt: now, UpdatedAt: now, TextVersion: 1, Version: 1,
	}
}
