package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/pgtest"
	"github.com/parley-dev/parley/internal/proposal"
	"github.com/parley-dev/parley/internal/words"
)

// searched is a store with an org and a copy of its proposals.
type searched struct {
	*Store
	t    *testing.T
	have map[string]*proposal.Proposal
}

func openSearched(t *testing.T, o Options) *searched {
	t.Helper()
	s := &searched{openFor(t, o), t, map[string]*proposal.Proposal{}}
	s.createOrg("acme")
	return s
}

func (s *searched) createOrg(id string) {
	s.t.Helper()
	ctx, now := s.t.Context(), time.Now().UTC()
	if err := s.Identity().CreateOrg(ctx, identity.Org{ID: id, Name: id, CreatedAt: now},
		identity.NewEntry(ctx, now, id, identity.OrgCreate, id, "")); err != nil {
		s.t.Fatal(err)
	}
}

// submit adds a proposal with the words.
func (s *searched) submit(i int, title, text string, edit func(*proposal.Proposal)) {
	s.t.Helper()
	now := time.Now().UTC()
	p := &proposal.Proposal{
		Org: "acme", ID: propID(i), Title: title, Problem: text, SuggestedFix: "fix", Status: proposal.Open,
		Category: proposal.Reliability, Priority: proposal.Normal, SubmittedBy: "user:ann", SubmittedAt: now, UpdatedAt: now,
		TextVersion: 1, Version: 1,
	}
	edit(p)
	if _, err := s.Proposals().Insert(s.t.Context(), *p, annOf("acme"), nil); err != nil {
		s.t.Fatal(err)
	}
	s.have[p.ID] = p
}

// change changes a proposal.
func (s *searched) change(id string, edit func(*proposal.Proposal)) {
	s.t.Helper()
	p := s.have[id]
	edit(p)
	if _, err := s.Proposals().Update(s.t.Context(), id, "", annOf("acme"), nil,
		func(cur proposal.Current) (proposal.Change, error) {
			c := proposal.Change{Proposal: cur.Proposal, Entry: proposal.Entry{Kind: proposal.Edited, Actor: "user:ann"}}
			edit(&c.Proposal)
			return c, nil
		}); err != nil {
		s.t.Fatal(err)
	}
}

// indexAll indexes all that waits.
func (s *searched) indexAll() {
	s.t.Helper()
	if err := s.search.catchUp(s.t.Context(), "acme", 0); err != nil {
		s.t.Fatal(err)
	}
}

// model returns the ids that match, in order.
func (s *searched) model(f proposal.Filter) (out []string) {
	terms := func(texts ...string) (list []string) {
		for _, text := range texts {
			words.Index(text, func(w string) { list = append(list, w) })
		}
		return list
	}
	var hits []*proposal.Proposal
	for _, p := range s.have {
		all := terms(p.Title, p.Problem, p.SuggestedFix)
		match := p.VisibleTo(f.Viewer) && (f.Status == "" || p.Status == f.Status) &&
			(f.Category == "" || p.Category == f.Category) && (f.Priority == "" || p.Priority == f.Priority) &&
			(f.SubmittedBy == "" || p.SubmittedBy == f.SubmittedBy)
		last := len(f.Words) - 1
		for _, w := range f.Words[:last] {
			match = match && slices.Contains(all, w)
		}
		if match && slices.ContainsFunc(all, func(w string) bool { return strings.HasPrefix(w, f.Words[last]) }) {
			hits = append(hits, p)
		}
	}
	slices.SortFunc(hits, func(x, y *proposal.Proposal) int {
		switch f.Sort {
		case proposal.SortOldest:
			return cmp.Compare(x.ID, y.ID)
		case proposal.SortReview:
			return cmp.Or(-cmp.Compare(x.Priority.Rank(), y.Priority.Rank()), -cmp.Compare(x.ID, y.ID))
		case proposal.SortVotes:
			return cmp.Or(-cmp.Compare(x.VotesFor, y.VotesFor), -cmp.Compare(x.ID, y.ID))
		case proposal.SortNewest, proposal.SortRelevance:
		}
		return -cmp.Compare(x.ID, y.ID)
	})
	for _, p := range hits {
		out = append(out, p.ID)
	}
	return out
}

// walk returns all ids of a search, by page and by cursor, which must agree.
func (s *searched) walk(f proposal.Filter) []string {
	s.t.Helper()
	var byPage, byCursor []string
	for f.Offset = 0; ; f.Offset += int64(f.Limit) {
		found := s.find(f)
		n := min(len(found.Items), f.Limit)
		for _, it := range found.Items[:n] {
			byPage = append(byPage, it.ID)
		}
		if len(found.Items) <= f.Limit {
			if found.Total != int64(len(byPage)) || !found.Exact || !found.Complete {
				s.t.Fatalf("%+v: total %d of %d, exact: %v, complete: %v", f, found.Total, len(byPage), found.Exact, found.Complete)
			}
			break
		}
	}
	for f.Offset = 0; ; {
		found := s.find(f)
		n := min(len(found.Items), f.Limit)
		for _, it := range found.Items[:n] {
			byCursor = append(byCursor, it.ID)
		}
		if len(found.Items) <= f.Limit {
			break
		}
		last := found.Items[n-1]
		f.After = &proposal.Position{ID: last.ID, Rank: last.Priority.Rank()}
		switch f.Sort {
		case proposal.SortRelevance:
			f.After.Score = int64(last.Score)
		case proposal.SortVotes:
			f.After.Score = int64(last.VotesFor - last.VotesAgainst)
		case proposal.SortNewest, proposal.SortOldest, proposal.SortReview:
		}
	}
	if diff := gocmp.Diff(byPage, byCursor); diff != "" {
		s.t.Fatalf("%+v: pages and cursors differ:\n%s", f, diff)
	}
	return byPage
}

func (s *searched) find(f proposal.Filter) proposal.Found {
	s.t.Helper()
	found, err := s.Proposals().Search(s.t.Context(), f)
	if err != nil {
		s.t.Fatalf("%+v: %v", f, err)
	}
	return found
}

// TestSearchesAreTheSameOnBothEngines changes both in the same way, lets only one of them index at times,
// and compares them with each other and with a scan.
func TestSearchesAreTheSameOnBothEngines(t *testing.T) {
	t.Parallel()
	stores := []*searched{openSearched(t, Options{Dir: t.TempDir()})}
	if !testing.Short() {
		stores = append(stores, openSearched(t, Options{URL: pgtest.URL(t)}))
	}
	rnd := rand.New(rand.NewPCG(7, 7))
	word := func() string { return fmt.Sprintf("w%d", rnd.IntN(1+rnd.IntN(40))) }
	n := 0
	for round := range 12 {
		for range 5 + rnd.IntN(60) {
			title, text := word()+" "+word(), word()+" "+word()+" "+word()+" Résumé"
			status, by := proposal.Statuses[rnd.IntN(3)], []string{"user:ann", "user:bob", "agent:bot"}[rnd.IntN(3)]
			priority, votes := proposal.Priorities[rnd.IntN(3)], rnd.IntN(4)
			for _, s := range stores {
				s.submit(n, title, text, func(p *proposal.Proposal) {
					p.Status, p.SubmittedBy, p.Priority, p.VotesFor = status, by, priority, votes
				})
			}
			n++
		}
		for range rnd.IntN(20) {
			id, title, status := propID(rnd.IntN(n)), word(), proposal.Statuses[rnd.IntN(len(proposal.Statuses))]
			what := rnd.IntN(2)
			for _, s := range stores {
				s.change(id, func(p *proposal.Proposal) {
					if what == 0 {
						p.Title = title
					} else {
						p.Status = status
					}
				})
			}
		}
		if s := stores[rnd.IntN(len(stores))]; rnd.IntN(2) == 0 {
			s.indexAll()
		}
		for range 10 {
			f := proposal.Filter{
				Org: "acme", Words: []string{word()}, Sort: proposal.SearchSorts[rnd.IntN(len(proposal.SearchSorts))],
				Limit: 1 + rnd.IntN(30), Viewer: proposal.Viewer{Principal: annOf("acme"), Admin: rnd.IntN(2) == 0},
			}
			switch rnd.IntN(5) {
			case 0:
				f.Words = []string{"resume", "w"}
			case 1:
				f.Words = append(f.Words, word())
			case 2:
				f.Status = proposal.Open
			case 3:
				f.SubmittedBy, f.Priority = "agent:bot", proposal.High
			}
			first := stores[0].walk(f)
			for _, s := range stores[1:] {
				if diff := gocmp.Diff(first, s.walk(f)); diff != "" {
					t.Fatalf("round %d, %+v: the engines differ:\n%s", round, f, diff)
				}
			}
			want := stores[0].model(f)
			if f.Sort == proposal.SortRelevance { // the order is that of package textindex
				slices.Sort(want)
				slices.Sort(first)
			}
			if diff := gocmp.Diff(want, first); diff != "" {
				t.Fatalf("round %d, %+v mismatch (-want +got):\n%s", round, f, diff)
			}
		}
	}
	for _, s := range stores {
		s.indexAll()
		mustBeSound(t, s.Store)
	}
}

// mustBeSound fails the test if an index is damaged.
func mustBeSound(t *testing.T, s *Store) {
	t.Helper()
	text, err := unsearchable(t.Context(), s.eng, s.d, "acme")
	if err != nil || text != "" {
		t.Errorf("the index is not sound: %s %v", text, err)
	}
}

func TestWordsInTitlesComeFirst(t *testing.T) {
	t.Parallel()
	s := openSearched(t, Options{Dir: t.TempDir()})
	same := func(*proposal.Proposal) {}
	s.submit(1, "retry uploads", "a", same)
	s.submit(2, "b", "retry uploads", same)
	s.submit(3, "c", "retry uploading retry", same)
	s.submit(4, "retry it", "upload", same)
	f := proposal.Filter{
		Org: "acme", Words: []string{"retry", "uploads"}, Sort: proposal.SortRelevance, Limit: 10,
		Viewer: proposal.Viewer{Admin: true},
	}
	if diff := gocmp.Diff([]string{propID(1), propID(2)}, s.walk(f)); diff != "" {
		t.Error(diff)
	}
	f.Words = []string{"upload"} // the whole word counts more than its beginning
	if diff := gocmp.Diff([]string{propID(1), propID(4), propID(3), propID(2)}, s.walk(f)); diff != "" {
		t.Error(diff)
	}
}

// TestNodesIndexTogether has two nodes submit, change and index at the same time, and searches in both.
func TestNodesIndexTogether(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	a := openSearched(t, Options{URL: url})
	b := openFor(t, Options{URL: url})
	const perNode = 400
	var wg sync.WaitGroup
	ctx := t.Context()
	for at, s := range []*Store{a.Store, b} {
		wg.Go(func() {
			for i := range perNode {
				node := &searched{s, t, map[string]*proposal.Proposal{}}
				node.submit(at*perNode+i, "upload", fmt.Sprintf("n%d", i), func(*proposal.Proposal) {})
				if i%3 == 0 {
					node.change(propID(at*perNode+i), func(p *proposal.Proposal) { p.Title = "changed" })
				}
			}
		})
		wg.Go(func() {
			for range 20 {
				if err := s.search.catchUp(ctx, "acme", 0); err != nil {
					t.Error(err)
				}
				s.search.release() // let the other one
				found, err := s.Proposals().Search(ctx, proposal.Filter{
					Org: "acme", Words: []string{"n"}, Sort: proposal.SortOldest, Limit: 2 * perNode, Viewer: proposal.Viewer{Admin: true},
				})
				if err != nil || int64(len(found.Items)) != found.Total {
					t.Errorf("%d of %d, %v", len(found.Items), found.Total, err)
				}
				seen := map[string]bool{}
				for _, it := range found.Items {
					if seen[it.ID] {
						t.Errorf("%s was found twice", it.ID)
					}
					seen[it.ID] = true
				}
			}
		})
	}
	wg.Wait()
	for _, s := range []*Store{a.Store, b} {
		for word, want := range map[string]int64{"n": 2 * perNode, "changed": 2 * (perNode/3 + 1), "upload": 2 * (perNode - perNode/3 - 1)} {
			found, err := s.Proposals().Search(ctx, proposal.Filter{
				Org: "acme", Words: []string{word}, Limit: 1, Viewer: proposal.Viewer{Admin: true},
			})
			if err != nil || found.Total != want {
				t.Errorf("%s: found %d, %v, want %d", word, found.Total, err, want)
			}
		}
	}
	mustBeSound(t, a.Store)
}

// TestAPausedOwnerChangesNothing lets another process take the index over while one writes a segment.
func TestAPausedOwnerChangesNothing(t *testing.T) {
	t.Parallel()
	eachEngine(t, Options{}, func(t *testing.T, store *Store) {
		s := &searched{store, t, map[string]*proposal.Proposal{}}
		s.createOrg("acme")
		s.submit(1, "upload", "x", func(*proposal.Proposal) {})
		ctx, x := t.Context(), s.search
		done, err := x.turn(ctx, "acme") // keep the indexer of the store away
		if err != nil {
			t.Fatal(err)
		}
		defer done()
		if err := x.eng.write(ctx, func(t *tx) error { return x.take(ctx, t, "acme") }); err != nil {
			t.Fatal(err)
		}
		if err := x.asOwner(ctx, "acme", func(t *tx) error {
			t.addSegment("acme", 42, segmentWritten, 1, 1, time.Now().Add(-2*keepReplaced))
			t.addPages("acme", 42, 0, [][]byte{{1}})
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		other := newSearchIndex(s.db, s.fence, x.log)
		take := func() error { return other.eng.write(ctx, func(t *tx) error { return other.take(ctx, t, "acme") }) }
		if err := take(); !errors.Is(err, errNotOwner) {
			t.Fatalf("take = %v while the lease runs", err)
		}
		x.release()
		if err := take(); err != nil {
			t.Fatal(err)
		}
		if err := x.asOwner(ctx, "acme", func(*tx) error { return nil }); !errors.Is(err, errNotOwner) {
			t.Errorf("the former owner writes: %v", err)
		}
		if err := other.sweepSegments(ctx, "acme"); err != nil {
			t.Fatal(err)
		}
		for _, table := range []string{"search_pages", "search_segments"} {
			n := 0
			if _, err := one(ctx, s.eng, []any{&n}, `SELECT count(*) FROM `+table); err != nil || n != 0 {
				t.Errorf("%s has %d rows of the former owner, %v", table, n, err)
			}
		}
	})
}

// TestDamageIsReportedAndRepaired changes pages.
func TestDamageIsReportedAndRepaired(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Options{"sqlite": {Dir: t.TempDir()}, "postgres": {URL: pgtest.URL(t)}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openSearched(t, o)
			for i := range 50 {
				s.submit(i, "upload", "text", func(*proposal.Proposal) {})
			}
			f := proposal.Filter{Org: "acme", Words: []string{"upload"}, Limit: 5, Viewer: proposal.Viewer{Admin: true}}
			for _, page := range []int{0, 1, 2} {
				s.indexAll()
				if err := s.eng.write(t.Context(), func(t *tx) error {
					t.exec(`UPDATE search_pages SET data = $1 WHERE page = $2`, make([]byte, 100), page)
					t.touch("acme")
					return nil
				}); err != nil {
					t.Fatal(err)
				}
				s.search.states = stateCache{orgs: map[string]*searchState{}}
				if _, err := s.Proposals().Search(t.Context(), f); errs.As(err).Code != "search.damaged" {
					t.Errorf("page %d: a search returns %v", page, err)
				}
				snapshot, err := OpenSnapshot(t.Context(), o)
				if err != nil {
					t.Fatal(err)
				}
				findings, err := checkTextIndex(t.Context(), snapshot)
				if err != nil || len(findings) != 1 || !findings[0].Repairable {
					t.Errorf("page %d: findings %+v, %v", page, findings, err)
				}
				if err := snapshot.Close(); err != nil {
					t.Fatal(err)
				}
				if _, err := Repair(t.Context(), o); err != nil {
					t.Fatal(err)
				}
				s.search.states = stateCache{orgs: map[string]*searchState{}}
				if found := s.find(f); found.Total != 50 {
					t.Errorf("page %d: found %d after the repair", page, found.Total)
				}
				s.search.release()
			}
		})
	}
}

// TestSegmentsAreMerged indexes many small batches.
func TestSegmentsAreMerged(t *testing.T) {
	t.Parallel()
	s := openSearched(t, Options{Dir: t.TempDir()})
	for i := range 100 {
		s.submit(i, "upload", fmt.Sprintf("n%d", i), func(*proposal.Proposal) {})
		s.indexAll()
	}
	for i := range 30 {
		s.change(propID(i), func(p *proposal.Proposal) { p.Status = proposal.Approved })
	}
	s.indexAll()
	all, err := s.search.segments(t.Context(), s.eng, "acme")
	if err != nil {
		t.Fatal(err)
	}
	used := 0
	for _, row := range all {
		if row.state == segmentUsed {
			used++
		}
	}
	if used > 2*mergeWidth || len(all) <= used {
		t.Errorf("%d segments of %d are in use", used, len(all))
	}
	s.search.now = func() time.Time { return time.Now().Add(2 * keepReplaced) }
	s.indexAll()
	n := 0
	if _, err := one(t.Context(), s.eng, []any{&n}, `SELECT count(DISTINCT segment) FROM search_pages`); err != nil || n != used {
		t.Errorf("%d segments have pages, %v, want %d", n, err, used)
	}
	f := proposal.Filter{Org: "acme", Words: []string{"upload"}, Limit: 50, Sort: proposal.SortNewest, Viewer: proposal.Viewer{Principal: annOf("acme"), Admin: true}}
	if diff := gocmp.Diff(s.model(f), s.walk(f)); diff != "" {
		t.Error(diff)
	}
	mustBeSound(t, s.Store)
}

// TestUpgradeIndexesOldProposals opens a store of the schema before the index.
func TestUpgradeIndexesOldProposals(t *testing.T) {
	t.Parallel()
	files, err := schemaFiles()
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(files, func(f schemaFile) bool { return f.name == "0028_search.sql" })
	for name, o := range map[string]Options{"sqlite": {Dir: t.TempDir()}, "postgres": {URL: pgtest.URL(t)}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := o
			before.schema = files[:at]
			old, err := Open(t.Context(), before)
			if err != nil {
				t.Fatal(err)
			}
			const n = 3000
			ids := make([]string, n)
			for i := range ids {
				ids[i] = propID(i)
			}
			if err := old.eng.write(t.Context(), func(t *tx) error {
				t.exec(`INSERT INTO orgs (id, name, created_at) VALUES ('acme', 'Acme', 0)`)
				for _, id := range ids {
					t.exec(`INSERT INTO proposals (org_id, id, status, category, priority, submitted_by, submitted_at, submitted_as,
						updated_at, votes_for, votes_against, score, version, followup_id, title, problem, suggested_fix,
						resolution_note) VALUES ('acme', $1, 'open', 'process', 1, 'user:ann', 0, 'open', 0, 0, 0, 0, 1, '', 'Upload',
						'It fails', 'Repair it', '')`, id)
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if err := old.Close(); err != nil {
				t.Fatal(err)
			}
			s := &searched{openFor(t, o), t, nil}
			f := proposal.Filter{Org: "acme", Words: []string{"upload"}, Limit: 5, Viewer: proposal.Viewer{Admin: true}}
			if found := s.find(f); found.Total != n || !found.Complete {
				t.Errorf("found %d, complete: %v, want %d", found.Total, found.Complete, n)
			}
			waitFor(t, func() bool {
				left := 0
				_, err := one(t.Context(), s.eng, []any{&left}, `SELECT count(*) FROM search_waiting`)
				return err == nil && left == 0
			})
			mustBeSound(t, s.Store)
		})
	}
}

// TestSearchSaysThatTheIndexIsIncomplete has more waiting than a search waits for.
func TestSearchSaysThatTheIndexIsIncomplete(t *testing.T) {
	t.Parallel()
	s := openSearched(t, Options{Dir: t.TempDir()})
	done, err := s.search.turn(t.Context(), "acme") // as if the indexer were slow
	if err != nil {
		t.Fatal(err)
	}
	s.submit(1, "upload", "x", func(*proposal.Proposal) {})
	if err := s.eng.write(t.Context(), func(t *tx) error {
		t.exec(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i <= $1)
			INSERT INTO search_waiting (org_id, proposals, changed) SELECT 'acme', 'prop-' || i, 0 FROM n`, maxCatchUp)
		t.touch("acme")
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	f := proposal.Filter{Org: "acme", Words: []string{"upload"}, Limit: 5, Viewer: proposal.Viewer{Admin: true}}
	if found := s.find(f); found.Complete {
		t.Error("the search says that the index is complete")
	}
	done()
	s.indexAll()
	if found := s.find(f); !found.Complete || found.Total != 1 {
		t.Errorf("complete: %v, %d found", found.Complete, found.Total)
	}
}

// TestTotalsOfSearchesAreBounded has more matches than are counted.
func TestTotalsOfSearchesAreBounded(t *testing.T) {
	t.Parallel()
	s := openSearched(t, Options{Dir: t.TempDir()})
	const n = proposal.MaxFound + 50
	var wg sync.WaitGroup
	for part := range 16 {
		wg.Go(func() {
			own := &searched{s.Store, t, map[string]*proposal.Proposal{}}
			for i := part; i < n; i += 16 {
				own.submit(i, "upload", "x", func(*proposal.Proposal) {})
			}
		})
	}
	wg.Wait()
	f := proposal.Filter{
		Org: "acme", Words: []string{"upload"}, Limit: 5, Sort: proposal.SortOldest, Offset: n - 3, Viewer: proposal.Viewer{Admin: true},
	}
	found := s.find(f)
	if found.Total != proposal.MaxFound || found.Exact || len(found.Items) != 3 || found.Items[2].ID != propID(n-1) {
		t.Errorf("total %d, exact: %v, %d items on the last page", found.Total, found.Exact, len(found.Items))
	}
	f.Sort, f.Offset = proposal.SortVotes, 0
	if found := s.find(f); len(found.Items) != f.Limit+1 || found.Items[0].ID != propID(n-1) {
		t.Errorf("by votes: %d items", len(found.Items))
	}
	counts, err := s.Proposals().Counts(t.Context(), f)
	if err != nil || counts[proposal.Open] != n {
		t.Errorf("counts %v, %v, want %d open", counts, err, n)
	}
	groups, err := s.Proposals().Groups(context.Background(), f, proposal.BySubmitter)
	if err != nil || len(groups) != 1 || groups[0].Count != proposal.MaxFound {
		t.Errorf("groups %+v, %v", groups, err)
	}
}
