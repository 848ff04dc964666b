package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
	"github.com/parley-dev/parley/internal/store"
)

// TestIndexGoesOn stops a server before the text index contains its writes, including edits of
// proposals that are not indexed, and searches in the next server.
func TestIndexGoesOn(t *testing.T) {
	t.Parallel()
	const n = 2500
	dir := t.TempDir()
	first, err := store.Open(t.Context(), store.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	ann := identity.Principal{Org: "acme", Kind: identity.User, ID: "ann"}
	now := time.Now().UTC()
	submit := func(s *store.Store, i int) {
		t.Helper()
		p := proposal.Proposal{
			Org: ann.Org, ID: fmt.Sprintf("prop-%026d", i), Title: fmt.Sprintf("upload number%d", i), Status: proposal.Open,
			Category: proposal.Reliability, Priority: proposal.Normal, SubmittedBy: ann.Ref(), SubmittedAt: now,
			UpdatedAt: now, Version: 1,
		}
		if _, err := s.Proposals().Insert(t.Context(), p, ann, nil); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan struct{})
	for part := range 8 {
		go func() {
			defer func() { done <- struct{}{} }()
			for i := part; i < n; i += 8 {
				submit(first, i)
			}
		}()
	}
	for range 8 {
		<-done
	}
	submit(first, n)
	edit := func(cur proposal.Current) (proposal.Change, error) {
		cur.Proposal.Title = "download"
		return proposal.Change{
			Proposal: cur.Proposal, Entry: proposal.Entry{Kind: proposal.Edited, Actor: ann.Ref(), At: now},
		}, nil
	}
	if _, err := first.Proposals().Update(t.Context(), fmt.Sprintf("prop-%026d", n), "", ann, nil, edit); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}

	second := open(t, store.Options{Dir: dir})
	count := func(word string) int64 {
		t.Helper()
		found, err := second.Proposals().Search(t.Context(), proposal.Filter{
			Org: ann.Org, Words: []string{word}, Limit: 20, Sort: proposal.SortNewest,
			Viewer: proposal.Viewer{Principal: ann, Admin: true},
		})
		if err != nil {
			t.Fatal(err)
		}
		return found.Total
	}
	for word, want := range map[string]int64{"upload": n, "download": 1, "number7": 1 + 10 + 100, "number2500": 0} {
		if got := count(word); got != want {
			t.Errorf("%s: found %d, want %d", word, got, want)
		}
	}
	submit(second, n+1)
	if got := count("upload"); got != n+1 {
		t.Errorf("found %d after one more, want %d", got, n+1)
	}
}
