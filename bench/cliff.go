package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/app"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
)

const (
	cliffMost = 10_000 // µs of the store for any list
	// cliffAgain is the time from which a list is measured again: most such times are other load.
	cliffAgain = cliffMost / 2
	cliffTimes = 7
)

// measureCliff lists an org of the largest size with every combination of filters, sort and page by
// cursor, among them such that match few proposals. It measures the store's time, in this process.
func measureCliff(ctx context.Context, set settings, engine string) ([]cost, error) {
	s, cleanup, err := openStore(ctx, engine)
	if err != nil {
		return nil, err
	}
	defer cleanup()
	rows := set.rows[len(set.rows)-1]
	progress("%s: submit %d proposals to list", engine, rows)
	if err := s.fill(ctx, org, rows, listed); err != nil {
		return nil, err
	}
	if err := s.indexed(ctx); err != nil {
		return nil, err
	}
	if engine == "postgres" { // as autovacuum does with a table that has grown
		if err := vacuum(ctx, s.data, "proposals"); err != nil {
			return nil, err
		}
	}
	lists := cliffLists(rows)
	progress("%s: %d lists", engine, len(lists))
	took, err := s.timeLists(ctx, lists)
	if err != nil {
		return nil, err
	}
	worst, above := 0, 0
	for i, us := range took {
		if us > took[worst] {
			worst = i
		}
		if us >= cliffMost {
			above++
		}
	}
	progress("%s: worst list: %.0f µs, %s; %d above %d ms", engine, took[worst], describe(lists[worst]), above,
		cliffMost/1000)
	return []cost{
		{
			Engine: engine, Micros: median(took),
			Name: fmt.Sprintf("list: median of %d filters, sorts and cursors at %d rows", len(lists), rows),
		},
		{
			Engine: engine, Micros: took[worst], Target: fmt.Sprintf("< %d ms", cliffMost/1000),
			Verdict: verdict(above == 0),
			Name:    fmt.Sprintf("list: worst of them (%s); %d miss the target", describe(lists[worst]), above),
		},
	}, nil
}

// timeLists returns how long each list takes, in microseconds. Those that seem slow are measured again,
// with others in between, and the shortest time counts: a list does the same work each time, and other
// load only adds to it.
func (s *openedStore) timeLists(ctx context.Context, lists []proposal.Filter) ([]float64, error) {
	once := func(f proposal.Filter) (float64, error) {
		begun := time.Now()
		if _, _, err := s.Proposals().List(ctx, f); err != nil {
			return 0, fmt.Errorf("%s: %w", describe(f), err)
		}
		return float64(time.Since(begun).Nanoseconds()) / 1000, nil
	}
	took := make([]float64, len(lists))
	var again []int
	for i, f := range lists {
		us, err := once(f)
		if err != nil {
			return nil, err
		}
		if took[i] = us; us >= cliffAgain {
			again = append(again, i)
		}
	}
	for range cliffTimes {
		for _, i := range again {
			us, err := once(lists[i])
			if err != nil {
				return nil, err
			}
			took[i] = min(took[i], us)
		}
	}
	return took, nil
}

// Values that few of the listed proposals have.
const (
	rareCategory  = proposal.Documentation
	rarePriority  = proposal.High
	rareSubmitter = "user:zoe"
	listedBot     = "agent:bot"
)

// listed returns the i-th proposal to list: most are open and submitted by many people, and few
// have votes, evidence or the rare values.
func listed(org string, i int64) proposal.Proposal {
	rng := rand.New(rand.NewPCG(uint64(i), 5)) // a row number
	rare := func(one int) bool { return rng.IntN(one) == 0 }
	now := app.Now()
	p := proposal.Proposal{
		Org: org, ID: listedID(i), Title: fmt.Sprintf("Upload retry of region %d fails", i%100),
		Problem: strings.Repeat("the queue is slow ", 15), SuggestedFix: strings.Repeat("add a backoff ", 15),
		Status:   pick(rng, proposal.Open, proposal.Open, proposal.Open, proposal.Approved, proposal.Rejected, proposal.Resolved),
		Category: pick(rng, proposal.Reliability, proposal.Performance, proposal.Security, proposal.Process, proposal.Feature),
		Priority: pick(rng, proposal.Low, proposal.Normal, proposal.Normal, proposal.Normal),
		// One person submits half of all.
		SubmittedBy: pick(rng, submitter(org).Ref(), fmt.Sprintf("user:person%d", rng.IntN(1000))),
		SubmittedAt: now, UpdatedAt: now, TextVersion: 1, Version: 1,
	}
	switch {
	case rare(10):
		p.SubmittedBy = listedBot
	case rare(20_000):
		p.SubmittedBy = rareSubmitter
	}
	if rare(5000) {
		p.Category = rareCategory
	}
	if rare(1000) {
		p.Priority = rarePriority
	}
	if rare(100) {
		p.Status = proposal.Draft
	}
	if rare(200) {
		p.Fingerprint, p.Evidence = fmt.Sprintf("f%d", i), 3
	}
	if rare(4) {
		p.VotesFor, p.VotesAgainst = rng.IntN(1+rng.IntN(20)), rng.IntN(4)
	}
	return p
}

func listedID(i int64) string { return fmt.Sprintf("prop-%026d", i) }

// cliffLists returns the combinations of all statuses, orders and pages with common and rare values of the other
// filters.
func cliffLists(rows int) []proposal.Filter {
	list := []proposal.Filter{{Org: org, Viewer: proposal.Viewer{Principal: submitter(org)}, Limit: proposal.DefaultLimit}}
	list = combine(list, append([]proposal.Status{""}, proposal.Statuses...),
		func(f *proposal.Filter, v proposal.Status) { f.Status = v })
	list = combine(list, []proposal.Category{"", proposal.Reliability, rareCategory},
		func(f *proposal.Filter, v proposal.Category) { f.Category = v })
	list = combine(list, []proposal.Priority{"", proposal.Normal, rarePriority},
		func(f *proposal.Filter, v proposal.Priority) { f.Priority = v })
	list = combine(list, []string{"", "user", "agent", submitter(org).Ref(), rareSubmitter, listedBot},
		func(f *proposal.Filter, v string) {
			if strings.Contains(v, ":") {
				f.SubmittedBy = v
			} else {
				f.Kind = identity.Kind(v)
			}
		})
	list = combine(list, []proposal.Evidence{"", proposal.WithEvidence, proposal.WithoutEvidence},
		func(f *proposal.Filter, v proposal.Evidence) { f.Evidence = v })
	list = combine(list, proposal.Sorts, func(f *proposal.Filter, v proposal.Sort) { f.Sort = v })
	middle, late := listedID(int64(rows/2)), listedID(int64(rows/20))
	return combine(list, []*proposal.Position{nil, {Rank: 1, Score: 1, ID: middle}, {Rank: 0, Score: -2, ID: late}},
		func(f *proposal.Filter, v *proposal.Position) {
			if v != nil && f.Priority != "" { // as the cursor of such a list has
				v = &proposal.Position{Rank: f.Priority.Rank(), Score: v.Score, ID: v.ID}
			}
			f.After = v
		})
}

// combine returns each filter with each of the values.
func combine[T any](list []proposal.Filter, values []T, set func(*proposal.Filter, T)) []proposal.Filter {
	out := make([]proposal.Filter, 0, len(list)*len(values))
	for _, f := range list {
		for _, v := range values {
			next := f
			set(&next, v)
			out = append(out, next)
		}
	}
	return out
}

// describe names the parts of a filter that are set.
func describe(f proposal.Filter) string {
	parts := []string{"by " + string(f.Sort)}
	for _, v := range []string{
		string(f.Status), string(f.Category), string(f.Priority), f.SubmittedBy, string(f.Kind),
	} {
		if v != "" {
			parts = append(parts, v)
		}
	}
	switch f.Evidence {
	case proposal.WithEvidence:
		parts = append(parts, "with evidence")
	case proposal.WithoutEvidence:
		parts = append(parts, "without evidence")
	}
	if f.After != nil {
		parts = append(parts, "after "+f.After.ID)
	}
	return strings.Join(parts, ", ")
}

func vacuum(ctx context.Context, data []string, tables string) error {
	db, err := openSQL("postgres", data)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	_, err = db.ExecContext(ctx, "VACUUM (ANALYZE) "+tables)
	return err
}
